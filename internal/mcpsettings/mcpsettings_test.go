package mcpsettings_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

var update = flag.Bool("update", false, "write the golden files again")

// env is the environment of the tests.
func env(name string) (string, bool) {
	if name == "BIG" {
		return strings.Repeat("x", 1<<20), true
	}
	value, ok := map[string]string{
		"HOME": "/home/ann", "USER": "ann", "EMPTY": "", "GITHUB_TOKEN": "S3CRET!", "TEAM": "t1",
		"FIGMA_TOKEN": "figd_1",
		"SELF":        "${SELF}", "TWICE": "$USER", "BREAK": "a\r\nX: y",
		"ProgramFiles(x86)": `C:\Program Files (x86)`, "DB_CONNECTION_STRING": "postgres://x:pa$$@h/d",
	}[name]
	return value, ok
}

// parse reads settings from a file of no dialect's name.
func parse(text string) (*mcpsettings.Settings, error) {
	return mcpsettings.Parse("/work/.app/settings", []byte(text), env)
}

// one reads the settings of the server s, which it returns.
func one(t *testing.T, entry string) mcpsettings.Server {
	t.Helper()
	s, err := parse(`{"mcpServers":{"s":` + entry + `}}`)
	if err != nil {
		t.Fatalf("Parse(%s): %v", entry, err)
	}
	return s.Servers[0]
}

// dump writes settings for a golden file.
func dump(s *mcpsettings.Settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dialect: %s\n", s.Dialect)
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, server := range s.Servers {
		fmt.Fprintf(&b, "\nid: %q\n", server.ID)
		v := reflect.ValueOf(server)
		for i := 1; i < v.NumField(); i++ {
			switch name := strings.ToLower(v.Type().Field(i).Name); {
			case v.Field(i).IsZero():
			case name == "problem":
				fmt.Fprintf(&b, "%s: %s\n", name, errkind.Message(server.Problem))
			case name == "timeout":
				fmt.Fprintf(&b, "%s: %v\n", name, server.Timeout)
			default:
				fmt.Fprintf(&b, "%s: %#v\n", name, v.Field(i))
			}
		}
	}
	return b.String()
}

