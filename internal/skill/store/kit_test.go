package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/skill"

	"github.com/google/go-cmp/cmp"
)

// offered returns a skill as a server would have it rendered.
func offered(server, tool, description string) skill.Skill {
	name := server + "-" + tool
	md := fmt.Sprintf("---\nname: %q\ndescription: %q\nmetadata:\n  mcp_server_id: %q\n  mcp_tool_name: "+
		"%q\n---\n\n# MCP Tool: %s\n\n%s\n",
		name, description, server, tool, tool, description)
	return skill.Skill{
		Name: name, Server: server, Tools: []string{tool}, Description: description,
		SourceHash: sum([]byte(tool + description)),
		Files: []skill.File{
			{Path: "references/schema.json", Content: []byte("{}\n")},
			{Path: "SKILL.md", Content: []byte(md)},
		},
	}
}

// content returns what servers offer: "git/status" is the tool status of the
// server git.
func content(tools ...string) Content {
	var c Content
	for _, name := range tools {
		server, tool, _ := strings.Cut(name, "/")
		c.Skills = append(c.Skills, offered(server, tool, "Does "+tool+"."))
	}
	return c
}

// options returns those of a sync in a new folder.
func options(t testing.TB) Options {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return Options{Base: t.TempDir(), ConfigHash: "c1"}
}

func mustSync(t testing.TB, o Options, c Content) *Report {
	t.Helper()
	r, err := Sync(t.Context(), o, c)
	if err != nil {
		t.Fatalf("Sync: %v", err)
	}
	return r
}

// tree returns what lies below dir: contents of files, "-> " and targets of
// links, "dir" of empty folders.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		delete(found, strings.TrimSuffix(filepath.ToSlash(filepath.Dir(rel)), "/")+"/")
		switch {
		case d.IsDir():
			found[rel+"/"] = "dir"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[rel] = "-> " + filepath.ToSlash(target)
			return err
		default:
			data, err := os.ReadFile(path)
			found[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// paths returns the sorted paths of a tree, links with their targets; those of
// the lock file and of schemas are left out.
func paths(t testing.TB, dir string) []string {
	t.Helper()
	list := []string{}
	for p, what := range tree(t, dir) {
		switch {
		case p == lockName || strings.HasSuffix(p, "/schema.json"):
			continue
		case strings.HasPrefix(what, "-> "):
			p += " " + what
		}
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func write(t testing.TB, text string, elem ...string) {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, target string, elem ...string) {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.FromSlash(target), path); err != nil {
		t.Skipf("links can't be made here: %v", err)
	}
}

func read(t testing.TB, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// replace edits a file as a person would.
func replace(t testing.TB, from, to string, elem ...string) {
	t.Helper()
	text := read(t, elem...)
	if !strings.Contains(text, from) {
		t.Fatalf("%s has no %q", filepath.Join(elem...), from)
	}
	write(t, strings.Replace(text, from, to, 1), elem...)
}

// refuse is a file system without links.
func refuse(string, string) error { return &os.LinkError{Op: "symlink", Err: fs.ErrPermission} }

// kept returns the paths that the warnings of a report say were left alone.
func kept(r *Report) []string {
	var paths []string
	for _, w := range r.Warnings {
		if path, _, _ := strings.Cut(w, " "); strings.Contains(w, "left alone") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// lockHash returns the hash in the lock file.
func lockHash(t testing.TB, o Options) string {
	t.Helper()
	l, err := parseLock([]byte(read(t, o.Base, lockName)))
	if err != nil {
		t.Fatal(err)
	}
	return l.Hash
}

// logTo returns a logger that writes levels and messages to buf.
func logTo(buf *bytes.Buffer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(buf, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}
