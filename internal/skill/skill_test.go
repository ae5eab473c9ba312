package skill

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

var update = flag.Bool("update", false, "write the golden files again")

// parseCatalog reads a server's answers to initialize and tools/list, merged
// into one object, as testdata/servers keeps them.
func parseCatalog(t testing.TB, server string, raw []byte) mcpclient.Catalog {
	t.Helper()
	var answer struct {
		Capabilities struct {
			Tasks struct {
				Requests struct{ Tools struct{ Call *struct{} } }
			}
		}
		Instructions string
		Tools        []struct {
			Name, Title, Description               string
			InputSchema, OutputSchema, Annotations json.RawMessage
			Execution                              struct{ TaskSupport string }
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%s: %v", server, err)
	}
	c := mcpclient.Catalog{
		Server: server, Instructions: answer.Instructions,
		TaskCalls: answer.Capabilities.Tasks.Requests.Tools.Call != nil,
	}
	for _, a := range answer.Tools {
		c.Tools = append(c.Tools, mcpclient.Tool{Name: a.Name, Title: a.Title, Description: a.Description,
			InputSchema: a.InputSchema, OutputSchema: a.OutputSchema, Annotations: a.Annotations,
			TaskSupport: a.Execution.TaskSupport})
	}
	return c
}

// recorded returns the catalogs of public servers, by file name, and the bytes
// of their tools.
func recorded(t testing.TB) (catalogs []mcpclient.Catalog, sizes []int) {
	t.Helper()
	files, err := filepath.Glob("testdata/servers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded servers: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, parseCatalog(t, strings.TrimSuffix(filepath.Base(file), ".json"), raw))
		var list struct{ Tools json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(list.Tools))
	}
	return catalogs, sizes
}

// TestGolden compares the rendered skills with testdata/golden. Each archive has
// an input.json (options and the servers' answers by id); -update renders the
// rest again.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var input struct {
				Options Options
				Servers map[string]json.RawMessage
			}
			if err := json.Unmarshal(archive.Files[0].Data, &input); err != nil {
				t.Fatalf("%s: %v", archive.Files[0].Name, err)
			}
			var catalogs []mcpclient.Catalog
			for server, raw := range input.Servers {
				catalogs = append(catalogs, parseCatalog(t, server, raw))
			}
			skills, warnings := Render(catalogs, input.Options)
			got := txtar.Archive{Comment: archive.Comment, Files: archive.Files[:1:1]}
			if len(warnings) > 0 {
				got.Files = append(got.Files, txtar.File{Name: "warnings",
					Data: []byte(strings.Join(warnings, "\n") + "\n")})
			}
			for _, s := range skills {
				checkSkill(t, s)
				for _, f := range s.Files {
					got.Files = append(got.Files, txtar.File{Name: s.Name + "/" + f.Path, Data: f.Content})
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(&got))); diff != "" {
				t.Errorf("%s differs (-want +got); run go test -update if that is meant:\n%s", file, diff)
			}
		})
	}
}

// TestServers renders the tools of recorded public servers in every way.
func TestServers(t *testing.T) {
	catalogs, sizes := recorded(t)
	tools := 0
	for i, c := range catalogs {
		tools += len(c.Tools)
		var line []string
		for _, o := range []Options{{Description: "full"}, {}, {GroupByServer: true}} {
			o.Version = "1.0.0"
			skills, warnings := Render([]mcpclient.Catalog{c}, o)
			for _, w := range warnings {
				t.Errorf("%s: %s", c.Server, w)
			}
			for _, s := range skills {
				checkSkill(t, s)
			}
			n := CatalogLine(skills)
			line = append(line, fmt.Sprintf("%d (%.1fx)", n, float64(sizes[i])/float64(n)))
		}
		t.Logf("%-20s %3d tools, tools/list %6d bytes; catalog in characters: full %s, first sentence %s, by server %s",
			c.Server, len(c.Tools), sizes[i], line[0], line[1], line[2])
	}
	if len(catalogs) < 10 || tools < 150 {
		t.Errorf("%d servers with %d tools, want at least 10 and 150", len(catalogs), tools)
	}
	var bodies []int
	skills, _ := Render(catalogs, Options{Version: "1.0.0"})
	for _, s := range skills {
		bodies = append(bodies, len(file(t, s, "SKILL.md")))
	}
	if len(skills) != tools {
		t.Errorf("%d skills of %d tools", len(skills), tools)
	}
	slices.Sort(bodies)
	if median := bodies[len(bodies)/2]; median > 1900 {
		t.Errorf("the median SKILL.md has %d bytes, want at most 1,900", median)
	} else {
		t.Logf("SKILL.md: median %d bytes, largest %d; %d characters for all first sentences", median,
			bodies[len(bodies)-1], CatalogLine(skills))
	}
}

