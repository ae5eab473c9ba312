package skill

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
)

// render returns the names of the skills for tools, each given as
// "server/tool", by that.
func render(t *testing.T, o Options, tools ...string) (names map[string]string, warnings []string) {
	t.Helper()
	var catalogs []mcpclient.Catalog
	for _, tool := range tools {
		server, tool, _ := strings.Cut(tool, "/")
		catalogs = append(catalogs, mcpclient.Catalog{Server: server, Tools: []mcpclient.Tool{{Name: tool}}})
	}
	skills, warnings := Render(catalogs, o)
	names = map[string]string{}
	for _, s := range skills {
		checkSkill(t, s)
		names[s.Server+"/"+strings.Join(s.Tools, " ")] = s.Name
	}
	return names, warnings
}

func TestSlug(t *testing.T) {
	for _, tc := range []struct{ tool, want string }{
		{"backgroundProcess/start_process", "background-process-start-process"},
		{"srv/getUserData", "srv-get-user-data"},
		{"srv/parseHTMLDoc", "srv-parse-html-doc"},
		{"srv/getHTTPSURL", "srv-get-httpsurl"},
		{"srv/OAuth2Login", "srv-o-auth2-login"},
		{"srv/list-files", "srv-list-files"},
		{"srv/__a..b--C D", "srv-a-b-c-d"},
		{"srv/v2Beta", "srv-v2-beta"},
		{"srv/日本search", "srv-search"},
		{"awslabs.aws-api-mcp-server/call_aws", "awslabs-aws-api-mcp-server-call-aws"},
		{"git/git_diff", "git-diff"},
		{"my-git/gitDiff", "my-git-diff"},
		{"mcp-git/mcp_git_diff", "mcp-git-diff"},
		{"git/git", "git"},
		{"git/github_log", "git-github-log"},
		{"a/a_a", "a-a"},
		{"srv/日本語", "srv-524f5e"},
		{"日本/工具", "mcp-b87724"},
		{"日本/tool", "tool-e546a1"},
		{"con/x", "con-x"},
		{"srv/" + strings.Repeat("n", 60), "srv-" + strings.Repeat("n", 60)},
		{"srv/" + strings.Repeat("n", 61), "srv-" + strings.Repeat("n", 53) + "-d50553"},
		{"srv/" + strings.Repeat("n", 52) + "_" + strings.Repeat("m", 9), "srv-" + strings.Repeat("n", 52) + "-513c83"},
	} {
		names, warnings := render(t, Options{}, tc.tool)
		if got := names[tc.tool]; got != tc.want {
			t.Errorf("name of %s = %q, want %q", tc.tool, got, tc.want)
		}
		if isHash(tc.want) != (len(warnings) == 1) {
			t.Errorf("warnings for %s = %q", tc.tool, warnings)
		}
	}
}

// isHash reports whether a name ends with six hexadecimal digits.
func isHash(name string) bool {
	end := name[strings.LastIndexByte(name, '-')+1:]
	return len(end) == 6 && strings.Trim(end, "0123456789abcdef") == ""
}

func TestSlugCollisions(t *testing.T) {
	names, warnings := render(t, Options{}, "srv/get_user", "srv/getUser", "srv/get.user", "a/b-c", "a-b/c",
		"free/tool")
	want := map[string]string{
		"srv/get_user": "srv-get-user-01fe66", "srv/getUser": "srv-get-user-e5d622",
		"srv/get.user": "srv-get-user-22b441",
		"a/b-c":        "a-b-c-02654a", "a-b/c": "a-b-c-695274", "free/tool": "free-tool",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	wantWarnings := []string{
		`tool "b-c" of server "a" is called "a-b-c-02654a": another one has the same plain name "a-b-c"`,
		`tool "c" of server "a-b" is called "a-b-c-695274": another one has the same plain name "a-b-c"`,
		`tool "get.user" of server "srv" is called "srv-get-user-22b441": another one has the same plain name ` +
			`"srv-get-user"`,
		`tool "getUser" of server "srv" is called "srv-get-user-e5d622": another one has the same plain name ` +
			`"srv-get-user"`,
		`tool "get_user" of server "srv" is called "srv-get-user-01fe66": another one has the same plain name ` +
			`"srv-get-user"`,
	}
	if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}

// TestSlugDoubles has names that differ only in whether they say the server's
// name twice: then each is said in full.
func TestSlugDoubles(t *testing.T) {
	names, warnings := render(t, Options{}, "git/diff", "git/git_diff", "git/git_log", "a/b", "a/a_b", "a-a/b")
	want := map[string]string{
		"git/diff": "git-diff", "git/git_diff": "git-git-diff", "git/git_log": "git-log",
		"a/b": "a-b", "a/a_b": "a-a-b-35ab59", "a-a/b": "a-a-b-0f0698",
	}
	if diff := cmp.Diff(want, names); diff != "" || len(warnings) != 2 {
		t.Errorf("names differ (-want +got), with warnings %q:\n%s", warnings, diff)
	}
}

// TestSlugHashCollision finds two names with the same slug and the same six
// digits of hash, and one that has taken the name of another with its hash.
func TestSlugHashCollision(t *testing.T) {
	seen := map[string]string{}
	var first, second string
	for i := range 1 << 16 {
		tool := "a" + strings.NewReplacer("0", "_", "1", ".").Replace(fmt.Sprintf("%016b", i)) + "b"
		name := claimTool("srv", tool).name(1)
		if other, ok := seen[name]; ok {
			first, second = other, tool
			break
		}
		seen[name] = tool
	}
	if second == "" {
		t.Fatal("no two names have the same hash")
	}
	names, _ := render(t, Options{}, "srv/"+first, "srv/"+second, "srv/a_b")
	if a, b := names["srv/"+first], names["srv/"+second]; a == b || len(a) != len("srv-a-b-")+12 || len(b) != len(a) {
		t.Errorf("names of %q and %q are %q and %q, want different ones with 12 digits", first, second, a, b)
	}
	taken := claimTool("srv", "日本").name(1)
	names, _ = render(t, Options{}, "srv/日本", "srv/"+strings.TrimPrefix(taken, "srv-"))
	for tool, name := range names {
		if name == taken {
			t.Errorf("%s is called %q, which both want", tool, name)
		}
	}
}

func TestSlugGrouped(t *testing.T) {
	names, warnings := render(t, Options{GroupByServer: true}, "nul/x", "com1/x", "con2/x", "My Server/con",
		"My_Server/日本", "日本/x")
	want := map[string]string{
		"nul/x": "nul-cd0798", "com1/x": "com1-c3367e", "con2/x": "con2",
		"My Server/con": "my-server-1e41b6", "My_Server/日本": "my-server-5d96c7", "日本/x": "mcp-e3aebe",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	if len(warnings) != 7 {
		t.Errorf("%d warnings, want 5 for servers and 2 for files:\n%s", len(warnings), strings.Join(warnings, "\n"))
	}
}
