package skill

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

func TestFirstSentence(t *testing.T) {
	for _, tc := range []struct{ description, want string }{
		{"", ""},
		{"Gets it", "Gets it"},
		{"Gets it. Then more.", "Gets it."},
		{"Gets files, e.g. README.md, i.e. text. More.", "Gets files, e.g. README.md, i.e. text."},
		{"Reads v1.2 of https://example.com/a.b?c. Second.", "Reads v1.2 of https://example.com/a.b?c."},
		{"Runs in the U.S. only. Second.", "Runs in the U.S. only."},
		{"By J. Smith and others. Second.", "By J. Smith and others."},
		{"Finds users, etc. Second sentence.", "Finds users, etc."},
		{"Important! Always call this first. Then others.", "Important! Always call this first."},
		{"Is it there? Says so.", "Is it there?"},
		{"Says \"done.\" Then stops.", "Says \"done.\""},
		{"# Search\n\nSearches things. More.", "Searches things."},
		{"# Only a heading", "Only a heading"},
		{"**Bold** words here. More.", "Bold words here."},
		{"- item one\n- item two", "item one"},
		{"> 1. Quoted words\nmore", "Quoted words more"},
		{"---\n<purpose>\nFinds a thing.\n</purpose>", "Finds a thing."},
		{"```\ncode. Here.\n```\nReal text.", "Real text."},
		{"Notion | Retrieve a user\nError Responses:\n400: 400", "Notion | Retrieve a user"},
		{"Searches the\nwhole of it. More.", "Searches the whole of it."},
		{"A line that is long enough to be taken for one that goes on in the\nGitHub API. More.",
			"A line that is long enough to be taken for one that goes on in the GitHub API."},
		{"Returns information about:\n- a\n- b", "Returns information about…"},
		{"検索します。次の文。", "検索します。"},
		{"What...? More.", "What...? More."},
		{"Reads it.\u202e\u0007 More.", "Reads it."},
		{".", "."},
	} {
		if got := firstSentence(tc.description); got != tc.want {
			t.Errorf("firstSentence(%q) = %q, want %q", tc.description, got, tc.want)
		}
	}
}

func TestDescriptionLength(t *testing.T) {
	long := strings.Repeat("wörter ", 500)
	for _, tc := range []struct {
		description string
		o           Options
		want        string
	}{
		{long, Options{}, strings.TrimSpace(strings.Repeat("wörter ", 28)) + "…"},
		{long, Options{Description: "full"}, strings.TrimSpace(strings.Repeat("wörter ", 146)) + "…"},
		{strings.Repeat("字", 3000), Options{}, strings.Repeat("字", 199) + "…"},
		{"One.\n\nTwo <b> three.", Options{Description: "full"}, "One. Two ‹b› three."},
		{" \u200b\n", Options{}, "Invoke MCP tool t on server s."},
	} {
		skills, _ := Render([]mcpclient.Catalog{{Server: "s",
			Tools: []mcpclient.Tool{{Name: "t", Description: tc.description}}}}, tc.o)
		if got := skills[0].Description; got != tc.want {
			t.Errorf("description of %.30q with %+v = %q, want %q", tc.description, tc.o, got, tc.want)
		}
	}
}