// TestRenderOrder shuffles servers and tools.
func TestRenderOrder(t *testing.T) {
	catalogs, _ := recorded(t)
	catalogs = append(catalogs, mcpclient.Catalog{Server: "Git_Hub",
		Tools: []mcpclient.Tool{{Name: "getIssue"}, {Name: "get_issue"}, {Name: "日本"}}},
		mcpclient.Catalog{Server: "git-hub", Tools: []mcpclient.Tool{{Name: "get.issue"},
			{Name: "get.issue", Description: "again"}}},
		mcpclient.Catalog{Server: "git-hub", Instructions: "Twice.", Tools: []mcpclient.Tool{{Name: "other"}}})
	for _, o := range []Options{{}, {GroupByServer: true}} {
		want, wantWarnings := Render(catalogs, o)
		random := rand.New(rand.NewPCG(1, 2))
		for range 3 {
			shuffled := slices.Clone(catalogs)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for i := range shuffled {
				tools := slices.Clone(shuffled[i].Tools)
				random.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
				shuffled[i].Tools = tools
			}
			got, warnings := Render(shuffled, o)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("Render(shuffled, %+v) differs:\n%s", o, cmp.Diff(want, got))
			}
			if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
				t.Fatalf("Render(shuffled, %+v): warnings differ:\n%s", o, diff)
			}
		}
	}
}

func TestRenderLeavesOut(t *testing.T) {
	skills, warnings := Render([]mcpclient.Catalog{
		{Server: "none"},
		{Server: "a", Tools: []mcpclient.Tool{{Name: ""}, {Name: strings.Repeat("n", 513)}, {Name: "ok"},
			{Name: "ok"}}},
		{Server: "b", Tools: []mcpclient.Tool{
			{Name: "bad", InputSchema: json.RawMessage(`{"type":`)},
			{Name: "deep", InputSchema: json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))},
			{Name: "large", InputSchema: json.RawMessage(`{"description":"` + strings.Repeat("x", 1<<20) + `"}`)},
		}},
	}, Options{})
	var names []string
	for _, s := range skills {
		checkSkill(t, s)
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a-ok", "b-bad", "b-deep", "b-large"}, names); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	want := []string{
		`1 tool is left out: its server lists it more than once`,
		`a tool of server "a" is left out: its name has 0 bytes, want 1 to 512`,
		`a tool of server "a" is left out: its name has 513 bytes, want 1 to 512`,
		`tool "bad" of server "b": its schema is not JSON and is left out`,
		`tool "deep" of server "b": its schema is nested too deeply; its arguments are not listed`,
		`tool "large" of server "b": its schema has 1048594 bytes, more than 1 MiB, and is left out`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}

