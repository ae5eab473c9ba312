package mcpsettings_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

func TestErrors(t *testing.T) {
	long := strings.Repeat("i", 129)
	for _, tc := range []struct{ text, want string }{
		// syntax
		{``, `f:1:1: the file is empty`},
		{"{\n  \"mcpServers\": {\"é\" {}}\n}", `f:2:22: invalid JSON: invalid character '{' after object name`},
		{`{"mcpServers":{"s":{"command":"a"}}`, `f:1:36: invalid JSON: the file ends too early`},
		{"{\"mcpServers\":\n{}\n", `f:3:1: invalid JSON: the file ends too early`},
		{`{"mcpServers":{"s":{"env":{"TOKEN":S3CRET}}}}`,
			`f:1:36: invalid JSON: there is a word or a string that is not valid JSON`},
		{"{\"a\":\"S3CRET\n\"}", `f:1:6: invalid JSON: there is a word or a string that is not valid JSON`},
		{`not JSON`, `f:1:5: invalid TOML: `},
		{"{\"a\":\"\xff\"}", `f:1:7: the file is not UTF-8; save it with that encoding`},
		{"\xff\xfe{\x00", `f:1:1: the file is not UTF-8`},
		{"a = 1\n[mcp_servers.x\ncommand = 'x'", `f:2:15: invalid TOML: `},
		{"[mcp_servers.s.env]\nTOKEN = S3CRET", `f:2:9: invalid TOML: `},
		{"[mcp_servers.s]\ncommand='a'\n[mcp_servers.s]\n",
			`f:3:2: invalid TOML: Key 'mcp_servers.s' has already been defined. Example`},
		{strings.Repeat(`{"a":`, 600), `f:1:1001: values are nested more than 200 deep`},
		{"a = " + strings.Repeat(`[`, 600), `f:1:205: values are nested more than 200 deep`},
		{strings.Repeat(`a.`, 600) + "a = 1", `f:1:399: values are nested more than 200 deep`},
		{`{"a":"` + strings.Repeat(`[`, 600) + `"} /*` + strings.Repeat(`[`, 600) + `*/ // ` + strings.Repeat(`[`, 600),
			`no MCP servers`},
		{"a = '''" + strings.Repeat(`[`, 600) + "'''\n#" + strings.Repeat(`[`, 600), `no MCP servers`},
		{"[mcp_servers.s]\nurl = 'http://h'\nenv_http_headers = { A = 'S3CRET 1' }",
			`f: mcp_servers.s.env_http_headers.A: want the name of an environment variable`},
		{`{"context_servers":{"s":{"command":{"path":5}}}}`,
			`context_servers.s.command.path: got a number, want a string`},
		{strings.Repeat(" ", mcpsettings.MaxSize+1), `f: the file is larger than 4194304 bytes`},
		{`{"mcpServers":{"s":{"command":"a"},"t":"text"}}`,
			`f:1:40: mcpServers.t: got a string, want an object with the command or the url of a server. Example`},
		{`{"mcpServers":{"s":[]}}`, `f:1:20: mcpServers.s: got a list, want an object`},
		// the place of the servers
		{`[]`, `f:1:1: got a list, want an object`},
		{`"x"`, `f:1:1: got a string, want an object`},
		{`{}`, `f:1:1: no MCP servers in the file, want a key "mcpServers" (Claude, Cursor, Gemini CLI), ` +
			`"servers" (VS Code), "mcp_servers" (Codex), "context_servers" (Zed) or "mcp" (OpenCode)`},
		{`{"command":"a"}`, `f:1:1: no MCP servers`},
		{`{"name":"p","scripts":{"command":"x"},"dependencies":{}}`, `f:1:1: no MCP servers`},
		{`{"mcpserver":{"a":{}}}`, `"mcp" (OpenCode); is "mcpserver" meant to be "mcpServers"? Example: `},
		{"model = 'x'", `f: no MCP servers in the file`},
		{`{"mcpServers":[]}`, `f:1:15: mcpServers: got a list, want an object with a key for each server`},
		{`{"mcpServers":null}`, `f:1:15: mcpServers: got null, want an object with a key for each server`},
		{`{"mcpServers":{},"mcpServers":{}}`, `f:1:18: mcpServers: given twice; put the two together`},
		// ids
		{`{"mcpServers":{"":{}}}`, `f:1:16: mcpServers[""]: the id of a server must have 1 to 128 bytes`},
		{`{"mcpServers":{"a/b":{}}}`, `f:1:16: mcpServers["a/b"]: the id of a server`},
		{`{"mcpServers":{"a\\b":{"disabled":true}}}`, `f:1:16: mcpServers["a\\b"]: the id of a server`},
		{`{"mcpServers":{"a\u0000":{}}}`, `f:1:16: mcpServers["a\x00"]: the id of a server`},
		{`{"mcpServers":{"a\n":{}}}`, `f:1:16: mcpServers["a\n"]: the id of a server`},
		{`{"mcpServers":{"` + long + `":{}}}`, `the id of a server`},
		{"{\"mcpServers\":{\"a\":{\"command\":\"a\"},\n\"a\":{\"command\":\"a\"}}}",
			`f:2:1: mcpServers.a: there are two servers with this id; rename or remove one`},
		// types
		{`{"mcpServers":{"s":{"command":5}}}`,
			`f:1:31: mcpServers.s.command: got a number, want a string or a list of strings`},
		{`{"mcpServers":{"s":{"command":["a",true]}}}`,
			`f:1:36: mcpServers.s.command[1]: got true or false, want a string`},
		{`{"mcpServers":{"s":{"command":"a","args":"-y"}}}`,
			`f:1:42: mcpServers.s.args: got a string, want a list of strings`},
		{`{"mcpServers":{"s":{"command":"a","args":["a",5]}}}`,
			`f:1:47: mcpServers.s.args[1]: got a number, want a string`},
		{`{"mcpServers":{"s":{"command":"a","env":[]}}}`, `mcpServers.s.env: got a list, want an object with strings`},
		{`{"mcpServers":{"s":{"command":"a","env":{"A":{}}}}}`, `mcpServers.s.env.A: got an object, want a string`},
		{`{"mcpServers":{"s":{"command":"a","env":{"A=B":"x"}}}}`, `mcpServers.s.env["A=B"]: the name must not`},
		{`{"mcpServers":{"s":{"command":"a","env":{"A":"x","A":"y"}}}}`,
			`f:1:50: mcpServers.s.env.A: given twice; remove one`},
		{`{"mcpServers":{"s":{"command":"a","command":"b"}}}`, `f:1:35: mcpServers.s.command: given twice; remove one`},
		{`{"mcpServers":{"s":{"command":"a","disabled":"true"}}}`,
			`mcpServers.s.disabled: got a string, want true or false`},
		{`{"mcpServers":{"s":{"command":"a","timeout":"30s"}}}`,
			`mcpServers.s.timeout: got a string, want a number that is not negative`},
		{`{"mcpServers":{"s":{"command":"a","timeout":-1}}}`,
			`mcpServers.s.timeout: got a number, want a number that is not negative`},
		{`{"mcpServers":{"s":{"command":"a","timeout":1e300}}}`,
			`mcpServers.s.timeout: want at most 604800000, which is a week`},
		{`{"mcpServers":{"s":{"url":"http://h","type":"carrier\npigeon"}}}`,
			`mcpServers.s.type: got "carrier\npigeon", want "stdio", "http" (also "streamable-http") or "sse"`},
		{"[mcp_servers.s]\ncommand = 1979-05-27",
			`f: mcp_servers.s.command: got a date, want a string or a list of strings`},
		{"[[mcp_servers]]\ncommand = 'a'", `f: mcp_servers: got a list, want an object`},
		{"[mcp_servers.s]\nurl = 'http://h'\nbearer_token_env_var = 'sk-S3CRET 1'",
			`f: mcp_servers.s.bearer_token_env_var: want the name of an environment variable, not a value`},
		// what a server needs
		{`{"mcpServers":{"s":{}}}`, `f:1:20: mcpServers.s: the server has neither a "command" nor a "url"; give one`},
		{`{"mcpServers":{"s":{"comand":"a"}}}`,
			`f:1:20: mcpServers.s: the server has neither a "command" nor a "url"; give one; perhaps "comand" is ` +
				`meant to be "command". Example: `},
		{`{"mcpServers":{"s":{"Comand":"a","ulr":"http://h"}}}`,
			`give one; perhaps "Comand" is meant to be "command". Example: `},
		{`{"servers":{"s":{"type":"stdio","cmd":"a","commnad":"b"}}}`,
			`servers.s.command: missing, want the program that is the server; perhaps "commnad" is meant to be ` +
				`"command". Example: `},
		{`{"servers":{"s":{"type":"http","serverURL":"http://h"}}}`,
			`servers.s.url: missing, want the http or https URL of the server; perhaps "serverURL" is meant to be ` +
				`"serverUrl". Example: `},
		{`{"mcpServers":{"s":{"colour":"red"}}}`, `nor a "url"; give one. Example: `},
		{`{"mcpServers":{"s":{"type":"stdio","url":"http://h"}}}`,
			`mcpServers.s.command: missing, want the program that is the server`},
		{`{"mcpServers":{"s":{"command":[]}}}`, `mcpServers.s: the server has neither`},
		{`{"mcpServers":{"s":{"type":"http","command":"a"}}}`,
			`mcpServers.s.url: missing, want the http or https URL of the server`},
		{`{"mcpServers":{"s":{"url":"h/mcp"}}}`,
			`mcpServers.s.url: want an absolute http or https URL, such as https://example.com/mcp`},
		{`{"mcpServers":{"s":{"url":"ftp://me:S3CRET@h/"}}}`, `mcpServers.s.url: want an absolute`},
		{`{"mcpServers":{"s":{"url":"http:///mcp"}}}`, `mcpServers.s.url: want an absolute`},
		{`{"mcpServers":{"s":{"url":"http://h","headers":{"a b":"c"}}}}`,
			`mcpServers.s.headers["a b"]: this cannot be the name of an HTTP header`},
	} {
		_, err := mcpsettings.Parse("f", []byte(tc.text), env)
		if err == nil {
			t.Errorf("Parse(%.100q) succeeded, want %q", tc.text, tc.want)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || !errors.Is(err, errkind.Invalid) {
			t.Errorf("Parse(%.100q)\n got %v\nwant %s", tc.text, err, tc.want)
		}
		if strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("Parse(%.100q) = %v shows a secret", tc.text, err)
		}
		if _, example, ok := strings.Cut(err.Error(), " Example: "); !ok {
			t.Errorf("Parse(%.100q) = %v, want an example", tc.text, err)
		} else if _, err := mcpsettings.Parse("f", []byte(example), env); err != nil {
			t.Errorf("the example does not parse: %v", err)
		}
	}
}

