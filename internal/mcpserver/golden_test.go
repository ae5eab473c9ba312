package mcpserver_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares transcripts with testdata/name.txtar.
func golden(t *testing.T, name string, got *txtar.Archive) {
	t.Helper()
	file := filepath.Join("testdata", name+".txtar")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update", err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(txtar.Format(got)), "\n")); d != "" {
		t.Errorf("%s (-want +got), -update accepts it:\n%s", file, d)
	}
}

// The same on stdio and over HTTP, so one transcript serves both.
func transcript(t *testing.T, o mcpserver.Options, say func(s *mcptest.Session) []string) []byte {
	t.Helper()
	var first []string
	transports(t, o, func(t *testing.T, _ *kit, s *mcptest.Session) {
		got := say(s)
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Errorf("differs from stdio (-stdio +here):\n%s", d)
		}
	})
	return []byte(strings.Join(first, "\n") + "\n")
}

func TestGoldenInitialize(t *testing.T) {
	ar := &txtar.Archive{Comment: []byte(
		"What initialize answers, by the server's revision and the one that is asked for.\n")}
	for _, revision := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Pinned, mcpserver.Latest} {
		for _, asked := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			if revision != mcpserver.Latest && asked != "2025-11-25" {
				continue
			}
			data := transcript(t, mcpserver.Options{Revision: revision, Instructions: "Search first."},
				func(s *mcptest.Session) []string {
					return []string{s.Initialize(asked).Raw}
				})
			ar.Files = append(ar.Files, txtar.File{Name: fmt.Sprintf("%s asked for %s", revision, asked), Data: data})
		}
	}
	s := newKit(mcpserver.Options{Instructions: "Search first."}).stdio(t)
	ar.Files = append(ar.Files, txtar.File{Name: "latest, server/discover", Data: []byte(s.Call("server/discover",
		modern(map[string]any{})).Raw + "\n")})
	golden(t, "initialize", ar)
}

func TestGoldenTools(t *testing.T) {
	ar := &txtar.Archive{Comment: []byte("tools/list and tools/call, by revision.\n")}
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		data := transcript(t, mcpserver.Options{}, func(s *mcptest.Session) []string {
			s.Initialize(revision)
			lines := []string{s.Call("tools/list", nil).Raw}
			for _, name := range []string{"echo", "meta", "list", "progress"} {
				lines = append(lines, s.Call("tools/call", map[string]any{"name": name}).Raw)
			}
			for _, name := range []string{"conflict", "remote", "plain"} {
				lines = append(lines, s.Call("tools/call", map[string]any{"name": "fail",
					"arguments": map[string]any{"name": name}}).Raw)
			}
			for _, name := range []string{"search", "nosuch"} {
				lines = append(lines, s.Call("tools/call", map[string]any{"name": name}).Raw)
			}
			return lines
		})
		ar.Files = append(ar.Files, txtar.File{Name: revision, Data: data})
	}
	golden(t, "tools", ar)
}

func TestGoldenErrors(t *testing.T) {
	ar := &txtar.Archive{Comment: []byte("The error of each kind of failure, as the fail tool returns it.\n")}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		data := transcript(t, mcpserver.Options{Revision: mcpserver.Pinned}, func(s *mcptest.Session) []string {
			s.Initialize("2025-03-26")
			m := s.Call("tools/call", map[string]any{"name": "fail", "arguments": map[string]any{"name": name}})
			return []string{m.Raw}
		})
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: data})
	}
	golden(t, "errors", ar)
}
