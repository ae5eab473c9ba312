package cli

import (
	flags "flag"
	"fmt"
	"maps"
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

// Update rewrites the reference in the documents and the expected output in the scripts.
var Update = flags.Bool("update", false, "rewrite the reference in the documents and the expected output in the test scripts")

// reference is the page with the flags and variables of all commands.
const reference = "reference.md"

// TestReference compares docs/reference.md with what the commands declare.
func TestReference(t *testing.T) {
	v, _ := testInvocation(nil)
	var listed []command // in the order of the overview, each before those below it
	for _, s := range sections {
		for name := range strings.FieldsSeq(s.commands) {
			for _, c := range v.commands() {
				if c.name == name || strings.HasPrefix(c.name, name+" ") {
					listed = append(listed, c)
				}
			}
		}
	}
	shared := sharedRows(v, listed)
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, s := range sections {
		title := "\n## " + s.title + "\n"
		for _, c := range listed {
			if name, _, _ := strings.Cut(c.name, " "); slices.Contains(strings.Fields(s.commands), name) {
				b.WriteString(title + describe(v, c, shared))
				title = ""
			}
		}
	}
	b.WriteString("\n## Flags of several commands\n\n" + tableHead)
	for _, row := range shared {
		b.WriteString(row)
	}
	b.WriteString("\n## Environment variables\n\n| variable | what it sets |\n|---|---|\n")
	variables := variables(v, listed)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, variables[name])
	}
	if *Update {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", reference), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(b.String(), page(t, reference)); diff != "" {
		t.Errorf("docs/%s (-want +got):\n%s\nrun go test ./internal/cli -run TestReference -update", reference, diff)
	}
}

// The beginnings of the reference and of its tables.
const (
	referenceHead = `# Commands, flags and environment variables

<!-- go test ./internal/cli -run TestReference -update writes this page from the declarations of the flags. -->

Flags are written as ` + "`--flag value` or `--flag=value`, before or after operands; after `--`" + ` everything is an operand. A flag takes
precedence over its environment variable, and the first of two variables over the second. An empty variable counts as not set. Paths may begin with
` + "`~/`. A token consists of visible ASCII characters without blanks. `--help`" + ` of every command shows examples.

The exit status is 0 for success, 1 for failure, 2 for wrong usage and 130 after an interrupt. Results are on stdout; everything else is on stderr.
`
	tableHead = "| flag | default | environment variable | meaning |\n|---|---|---|---|\n"
)

// ownFlags returns the flags of a command, for start without those of sync, and for mcp,
// which has those of serve, none.
func ownFlags(v *invocation, c command) []*flag {
	flags := newFlagSet(v, c.options).flags
	switch c.name {
	case "mcp":
		return nil
	case "start":
		sync := newFlagSet(v, &syncFlags{})
		return slices.DeleteFunc(flags, func(d *flag) bool { return sync.find(d.Name) != nil })
	}
	return flags
}

// row returns the row of a table for a flag.
func row(d *flag) string {
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
	}
	name, help := d.String(), d.Help
	if d.Name == "" {
		name = ""
	}
	if d.many {
		help += "; repeatable"
	}
	if d.alias != "" {
		help += "; also `--" + d.alias + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", code(name), code(d.Default),
		strings.TrimSuffix(code(d.Env)+", "+code(d.aliasEnv), ", "), help)
}

// sharedRows returns the rows that three or more commands have, in order.
func sharedRows(v *invocation, commands []command) (shared []string) {
	count := map[string]int{}
	for _, c := range commands {
		for _, d := range ownFlags(v, c) {
			r := row(d)
			if count[r]++; count[r] == 3 {
				shared = append(shared, r)
			}
		}
	}
	return shared
}

