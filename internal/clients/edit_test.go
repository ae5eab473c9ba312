package clients_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/configfile"
)

// TestEdits adds entries to a file of each client, which is like those in its
// documentation, and removes them. The files in testdata/edit have it before and
// after.
func TestEdits(t *testing.T) {
	for _, c := range clients.All() {
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join("testdata", "edit", c.Name+".txtar")
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before := archive.Files[0].Data
			f, _ := c.File(written[0].system, clients.User)
			after := before
			servers := entriesOf(c)
			for _, s := range servers {
				f.Place.Name = s.Name
				if after, err = configfile.Set(f.Format, after, f.Place, c.Entry(s)); err != nil {
					t.Fatal(err)
				}
				entry, found, err := configfile.Get(f.Format, after, f.Place)
				if err != nil || !found || !c.Same(s, entry) {
					t.Errorf("the entry %s is %v, %t, %v", s.Name, entry, found, err)
				}
				other := s
				other.URL, other.Args = s.URL+"x", append([]string{"x"}, s.Args...)
				if c.Same(other, entry) {
					t.Errorf("the entry %s is also that of another server", s.Name)
				}
			}
			if *update {
				archive.Files = []txtar.File{{Name: "before", Data: before}, {Name: "after", Data: after}}
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(archive.Files) < 2 {
				t.Fatalf("%s has no file after", path)
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), string(after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
			restored := after
			for _, s := range servers {
				f.Place.Name = s.Name
				if restored, err = configfile.Undo(f.Format, restored, before, f.Place); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(before), string(restored)); diff != "" {
				t.Errorf("the file after adding and removing (-want +got):\n%s", diff)
			}
		})
	}
}

// entriesOf returns the servers that a client is connected to in tests: one that it
// starts, and one that runs, with a token if it can send one.
func entriesOf(c *clients.Client) []clients.Server {
	servers := []clients.Server{{Name: "handbook", Command: "/usr/local/bin/knowhow",
		Args: []string{"mcp", "/home/me/handbook"}}}
	if !c.HTTP {
		return servers
	}
	team := clients.Server{Name: "team", URL: "http://127.0.0.1:7411/mcp"}
	if c.Variable != "" {
		team.TokenEnv = "KNOWHOW_TOKEN"
	}
	return append(servers, team)
}
