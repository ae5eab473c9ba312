package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
)

func TestNestedSources(t *testing.T) {
	docs := document.Source{Label: "docs", Path: "/a/docs"}
	api := document.Source{Label: "api", Path: "/a/docs/api"}
	other := document.Source{Label: "docs-2", Path: "/a/docs-2"}
	const (
		warning = `source "api" (/a/docs/api) is inside source "docs" (/a/docs): its files are indexed twice`
		hint    = "; to forget one of them, type: knowhow sources rm LABEL"
	)
	for _, tt := range []struct {
		name          string
		served, known []document.Source
		want          []string
	}{
		{"both served", []document.Source{docs, api}, []document.Source{docs, api, other}, []string{warning + ", and found twice" + hint}},
		{"inner served", []document.Source{api}, []document.Source{docs, api}, []string{warning + hint}},
		{"outer served", []document.Source{docs}, []document.Source{docs, api}, []string{warning + hint}},
		{"neither served", []document.Source{other}, []document.Source{docs, api, other}, nil},
		{"beside each other", []document.Source{docs, other}, []document.Source{docs, other}, nil},
	} {
		if diff := cmp.Diff(tt.want, nestedSources(tt.served, tt.known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestVastFolder(t *testing.T) {
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
		{home + "/", home, "your home folder"},
		{home, filepath.Dir(home), "a folder that contains your home folder"},
		{home, filepath.VolumeName(base) + string(filepath.Separator), "a whole disk"},
		{home, filepath.Join(home, "docs"), ""},
		{home, filepath.Join(base, "people", "you"), ""},
		{"", home, ""},
	} {
		v := &invocation{Env: Env{Lookup: func(name string) (string, bool) { return tt.home, name == "HOME" }}}
		if got := v.vastFolder(tt.path); got != tt.want {
			t.Errorf("vastFolder(%s) with home %s = %q, want %q", tt.path, tt.home, got, tt.want)
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
		if n, all := countFiles(t.Context(), dir, tt.limit); n != tt.want || all != tt.all {
			t.Errorf("countFiles up to %d = %d, %v, want %d, %v", tt.limit, n, all, tt.want, tt.all)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, all := countFiles(ended, dir, 10); n != 0 || all {
		t.Errorf("countFiles that was cancelled = %d, %v, want 0, false", n, all)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 100_000: "100,000", 1_234_567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