// TestHashes changes one thing a server says at a time.
func TestHashes(t *testing.T) {
	base := mcpclient.Catalog{Server: "s", Tools: []mcpclient.Tool{{Name: "t", Description: "d",
		InputSchema: json.RawMessage(`{}`)}}}
	for _, group := range []bool{false, true} {
		before, _ := Render([]mcpclient.Catalog{base}, Options{GroupByServer: group, Version: "1"})
		for _, tc := range []struct {
			what   string
			change func(*mcpclient.Catalog)
			source bool
		}{
			{"nothing", func(*mcpclient.Catalog) {}, false},
			{"description", func(c *mcpclient.Catalog) { c.Tools[0].Description = "e" }, true},
			{"input schema", func(c *mcpclient.Catalog) { c.Tools[0].InputSchema = json.RawMessage(`{ }`) }, true},
			{"output schema", func(c *mcpclient.Catalog) { c.Tools[0].OutputSchema = json.RawMessage(`{}`) }, true},
			{"instructions", func(c *mcpclient.Catalog) { c.Instructions = "i" }, group},
		} {
			c := base
			c.Tools = slices.Clone(base.Tools)
			tc.change(&c)
			after, _ := Render([]mcpclient.Catalog{c}, Options{GroupByServer: group, Version: "2"})
			if got := before[0].SourceHash != after[0].SourceHash; got != tc.source {
				t.Errorf("group %v, %s changed: SourceHash differs = %v, want %v", group, tc.what, got, tc.source)
			}
		}
	}
}

func TestCatalogLine(t *testing.T) {
	skills := []Skill{{Name: "a-b", Description: "Gets é."}, {Name: "c", Description: "日本"}}
	want := utf8.RuneCountInString("- a-b: Gets é.\n- c: 日本\n")
	if got := CatalogLine(skills); got != want {
		t.Errorf("CatalogLine() = %d, want %d", got, want)
	}
}

// file returns the content of a skill's file.
func file(t testing.TB, s Skill, path string) string {
	t.Helper()
	for _, f := range s.Files {
		if f.Path == path {
			return string(f.Content)
		}
	}
	t.Fatalf("skill %s has no file %s", s.Name, path)
	return ""
}

// checkSkill checks a skill against the Agent Skills specification and our own
// promises.
func checkSkill(t testing.TB, s Skill) {
	t.Helper()
	if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(s.Name) || len(s.Name) > 64 {
		t.Errorf("skill name %q is not allowed", s.Name)
	}
	for i, f := range s.Files {
		if i > 0 && s.Files[i-1].Path >= f.Path {
			t.Errorf("skill %s: files are not sorted at %s", s.Name, f.Path)
		}
		if !regexp.MustCompile(`^(SKILL\.md|references/[a-z0-9-]+\.(md|json|schema\.json))$`).MatchString(f.Path) {
			t.Errorf("skill %s: path %q", s.Name, f.Path)
		}
		if i := bytes.IndexFunc(f.Content, func(r rune) bool {
			return r != '\n' && r != '\t' &&
				sanitize.Invisible(r)
		}); i >= 0 || !utf8.Valid(f.Content) {
			t.Errorf("skill %s: %s has hidden characters or is not UTF-8, at %d", s.Name, f.Path, i)
		}
		switch {
		case strings.HasSuffix(f.Path, ".json") && !json.Valid(f.Content):
			t.Errorf("skill %s: %s is not JSON", s.Name, f.Path)
		case strings.HasSuffix(f.Path, ".md"):
			checkPage(t, s, f)
		}
	}
	checkFrontmatter(t, s)
}