func TestQuoteYAML(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", `""`},
		{`a "b" \ c`, `"a \"b\" \\ c"`},
		{"a\nb\tc\x00\x7f", `"a\nb\tc\u0000\u007f"`},
		{"--- ---- ------", `"\u002d-- \u002d\u002d-- \u002d\u002d\u002d\u002d--"`},
		{"é 日 😀", `"é 日 😀"`},
		{"\u202e\ufeff\ufffe\U000e0041", `"\u202e\ufeff\ufffe\U000e0041"`},
	} {
		if got := sanitize.QuoteYAML(tc.in); got != tc.want {
			t.Errorf("sanitize.QuoteYAML(%q) = %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestFence(t *testing.T) {
	for _, tc := range []struct{ code, want string }{
		{"a", "```x\na\n```\n"},
		{"a `b`\n", "```x\na `b`\n```\n"},
		{"```\nb\n````", "`````x\n```\nb\n````\n`````\n"},
	} {
		if got := fence("x", tc.code); got != tc.want {
			t.Errorf("fence(%q) = %q, want %q", tc.code, got, tc.want)
		}
	}
	for name, want := range map[string]string{"a": "`a`", "a`b": "``a`b``", "`": "`` ` ``", "": "`  `",
		"a\nb\u202e": "`a b`"} {
		if got := codeSpan(name); got != want {
			t.Errorf("codeSpan(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestShell lets a shell read the commands for names and values that mean
// something to shells, and looks at the words it makes of them.
func TestShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	start := []string{"mcp-bridge", "start", "--mcp-settings", "it's $(here)/mcp settings.json", "--include", "a*"}
	for _, tc := range []struct{ server, tool, schema, arguments string }{
		{"srv", "plain",
			`{"properties":{"path":{"type":"string","default":"/a b"},"n":{"type":"integer"}},"required":["n",` +
				`"path"]}`, `{"path":"/a b","n":1}`},
		{"srv", "it's $(id) `id` \"x\" \\ !", `{"required":["a'b $x"]}`, `{"a'b $x":"example"}`},
		{"srv", "nested",
			`{"properties":{"o":{"type":"object","properties":{"k":{"const":"it's"}},"required":["k"]},` +
				`"s":{"type":"string","const":""}},"required":["o","s"]}`,
			`{"o":{"k":"it's"},"s":""}`},
		{"srv", "line\nEND\nfeed", `{"required":["a\u202eb\nEND"]}`, `{"a` + "\u202e" + `b\nEND":"example"}`},
		{"-srv", "x", ``, `{}`},
	} {
		skills, _ := Render([]mcpclient.Catalog{{Server: tc.server,
			Tools: []mcpclient.Tool{{Name: tc.tool, InputSchema: json.RawMessage(tc.schema)}}}}, Options{Start: start})
		codes := fences(file(t, skills[0], "SKILL.md"), "sh")
		if len(codes) != 2 {
			t.Fatalf("%s: commands %q, want one that calls and one that starts", tc.tool, codes)
		}
		var words [2][]string // of a command, and what it reads
		for i, code := range codes {
			cmd := exec.Command(sh, "-c", "words() { printf '%s\\0' \"$@\"; cat; }\nwords "+code)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MCP_BRIDGE_TOKEN=a b"}
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: the shell refuses %s: %v", tc.tool, code, err)
			}
			words[i] = strings.Split(string(out), "\x00")
		}
		curl := words[0][:len(words[0])-1]
		if diff := cmp.Diff([]string{"curl", "-sS", "http://127.0.0.1:3333/invoke", "-H",
			"Content-Type: application/json", "-H", "Authorization: Bearer a b", "-d", "@-"}, curl); diff != "" {
			t.Errorf("%s: words of curl differ (-want +got):\n%s", tc.tool, diff)
		}
		if diff := cmp.Diff(append(slices.Clone(start), ""), words[1]); diff != "" {
			t.Errorf("%s: words of the start differ (-want +got):\n%s", tc.tool, diff)
		}
		var request struct {
			Server    string          `json:"server_id"`
			Tool      string          `json:"tool_name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		body := words[0][len(words[0])-1]
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Errorf("%s: reading %q: %v", tc.tool, body, err)
			continue
		}
		if request.Server != tc.server || request.Tool != tc.tool ||
			!sameJSON(t, string(request.Arguments), tc.arguments) {
			t.Errorf("%s: the request is %s, want arguments %s", tc.tool, body, tc.arguments)
		}
	}
}

// fences returns the code in the fences of a language.
func fences(page, language string) []string {
	var codes []string
	fence := ""
	keep := false
	for line := range strings.Lines(page) {
		marks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(marks) >= 3:
			fence, keep = marks, strings.TrimSpace(line[len(marks):]) == language
			if keep {
				codes = append(codes, "")
			}
		case fence != "" && strings.TrimSpace(line) == fence:
			fence, keep = "", false
		case keep:
			codes[len(codes)-1] += line
		}
	}
	return codes
}

// sameJSON reports whether two JSON texts mean the same.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return cmp.Equal(x, y)
}
