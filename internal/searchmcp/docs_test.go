package searchmcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/google/go-cmp/cmp"
)

// TestDocs compares the tables of tools and of their arguments in the documents
// with what clients are shown. A table stands between <!-- NAME --> and
// <!-- /NAME -->; -update rewrites it.
func TestDocs(t *testing.T) {
	b := New(Options{Domain: finance, Backend: corpus(), Jobs: job.New(job.Options{})})
	tools, _ := listTools(t, start(t, Options{Domain: finance, Backend: corpus(), Jobs: b.jobs}, mcpserver.Pinned))
	folders, _ := listTools(t, start(t, Options{Domain: finance, Backend: corpus(), Jobs: b.jobs, Wording: OfFolders},
		mcpserver.Pinned))
	byName := map[string]listedTool{}
	for _, tool := range tools {
		byName[strings.TrimPrefix(tool.Name, b.toolName(""))] = tool
	}
	arguments := func(name string) string { return argumentTable(t, byName[name].InputSchema) }
	// The fields differ by service; the document has a table of them.
	searching := strings.Replace(arguments("search"), "Any of "+strings.Join(b.backend.FacetFields(), ", "),
		"Other fields over folders than over a Fess server, see below", 1)
	for file, tables := range map[string]map[string]string{
		"README.md": {"tools": toolTable(t, folders)},
		"docs/search.md": {"search": searching, "suggest": arguments("suggest"),
			"popular_words": arguments("popular_words")},
		"docs/reading.md": {"read_content": arguments("read_content"), "get_document": arguments("get_document")},
		"docs/jobs.md":    {"job_get": arguments("job_get")},
	} {
		path := filepath.Join("..", "..", filepath.FromSlash(file))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := string(text)
		for name, table := range tables {
			want = between(t, file, want, name, table)
		}
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nrun go test ./internal/searchmcp -run TestDocs -update", file, diff)
		}
	}
}

// between replaces what stands between the marks of that name.
func between(t *testing.T, file, text, name, table string) string {
	t.Helper()
	open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(text, open)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 || strings.Contains(after, open) {
		t.Fatalf("%s: want %s and %s once, in this order", file, strings.TrimSpace(open), end)
	}
	return before + open + table + end + after
}

// shownSchema is a schema as clients see it, with its properties in order.
type shownSchema struct {
	Type, Description string
	Properties        ordered
	Required, Enum    []string
	Items             *struct{ Type string }
	Minimum, Maximum  *float64
	MaxLength         int
	Default           any
}

// ordered are the members of an object in the order in which they stand there.
type ordered []member

type member struct {
	name   string
	schema shownSchema
}

func (o *ordered) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.schema); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}

func parseSchema(t *testing.T, raw json.RawMessage) shownSchema {
	t.Helper()
	var s shownSchema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// toolTable has a row for each tool: name, arguments, and the first sentence of
// what is said of it.
func toolTable(t *testing.T, tools []listedTool) string {
	var b strings.Builder
	b.WriteString("| tool | arguments | does |\n|---|---|---|\n")
	for _, tool := range tools {
		s := parseSchema(t, tool.InputSchema)
		var names []string
		for _, p := range s.Properties {
			name := "`" + p.name + "`"
			if s.requires(p.name) {
				name = "**" + name + "**"
			}
			names = append(names, name)
		}
		if names == nil {
			names = []string{"none"}
		}
		does, _, _ := strings.Cut(strings.SplitN(tool.Description, ".\n", 2)[0], ". ")
		fmt.Fprintf(&b, "| `%s` | %s | %s. |\n", strings.Replace(tool.Name, finance.ID, "DOMAIN", 1),
			strings.Join(names, ", "), cell(does))
	}
	return b.String()
}

// argumentTable has a row for each argument and for the members of those that
// are objects.
func argumentTable(t *testing.T, raw json.RawMessage) string {
	var b strings.Builder
	b.WriteString("| argument | type | meaning |\n|---|---|---|\n")
	var add func(prefix string, s shownSchema)
	add = func(prefix string, s shownSchema) {
		for _, p := range s.Properties {
			kind := p.schema.kind()
			if s.requires(p.name) {
				kind += ", required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", prefix+p.name, kind, cell(p.schema.Description))
			add(prefix+p.name+".", p.schema)
		}
	}
	add("", parseSchema(t, raw))
	return b.String()
}

func (s shownSchema) requires(name string) bool { return slices.Contains(s.Required, name) }

// kind is the type with its bounds, in words.
func (s shownSchema) kind() string {
	k := s.Type
	if s.Items != nil {
		k = "list of " + s.Items.Type + "s"
	}
	if s.Minimum != nil && s.Maximum != nil {
		k += fmt.Sprintf(", %.0f to %.0f", *s.Minimum, *s.Maximum)
	}
	if s.MaxLength > 0 {
		k += fmt.Sprintf(", at most %d characters", s.MaxLength)
	}
	if s.Default != nil {
		k += fmt.Sprintf(", default %v", s.Default)
	}
	if len(s.Enum) > 0 {
		k += ": " + "`" + strings.Join(s.Enum, "`, `") + "`"
	}
	return k
}

// cell is a text in a table.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(s) }
