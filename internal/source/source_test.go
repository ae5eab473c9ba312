package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestSlug(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/home/me/docs", "docs"},
		{"/home/me/My Docs (2026)", "my-docs-2026"},
		{"/a/Straße.md", "stra-e-md"},
		{"/a/日本", "source"},
		{"/", "source"},
		{"/a/--x--", "x"},
		{"/a/UPPER_case", "upper-case"},
	}
	for _, tt := range tests {
		if got := slug(filepath.Base(tt.path)); got != tt.want {
			t.Errorf("slug(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestDomain(t *testing.T) {
	tests := []struct{ label, want string }{
		{"docs", "docs"},
		{"docs-2", "docs_2"},
		{"A.b-C", "a_b_c"},
		{"abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwx"},
		{"kb", "kb_docs"},
		{"KB", "kb_docs"},
	}
	for _, tt := range tests {
		if got := Domain(tt.label); got != tt.want {
			t.Errorf("Domain(%q) = %q, want %q", tt.label, got, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	known := []document.Source{{Label: "docs", Path: "/a/docs"}, {Label: "docs-2", Path: "/b/docs"}}
	tests := []struct {
		path, label string
		want        document.Source
		added       bool
		kind        error
	}{
		{path: "/a/docs", want: known[0]},
		{path: "/a/docs", label: "docs", want: known[0]},
		{path: "/a/docs", label: "other", kind: errkind.Conflict},
		{path: "/c/docs", want: document.Source{Label: "docs-3", Path: "/c/docs"}, added: true},
		{path: "/c/docs", label: "mine", want: document.Source{Label: "mine", Path: "/c/docs"}, added: true},
		{path: "/c/docs", label: "docs", kind: errkind.Conflict},
		{path: "/c/new", want: document.Source{Label: "new", Path: "/c/new"}, added: true},
		{path: "/home/me/Documents", want: document.Source{Label: "me-documents", Path: "/home/me/Documents"},
			added: true},
		{path: "/home/Me 2/documents", want: document.Source{Label: "me-2-documents", Path: "/home/Me 2/documents"},
			added: true},
		{path: "https://docs.example.com/guide/", want: document.Source{Label: "docs-example-com-guide",
			Path: "https://docs.example.com/guide/"}, added: true},
		{path: "http://localhost:8080/", want: document.Source{Label: "localhost", Path: "http://localhost:8080/"}, added: true},
		{path: "https://documents/", want: document.Source{Label: "site-documents", Path: "https://documents/"}, added: true},
		{path: "git+https://example.com/team/wiki.git#main:docs", want: document.Source{Label: "wiki",
			Path: "git+https://example.com/team/wiki.git#main:docs"}, added: true},
		{path: "git+https://example.com/a/team/kb.git", want: document.Source{Label: "team-kb",
			Path: "git+https://example.com/a/team/kb.git"}, added: true},
		{path: "git+ssh://git@h/team/documents.git#main", want: document.Source{Label: "team-documents",
			Path: "git+ssh://git@h/team/documents.git#main"}, added: true},
		{path: "git+https://h/kb", want: document.Source{Label: "kb-2", Path: "git+https://h/kb"}, added: true},
		{path: "/home/me/KB", want: document.Source{Label: "me-kb", Path: "/home/me/KB"}, added: true},
		{path: "/Documents", want: document.Source{Label: "documents-2", Path: "/Documents"}, added: true},
		{path: "/文書/kb", want: document.Source{Label: "kb-2", Path: "/文書/kb"}, added: true},
		{path: "/home/me/Documents", label: "documents",
			want: document.Source{Label: "documents", Path: "/home/me/Documents"}, added: true},
		{path: "/x/kb", label: "kb", want: document.Source{Label: "kb", Path: "/x/kb"}, added: true},
	}
	for _, tt := range tests {
		got, added, err := New(known, tt.path, tt.label)
		if !errors.Is(err, tt.kind) {
			t.Errorf("New(%q, %q): error %v, want kind %v", tt.path, tt.label, err, tt.kind)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || added != tt.added {
			t.Errorf("New(%q, %q): added %v, want %v; source (-want +got):\n%s", tt.path, tt.label, added, tt.added,
				diff)
		}
	}
}

func TestResolve(t *testing.T) {
	for name, want := range map[string]string{
		"HTTPS://Docs.Example.com:443/guide": "https://docs.example.com/guide",
		"http://h.example":                   "http://h.example/",
		"git+https://h.example/a/b.git":      "git+https://h.example/a/b.git",
	} {
		if got, err := Resolve(name); err != nil || got != want || !Remote(got) {
			t.Errorf("Resolve(%s) = %s, %v, want %s, which is remote", name, got, err, want)
		}
	}
	for name, kind := range map[string]error{"ftp://h/": errkind.Unsupported, "https://": errkind.Invalid,
		"git+http://h/a": errkind.Invalid} {
		if got, err := Resolve(name); !errors.Is(err, kind) {
			t.Errorf("Resolve(%s) = %s, %v, want kind %v", name, got, err, kind)
		}
	}
}

func TestNested(t *testing.T) {
	docs := document.Source{Label: "docs", Path: "/a/docs"}
	api := document.Source{Label: "api", Path: "/a/docs/api"}
	other := document.Source{Label: "docs-2", Path: "/a/docs-2"}
	for _, tt := range []struct {
		name   string
		served []document.Source
		want   []Nesting
	}{
		{"one inside another", []document.Source{docs, api}, []Nesting{{Inner: api, Outer: docs}}},
		{"one", []document.Source{api}, nil},
		{"beside each other", []document.Source{docs, other}, nil},
	} {
		if diff := cmp.Diff(tt.want, Nested(tt.served)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestSame checks that a remembered folder is found under each of its names.
func TestSame(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	moved, old, file := filepath.Join(base, "moved"), filepath.Join(base, "old"), filepath.Join(base, "a.md")
	if err := os.Mkdir(moved, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, old); err != nil {
		t.Skip(err)
	}
	linked := filepath.Join(base, "b.md")
	if err := os.Link(file, linked); err != nil {
		t.Skip(err)
	}
	known := []document.Source{{Path: filepath.Join(base, "gone")}, {Path: old}, {Path: linked}}
	for path, want := range map[string]string{
		moved: old, // the folder was moved, and its old name is a link
		old:   old,
		file:  file, // another name is another file
		base:  base,
	} {
		if got := Same(known, path); got != want {
			t.Errorf("Same(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	docs, api := document.Source{Label: "docs", Path: "/a/docs", Description: "old"},
		document.Source{Label: "api", Path: "/a/api"}
	keep := func(r document.Rules) document.Rules { return r }
	named := func(path, label, description string) Request {
		return Request{Path: path, Label: label, Description: description, Rules: keep}
	}
	described := docs
	described.Description = "new"
	excluded := api
	excluded.Rules.Exclude = []string{"*.tmp"}
	added := document.Source{Label: "docs-2", Path: "/b/docs"}
	tests := []struct {
		name                   string
		requests               []Request
		chosen, changed, added []document.Source
	}{
		{"none", nil, nil, nil, nil},
		{"known, in another order", []Request{named("/a/api", "", ""), named("/a/docs", "docs", "")},
			[]document.Source{api, docs}, nil, nil},
		{"described again", []Request{named("/a/docs", "", "old")}, []document.Source{docs}, nil, nil},
		{"described otherwise", []Request{named("/a/docs", "", "new")}, []document.Source{described},
			[]document.Source{described}, nil},
		{"other rules", []Request{{Path: "/a/api",
			Rules: func(document.Rules) document.Rules { return excluded.Rules }}},
			[]document.Source{excluded}, []document.Source{excluded}, nil},
		{"new", []Request{named("/b/docs", "", "")}, []document.Source{added}, []document.Source{added},
			[]document.Source{added}},
		{"named twice", []Request{named("/a/docs", "", ""), named("/a/docs", "", "new")}, []document.Source{described},
			[]document.Source{described}, nil},
	}
	for _, tt := range tests {
		chosen, changed, added, err := Choose([]document.Source{docs, api}, tt.requests)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff([][]document.Source{tt.chosen, tt.changed, tt.added},
			[][]document.Source{chosen, changed, added}); diff != "" {
			t.Errorf("%s: chosen, changed and added (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, _, _, err := Choose([]document.Source{docs}, []Request{named("/b/docs", "docs", "")}); !errors.Is(err,
		errkind.Conflict) {
		t.Errorf("a label that is taken: error %v, want kind Conflict", err)
	}
}

func TestVast(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "people", "me")
	link := filepath.Join(base, "link")
	if err := os.MkdirAll(filepath.Join(home, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ home, path, want string }{
		{home, home, "your home folder"},
		{link, home, "your home folder"},
		{home, link, "your home folder"}, // another spelling of it
		{home + "/", home, "your home folder"},
		{home, filepath.Dir(home), "a folder that contains your home folder"},
		{home, filepath.VolumeName(base) + string(filepath.Separator), "a whole disk"},
		{home, filepath.Join(home, "docs"), ""},
		{home, filepath.Join(base, "people", "you"), ""},
		{"", home, ""},
	} {
		if got := Vast(tt.path, tt.home); got != tt.want {
			t.Errorf("Vast(%s) with home %s = %q, want %q", tt.path, tt.home, got, tt.want)
		}
	}
}

func TestCountFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d/e", ".hidden", ".git/config"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		limit, want int
		all         bool
	}{{10, 3, true}, {3, 3, true}, {2, 2, false}} {
		if n, all := CountFiles(t.Context(), dir, tt.limit); n != tt.want || all != tt.all {
			t.Errorf("CountFiles up to %d = %d, %v, want %d, %v", tt.limit, n, all, tt.want, tt.all)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, all := CountFiles(ended, dir, 10); n != 0 || all {
		t.Errorf("CountFiles that was cancelled = %d, %v, want 0, false", n, all)
	}
}

// A folder may be named by "file:" and its path, or by its URL.
func TestResolveFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	for _, name := range []string{"file:" + filepath.Base(dir), "file:" + dir, "file://" + filepath.ToSlash(dir)} {
		if got, err := Resolve(name); err != nil || got != dir {
			t.Errorf("Resolve(%s) = %s, %v, want %s", name, got, err, dir)
		}
	}
}
