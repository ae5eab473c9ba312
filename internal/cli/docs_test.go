package cli

import (
	flags "flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page returns a page of the documents.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Update rewrites the tables in the documents and the expected output in the scripts.
var Update = flags.Bool("update", false, "rewrite the tables in the documents and the expected output in the test scripts")

// TestFlagTables compares the tables of flags in the documents with the flags. A
// table stands between <!-- flags COMMAND --> and <!-- /flags -->; -update
// rewrites it. The table of start leaves out the flags of sync.
func TestFlagTables(t *testing.T) {
	v, _ := testInvocation(nil)
	table := regexp.MustCompile(`(?s)<!-- flags ([\w ]+) -->\n(.*?)<!-- /flags -->`)
	var missing []string
	for _, c := range v.commands() {
		if strings.Contains(c.help, "{flags}") && c.name != "mcp" { // which has those of serve
			missing = append(missing, c.name)
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		text := page(t, filepath.Base(path))
		want := table.ReplaceAllStringFunc(text, func(s string) string {
			name := table.FindStringSubmatch(s)[1]
			c, ok := v.find(name)
			if !ok {
				t.Errorf("%s: there is no command %s", path, name)
				return s
			}
			missing = slices.DeleteFunc(missing, func(s string) bool { return s == name })
			return "<!-- flags " + name + " -->\n" + flagTable(v, c) + "<!-- /flags -->"
		})
		if *Update && want != text {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nrun go test ./internal/cli -run TestFlagTables -update", path, diff)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no document has the flags of %v", missing)
	}
}

// flagTable returns the table of a command's flags.
func flagTable(v *invocation, c command) string {
	f, sync := newFlagSet(v, c.options), &flagSet{}
	if c.name == "start" {
		sync = newFlagSet(v, &syncFlags{})
	}
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
	}
	var b strings.Builder
	b.WriteString("| flag | default | environment variable | meaning |\n|---|---|---|---|\n")
	for _, d := range f.flags {
		name, help := d.String(), d.Help
		switch {
		case sync.find(d.Name) != nil:
			continue
		case d.Name == "":
			name = ""
		}
		if d.many {
			help += "; repeatable"
		}
		if d.alias != "" {
			help += "; also `--" + d.alias + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(name), code(d.Default),
			strings.TrimSuffix(code(d.Env)+", "+code(d.aliasEnv), ", "), help)
	}
	return b.String()
}

// Every flag that the documents mention exists.
func TestDocumentedFlags(t *testing.T) {
	v, _ := testInvocation(nil)
	known := map[string]bool{"help": true, "version": true}
	for _, c := range v.commands() {
		for _, d := range newFlagSet(v, c.options).flags {
			known[d.Name], known[d.alias] = true, true
		}
	}
	for _, name := range []string{"serve.md", "command-line.md", "notes.md", "datasets.md", "fess.md", "skills.md",
		"bridge.md", "content.md", "jobs.md", "security.md", "troubleshooting.md"} {
		for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(page(t, name), -1) {
			if !known[m[1]] {
				t.Errorf("docs/%s mentions --%s, which does not exist", name, m[1])
			}
		}
	}
}