// checkFrontmatter reads a skill's frontmatter as strictly as its readers.
func checkFrontmatter(t testing.TB, s Skill) {
	t.Helper()
	text := file(t, s, "SKILL.md")
	parts := strings.SplitN(text, "---", 3) // as the official validator does
	if len(parts) != 3 || parts[0] != "" || !strings.HasPrefix(parts[2], "\n") {
		t.Fatalf("skill %s: no frontmatter in %.200q", s.Name, text)
	}
	var front struct {
		Name, Description, Compatibility string
		Metadata                         map[string]string
	}
	dec := yaml.NewDecoder(strings.NewReader(parts[1]))
	dec.KnownFields(true)
	if err := dec.Decode(&front); err != nil {
		t.Fatalf("skill %s: reading the frontmatter: %v\n%s", s.Name, err, parts[1])
	}
	if front.Name != s.Name {
		t.Errorf("skill %s: name in the frontmatter is %q", s.Name, front.Name)
	}
	if front.Description != s.Description || strings.TrimSpace(s.Description) == "" ||
		utf8.RuneCountInString(s.Description) > 1024 ||
		strings.ContainsAny(s.Description, "\n<>") {
		t.Errorf("skill %s: description is %q, in the frontmatter %q", s.Name, s.Description, front.Description)
	}
	if n := len(front.Compatibility); n < 1 || n > 500 {
		t.Errorf("skill %s: compatibility has %d characters", s.Name, n)
	}
	if got, want := front.Metadata["mcp_server_id"], strings.ToValidUTF8(s.Server, "\ufffd"); got != want {
		t.Errorf("skill %s: mcp_server_id = %q, want %q", s.Name, got, want)
	}
	if got, ok := front.Metadata["mcp_tool_name"]; ok && got != strings.ToValidUTF8(s.Tools[0], "\ufffd") {
		t.Errorf("skill %s: mcp_tool_name = %q, want %q", s.Name, got, s.Tools[0])
	}
	if got, _, err := FrontmatterDescription([]byte(text)); err != nil || got != s.Description {
		t.Errorf("FrontmatterDescription(%s) = %q, %v, want %q", s.Name, got, err, s.Description)
	}
}

// checkPage checks that a page has our headings and no others outside of
// fences, and that its fences hold and say the truth.
func checkPage(t testing.TB, s Skill, f File) {
	t.Helper()
	ours := []string{"Usage", "Server Instructions", "Tools", "Tool Description", "Arguments", "Background Tasks"}
	var fence, code string
	var headings []string
	for line := range strings.Lines(string(f.Content)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence != "":
			code += line + "\n"
		case strings.HasPrefix(line, "```"):
			fence = line[:len(line)-len(strings.TrimLeft(line, "`"))]
		case strings.HasPrefix(strings.TrimLeft(line, " "), "#"):
			headings = append(headings, line)
		}
	}
	if fence != "" {
		t.Errorf("skill %s: %s: a fence is not closed", s.Name, f.Path)
	}
	if len(headings) < 2 || !strings.HasPrefix(headings[0], "# MCP ") {
		t.Fatalf("skill %s: %s: headings are %q", s.Name, f.Path, headings)
	}
	last := -1
	for _, h := range headings[1:] {
		at := slices.Index(ours, strings.TrimPrefix(h, "## "))
		if at <= last {
			t.Errorf("skill %s: %s: heading %q is not ours or not in its place", s.Name, f.Path, h)
		}
		last = at
	}
	var request struct {
		Server string `json:"server_id"`
		Tool   string `json:"tool_name"`
		Params struct{ Name string }
	}
	_, after, _ := strings.Cut("\n"+code, "\n{")
	if err := json.NewDecoder(strings.NewReader("{" + after)).Decode(&request); err != nil {
		t.Errorf("skill %s: %s: the request does not parse: %v\n%s", s.Name, f.Path, err, code)
	}
	if n := strings.Count("\n"+code, "\ncurl "); n != 1 || !strings.Contains(code, "\nknowhow start --mcp-settings ") {
		t.Errorf("skill %s: %s: it has %d commands that call the tool, want 1, and the one that starts the "+
			"bridge:\n%s", s.Name, f.Path, n, code)
	}
	valid := func(name string) bool { return name == strings.ToValidUTF8(name, "") }
	if tool := request.Tool + request.Params.Name; request.Server != s.Server && valid(s.Server) ||
		!slices.Contains(s.Tools, tool) && !slices.ContainsFunc(s.Tools, func(n string) bool { return !valid(n) }) {
		t.Errorf("skill %s: %s: the request is for %q, %q", s.Name, f.Path, request.Server, tool)
	}
}