func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"mcpServers":{`)
	for i := range mcpsettings.MaxServers + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.Repeat("x", i%100) + string(rune('a'+i/100)) + `":{"command":"a"}`)
	}
	if _, err := parse(b.String() + `}}`); err == nil || !strings.Contains(err.Error(),
		"more than 1000 servers; split the file") {
		t.Errorf("Parse(1001 servers) = %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"command":"a","cwd":"${workspaceFolder}"}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	s, err := mcpsettings.Load(file, env)
	if err != nil || s.Servers[0].Dir != dir {
		t.Errorf("Load(%s) = %+v, %v", file, s, err)
	}
	missing := filepath.Join(dir, "none.json")
	for _, tc := range []struct {
		path string
		kind error
		want string
	}{
		{missing, errkind.NotFound, `there is no file ` + missing +
			`; give the path of an existing file, or write one such as {"mcpServers"`},
		{dir, errkind.Invalid, dir + ` is a folder; give the path of a file`},
		{filepath.Join(file, "below"), errkind.Invalid, `check the path and its permissions`},
	} {
		if runtime.GOOS == "windows" && filepath.Dir(tc.path) == file {
			continue // there is no such file
		}
		if _, err := mcpsettings.Load(tc.path, env); !errors.Is(err, tc.kind) ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("Load(%s) = %v, want %q of kind %v", tc.path, err, tc.want, tc.kind)
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load created %s", missing)
	}
}
