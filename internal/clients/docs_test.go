package clients_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

// TestDocs compares the sections of docs/client-settings.md with the table; -update
// rewrites them.
func TestDocs(t *testing.T) {
	const page = "../../docs/client-settings.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("<!-- clients -->\n\n")
	for _, c := range clients.All() {
		b.WriteString(section(t, c))
	}
	b.WriteString("<!-- /clients -->")
	generated := regexp.MustCompile(`(?s)<!-- clients -->.*<!-- /clients -->`)
	if !generated.Match(text) {
		t.Fatalf("%s has no <!-- clients -->", page)
	}
	want := generated.ReplaceAllLiteralString(string(text), b.String())
	if *update && want != string(text) {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", page, diff)
	}
}

// written are systems whose folders are as people write them.
var written = []struct {
	name   string
	system clients.System
}{
	{"Linux", machine(clients.System{GOOS: "linux", Home: "~"}, nil, nil, nil)},
	{"macOS", machine(clients.System{GOOS: "darwin", Home: "~"}, nil, nil, nil)},
	{"Windows", machine(clients.System{GOOS: "windows", Home: "%USERPROFILE%"},
		map[string]string{"APPDATA": "%APPDATA%", "LOCALAPPDATA": "%LOCALAPPDATA%"}, nil, nil)},
}

// section returns the section about a client.
func section(t *testing.T, c *clients.Client) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n```sh\nknowhow connect %s ~/handbook\n", c.Title, c.Name)
	if c.HTTP {
		b.WriteString("knowhow connect " + c.Name + " --url http://127.0.0.1:7411/mcp")
		if c.Variable != "" {
			b.WriteString(" --token-env KNOWHOW_TOKEN")
		}
		b.WriteString("\n")
	}
	if slices.Contains(c.Scopes(), clients.Project) {
		fmt.Fprintf(&b, "knowhow connect %s --scope project docs\n", c.Name)
	}
	b.WriteString("```\n\n")
	if c.Verb != nil {
		fmt.Fprintf(&b, "This runs the client's own command if `%s` is on the `PATH`, and changes the file otherwise. ",
			c.Verb.Program)
	}
	b.WriteString(files(c) + ":\n\n" + snippet(t, c) + "\n")
	if c.Instead != "" {
		b.WriteString(c.Instead + " ")
	}
	next := c.Next
	if c.NextProject != "" {
		next += " " + c.NextProject
	}
	fmt.Fprintf(&b, "Afterwards: %s\n\n[Documentation of %s](%s)\n\n", next, c.Title, c.Docs)
	return b.String()
}

// files describes where a client has its configuration.
func files(c *clients.Client) string {
	var all []string
	same := true
	for _, w := range written {
		f, _ := c.File(w.system, clients.User)
		path := strings.ReplaceAll(f.Path, `%USERPROFILE%`, "~")
		all = append(all, path)
		same = same && strings.ReplaceAll(path, `\`, "/") == all[0]
	}
	text := "The file is `" + all[0] + "`"
	switch {
	case same:
	case all[0] == all[1]:
		text += ", on Windows `" + all[2] + "`"
	default:
		text += ", on macOS `" + all[1] + "` and on Windows `" + all[2] + "`"
	}
	s := written[0].system
	s.Dir = "."
	if f, ok := c.File(s, clients.Project); ok {
		text += ", and in a project `" + f.Path + "`"
	}
	return text
}

// snippet returns the entries of a client in its format.
func snippet(t *testing.T, c *clients.Client) string {
	f, _ := c.File(written[0].system, clients.User)
	var data []byte
	for _, s := range entriesOf(c) {
		f.Place.Name = s.Name
		var err error
		if data, err = configfile.Set(f.Format, data, f.Place, c.Entry(s)); err != nil {
			t.Fatal(err)
		}
	}
	return "```" + string(f.Format) + "\n" + strings.TrimSpace(string(data)) + "\n```\n"
}