// describe returns the part of the reference about a command.
func describe(v *invocation, c command, shared []string) string {
	text, _, _ := strings.Cut(strings.ReplaceAll(c.help, "{cmd}", v.Program+" "+c.name), "\n{flags}")
	text, _, _ = strings.Cut(text, "\nExample")
	usage, about, _ := strings.Cut(text, "\n\n")
	s := fmt.Sprintf("\n### %s %s\n\n```\n%s\n```\n\n%s\n", v.Program, c.name, usage, strings.TrimSpace(about))
	rows, also := "", []string{}
	for _, d := range ownFlags(v, c) {
		switch r := row(d); {
		case !slices.Contains(shared, r):
			rows += r
		case d.Name == "":
			also = append(also, "`"+d.Env+"`")
		default:
			also = append(also, "`--"+d.Name+"`")
		}
	}
	if rows != "" {
		s += "\n" + tableHead + rows
	}
	if len(also) > 0 {
		s += "\n[Of several commands](#flags-of-several-commands): " + strings.Join(also, ", ") + "\n"
	}
	switch c.name {
	case "mcp":
		s += "\nIt has the flags of [knowhow serve](#knowhow-serve).\n"
	case "start":
		s += "\nIt also has the flags of [knowhow sync](#knowhow-sync).\n"
	}
	return s
}

// variables returns what each environment variable sets: flags and their commands.
func variables(v *invocation, commands []command) map[string]string {
	type use struct{ variable, flag string }
	uses, order := map[use][]string{}, []use{}
	for _, c := range commands {
		for _, d := range ownFlags(v, c) {
			for _, env := range []string{d.Env, d.aliasEnv} {
				u := use{env, ""}
				if d.Name != "" {
					u.flag = "`--" + d.Name + "` of "
				}
				if env != "" && uses[u] == nil {
					order = append(order, u)
				}
				uses[u] = append(uses[u], "`"+c.name+"`")
			}
		}
	}
	all := map[string]string{}
	for _, u := range order {
		if all[u.variable] != "" {
			all[u.variable] += "; "
		}
		all[u.variable] += u.flag + strings.Join(uses[u], ", ")
	}
	return all
}

// pages returns the texts of README and of the documents by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// Every flag that the documents mention exists.
func TestDocumentedFlags(t *testing.T) {
	v, _ := testInvocation(nil)
	known := map[string]bool{"help": true, "version": true,
		"flag": true, "header": true, "amend": true, "format": true} // of other programs
	for _, c := range v.commands() {
		for _, d := range newFlagSet(v, c.options).flags {
			known[d.Name], known[d.alias] = true, true
		}
	}
	for path, text := range pages(t) {
		for _, m := range regexp.MustCompile("`--([a-z][a-z-]*)").FindAllStringSubmatch(text, -1) {
			if !known[m[1]] {
				t.Errorf("%s mentions --%s, which does not exist", path, m[1])
			}
		}
	}
}

// Every command of this program in code in the documents exists, and has its flags.
func TestDocumentedCommands(t *testing.T) {
	v, _ := testInvocation(nil)
	blocks := regexp.MustCompile("(?s)```sh\n.*?```|`[^`\n]+`")
	call := regexp.MustCompile("(?m)(?:^|^`|^[^#]*[= ]|[|(] )knowhow ([a-z_]+)( [a-z]+)?([^`#|\n]*)")
	for path, text := range pages(t) {
		for _, code := range blocks.FindAllString(text, -1) {
			if strings.HasSuffix(path, "messages.md") && !strings.HasPrefix(code, "```") {
				continue // a message
			}
			for _, m := range call.FindAllStringSubmatch(strings.ReplaceAll(code, "\\\n", " "), -1) {
				c, ok := v.find(m[1] + m[2])
				if !ok {
					c, ok = v.find(m[1])
				}
				if !ok {
					t.Errorf("%s: there is no command %q in %q", path, m[1], m[0])
					continue
				}
				f := newFlagSet(v, c.options)
				for _, name := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(m[3], -1) {
					if f.find(name[1]) == nil && name[1] != "help" {
						t.Errorf("%s: %s has no flag --%s in %q", path, c.name, name[1], m[0])
					}
				}
			}
		}
	}
}