func TestDialects(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the golden files have the slashes of other systems")
	}
	for file, dialect := range map[string]string{
		"claude.json": "claude", "windsurf.json": "claude", "vscode.jsonc": "vscode", "vscode-settings.json": "vscode",
		"devcontainer.json": "vscode", "codex.toml": "codex", "gemini.json": "gemini", "opencode.jsonc": "opencode",
		"opencode2.jsonc": "opencode", "zed.json": "zed", "bare.json": "bare",
	} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			// The name must not matter.
			s, err := mcpsettings.Parse("/work/.app/settings", data, env)
			if err != nil {
				t.Fatal(err)
			}
			if s.Dialect != dialect {
				t.Errorf("Dialect = %q, want %q", s.Dialect, dialect)
			}
			golden := filepath.Join("testdata", file+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(dump(s)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), dump(s)); diff != "" {
				t.Errorf("Parse(%s) differs from its golden file (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestTransport(t *testing.T) {
	for _, tc := range []struct{ entry, want string }{
		{`{"command":"a"}`, "stdio"},
		{`{"command":"a","url":"http://h/sse"}`, "stdio"},
		{`{"command":"a","type":"http","url":"http://h/"}`, "http"},
		{`{"command":"a","type":"remote","url":"http://h/sse"}`, "sse"},
		{`{"url":"http://h/"}`, "http"},
		{`{"url":"http://h"}`, "http"},
		{`{"url":"http://sse/mcp"}`, "http"},
		{`{"url":"http://h/v1/SSE/x"}`, "sse"},
		{`{"url":"http://h/assess"}`, "http"},
		{`{"url":"http://h/mcp?a=/sse#/sse"}`, "http"},
		{`{"url":"http://h/${TEAM}/${NO:-sse}"}`, "sse"},
		{`{"url":"http://h/sse","type":"http"}`, "http"},
		{`{"url":"http://h/","type":"SSE"}`, "sse"},
		{`{"url":"http://h/","type":"streamable-http"}`, "http"},
		{`{"url":"http://h/","type":"Streamable_HTTP"}`, "http"},
		{`{"url":"http://h/","type":"streamableHttp"}`, "http"},
		{`{"url":"http://h/","type":"sse","transport":"http"}`, "http"},
		{`{"url":"http://h/","transport":"http","type":"sse"}`, "http"},
		{`{"url":"http://h/sse","type":"","transport":null}`, "sse"},
		{`{"command":"a","type":"local"}`, "stdio"},
		{`{"serverUrl":"http://h/sse"}`, "sse"},
		{`{"url":"http://two/","serverUrl":"http://three/sse"}`, "http"},
	} {
		if got := one(t, tc.entry); got.Transport != tc.want || got.Problem != nil {
			t.Errorf("Parse(%s) has transport %q, problem %v, want %q", tc.entry, got.Transport, got.Problem, tc.want)
		}
	}
}

func TestDisabled(t *testing.T) {
	for _, tc := range []struct {
		entry string
		want  bool
	}{
		{`{"command":"a"}`, false},
		{`{"command":"a","disabled":false}`, false},
		{`{"disabled":true}`, true},
		{`{"command":"a","disabled":true,"enabled":true}`, false},
		{`{"disabled":false,"enabled":false}`, true},
		{`{"enabled":null,"disabled":true}`, true},
		{`{"isActive":false}`, true},
		{`{"disabled":true,"url":"${NO}","type":"sse"}`, true},
		{`{"disabled":true,"args":5}`, true}, // a warning
	} {
		if got := one(t, tc.entry); got.Disabled != tc.want || got.Problem != nil {
			t.Errorf("Parse(%s).Disabled = %v, problem %v, want %v", tc.entry, got.Disabled, got.Problem, tc.want)
		}
	}
	s, err := parse(`{"mcpServers":{"b":{"disabled":true,"command":"$USER","args":5},"c":{"command":"c"},` +
		`"a":{"command":"a"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var all, enabled []string
	for _, v := range s.Servers {
		all = append(all, v.ID)
	}
	for _, v := range slices.DeleteFunc(s.Servers, func(v mcpsettings.Server) bool { return v.Disabled }) {
		enabled = append(enabled, v.ID)
	}
	if got := fmt.Sprint(all, enabled,
		s.Warnings); got != `[a b c] [a c] [mcpServers.b.args: got a number, want a list of strings (the server `+
		`is disabled)]` {
		t.Errorf("Parse = %s", got)
	}
}

func TestExpand(t *testing.T) {
	for _, tc := range []struct{ text, want, used string }{
		{`plain`, `plain`, ``},
		{`$USER-${USER}-${env:USER}`, `ann-ann-ann`, `USER`},
		{`${NO:-d e}${EMPTY:-f}${USER:-g}${NO:-}`, `d efann`, `USER`},
		{`[${EMPTY}]`, `[]`, `EMPTY`},
		{`${env:NO:-http://x}`, `http://x`, ``},
		{`$NO $1 $ $- %USER% {env:USER}`, `$NO $1 $ $- %USER% {env:USER}`, ``},
		{`$$USER $${USER} pa$$word $$$USER`, `$USER ${USER} pa$word $ann`, `USER`},
		{`${SELF}${TWICE}`, `${SELF}$USER`, `SELF TWICE`},
		{`C:\$Recycle.Bin\x \\host\C$\dir`, `C:\$Recycle.Bin\x \\host\C$\dir`, ``},
		{`${ProgramFiles(x86)}\x`, `C:\Program Files (x86)\x`, `ProgramFiles(x86)`},
		{`${ ${} ${!x} ${1} ${a b} ${USER`, `${ ${} ${!x} ${1} ${a b} ${USER`, ``},
		{`^a+$`, `^a+$`, ``},
		{`${workspaceFolder}|${workspaceFolderBasename}|${userHome}`, `/work|work|/home/ann`, `HOME`},
		{"${NO:-" + strings.Repeat("x", 2000) + "}", "${NO:-" + strings.Repeat("x", 2000) + "}", ``},
	} {
		if runtime.GOOS == "windows" && strings.Contains(tc.text, "workspace") {
			continue
		}
		quoted, err := json.Marshal(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got := one(t, fmt.Sprintf(`{"command":%[1]s,"args":["x",%[1]s],"env":{"E":%[1]s},"cwd":%[1]s,`+
			`"headers":{"H":%[1]s}}`, quoted))
		want := mcpsettings.Server{ID: "s", Transport: "stdio", Command: tc.want, Args: []string{"x", tc.want},
			Env: map[string]string{"E": tc.want},
			Dir: tc.want, Headers: map[string]string{"H": tc.want}, Expanded: strings.Fields(tc.used)}
		if len(want.Expanded) == 0 {
			want.Expanded = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("expanding %.80q differs (-want +got):\n%s", tc.text, diff)
		}
	}
}

// The paths of a server may begin with the home folder.
func TestHome(t *testing.T) {
	got := one(t, `{"command":"~/bin/a","args":["~/x"],"env":{"E":"~/x"},"cwd":"~/"}`)
	home := filepath.FromSlash("/home/ann")
	want := mcpsettings.Server{ID: "s", Transport: "stdio", Command: filepath.Join(home, "bin", "a"),
		Args: []string{"~/x"}, Env: map[string]string{"E": "~/x"}, Dir: home, Expanded: []string{"HOME"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the server differs (-want +got):\n%s", diff)
	}
	for _, name := range []string{"~", "~/a"} {
		if got := one(t, `{"command":"~you/a","cwd":"`+name+`/~"}`); got.Command != "~you/a" ||
			got.Dir != filepath.Join(home, name[1:], "~") {
			t.Errorf("the command is %q in %q", got.Command, got.Dir)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, tc := range []struct{ entry, want string }{
		{`{"command":"${NO}"}`, `the environment variable NO is not set; set it, or write ${NAME:-default}`},
		{`{"command":"a","args":["${NO2}","${env:NO1}","${NO2}"],"env":{"A":"${NO3}"}}`,
			`the environment variables NO1, NO2, NO3 are not set; set them, or write ${NAME:-default}`},
		{`{"command":"a","env":{"K":"${input:k}","L":"${command:l}","M":"${NO}"}}`,
			`the environment variable NO is not set; set it, or write ${NAME:-default}; only the editor can fill ` +
				`in ${command:l}, ${input:k}; write ${NAME} and set that environment variable`},
		{`{"command":"${EMPTY}"}`, `the command is empty after environment variables are replaced`},
		{`{"url":"${GITHUB_TOKEN}"}`,
			`the url is not an absolute http or https URL after environment variables are replaced`},
		{`{"url":"http://h/","headers":{"A":"${BREAK}"}}`,
			`the value of the header "A" has a line break or another character that HTTP does not allow`},
		{`{"command":"a","args":["$BIG$BIG"]}`,
			`its texts have more than 1048576 bytes after environment variables are replaced`},
		{`{"type":"ws","url":"wss://h/"}`, `transport "ws" is not supported, want stdio, http or sse`},
	} {
		got := one(t, tc.entry)
		if got.Problem == nil || errkind.Message(got.Problem) != tc.want || !errors.Is(got.Problem, errkind.Invalid) {
			t.Errorf("Parse(%s) has problem\n got %v\nwant %s", tc.entry, got.Problem, tc.want)
		}
	}
	s, err := mcpsettings.Parse("x", []byte(`{"mcpServers":{"s":{"command":"${A}"}}}`), nil)
	if err != nil || s.Servers[0].Problem == nil {
		t.Errorf("Parse without an environment = %+v, %v, want a problem", s, err)
	}
}

func TestTimeout(t *testing.T) {
	for _, tc := range []struct {
		file string
		want time.Duration
	}{
		{`{"mcpServers":{"s":{"command":"a","timeout":60}}}`, time.Minute},
		{`{"mcpServers":{"s":{"command":"a","timeout":3600}}}`, time.Hour},
		{`{"mcpServers":{"s":{"command":"a","timeout":3601}}}`, 3601 * time.Millisecond},
		{`{"mcpServers":{"s":{"command":"a","timeout":0}}}`, 0},
		{`{"mcpServers":{"s":{"command":"a","timeout":60,"trust":true}}}`, 60 * time.Millisecond},
		{`{"mcp":{"s":{"type":"local","command":["a"],"timeout":60}}}`, 60 * time.Millisecond},
		{`{"mcp":{"s":{"type":"local","command":["a"],"timeout":{"startup":5}}}}`, 0},
		{"mcp_servers.s = {command='a', tool_timeout_sec=1.5}", 1500 * time.Millisecond},
	} {
		s, err := parse(tc.file)
		if err != nil {
			t.Errorf("Parse(%s): %v", tc.file, err)
			continue
		}
		if got := s.Servers[0].Timeout; got != tc.want {
			t.Errorf("Parse(%s) has timeout %v, want %v", tc.file, got, tc.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{`{"mcpServers":{"_a":5,"b":null,"//":"text"}}`,
			"mcpServers._a: left out, because it is a number and not a server\n" +
				"mcpServers.b: left out, because it is null and not a server\n" +
				"mcpServers[\"//\"]: left out, because it is a string and not a server"},
		{`{"mcpServers":{"a":{"command":"a","arg":[],"zzz\u0007":1}}}`,
			"mcpServers.a.arg: unknown key, left out; is it meant to be \"args\"?\nmcpServers.a[\"zzz\\a\"]: " +
				"unknown key, left out"},
		{`{"mcpServers":{"a":{"command":"a","url":"http://h"}}}`,
			`mcpServers.a: has both a command and a URL; transport "stdio" decides which is used`},
		{`{"mcpServers":{}}`, ``},
	} {
		s, err := parse(tc.file)
		if err != nil {
			t.Errorf("Parse(%s): %v", tc.file, err)
			continue
		}
		if got := strings.Join(s.Warnings, "\n"); got != tc.want {
			t.Errorf("Parse(%s) warns\n got %s\nwant %s", tc.file, got, tc.want)
		}
	}
	var keys strings.Builder
	for i := range 500 {
		fmt.Fprintf(&keys, `,"zz%d":1`, i)
	}
	s, err := parse(`{"mcpServers":{"a":{"command":"a"` + keys.String() + `}}}`)
	if err != nil || len(s.Warnings) != 101 || s.Warnings[100] != "there are more warnings of this kind" {
		t.Errorf("Parse of 500 unknown keys = %v with %d warnings, want 101", err, len(s.Warnings))
	}
}
