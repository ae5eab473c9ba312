package repository

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		source string
		want   Remote
		name   string
	}{
		{"git+https://github.com/org/repo", Remote{URL: "https://github.com/org/repo"}, "repo"},
		{"git+https://github.com/org/repo.git#main", Remote{URL: "https://github.com/org/repo.git", Branch: "main"}, "repo"},
		{"git+https://github.com/org/repo/#main:docs/guide/", Remote{"https://github.com/org/repo", "main", "docs/guide"}, "repo"},
		{"git+https://h/r#:docs", Remote{URL: "https://h/r", Folder: "docs"}, "r"},
		{"git+https://h/r#feature/a.b_c-d", Remote{URL: "https://h/r", Branch: "feature/a.b_c-d"}, "r"},
		{"git+ssh://git@host:2222/~me/r.git", Remote{URL: "ssh://git@host:2222/~me/r.git"}, "r"},
		{"git+file:///srv/git/handbook.git", Remote{URL: "file:///srv/git/handbook.git"}, "handbook"},
	} {
		got, err := Parse(tt.source)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("Parse(%q): %v (-want +got):\n%s", tt.source, err, diff)
		}
		if got.Name() != tt.name {
			t.Errorf("name of %q = %q, want %q", tt.source, got.Name(), tt.name)
		}
		if again, err := Parse(got.String()); again != got || err != nil {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", got, again, err, got)
		}
	}
	for _, source := range []string{"", "git+", "https://h/r", "git+http://h/r", "git+ext::sh -c id", "git+ext://h/r",
		"git+https:///r", "git+https://h", "git+https://h/", "git+file:r", "git+file:/srv/r", "git+file://host/r", "git+ssh://-oProxyCommand=id/r",
		"git+ssh://-oX@h/r", "git+https://h/r?x=1", "git+https://me:hunter2@h/r", "git+https://h/r#-x", "git+https://h/r#:../../etc", "git+https://h/r#a..b",
		"git+https://h/r#a b", "git+https://h/r#a:b\x00c", "git+https://h/r#a@{1}", "git+https://h/r#a.lock",
		"git+https://[::1/r", `git+https://h/r#a:b\c`} {
		r, err := Parse(source)
		if !errors.Is(err, errkind.Invalid) {
			t.Errorf("Parse(%q) = %+v, %v, want an error of kind Invalid", source, r, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse(%q): the error has the password: %v", source, err)
		}
	}
}

func TestPage(t *testing.T) {
	for _, tt := range []struct{ source, name, want string }{
		{"git+https://github.com/org/repo.git#main:docs", "a b.md", "https://github.com/org/repo/blob/c0/docs/a%20b.md"},
		{"git+ssh://git@GitHub.com/org/repo.git", "a.md", "https://github.com/org/repo/blob/c0/a.md"},
		{"git+https://gitlab.com/group/sub/repo", "a.md", "https://gitlab.com/group/sub/repo/-/blob/c0/a.md"},
		{"git+https://codeberg.org/org/repo", "a#1?.md", "https://codeberg.org/org/repo/src/commit/c0/a%231%3F.md"},
		{"git+https://bitbucket.org/org/repo", "a.md", "https://bitbucket.org/org/repo/src/c0/a.md"},
		{"git+https://example.com/r#main:docs", "a.md", "git+https://example.com/r#c0:docs/a.md"},
		{"git+file:///srv/r", "d/a.md", "git+file:///srv/r#c0:d/a.md"},
	} {
		r, err := Parse(tt.source)
		if got := r.Page("c0", tt.name); got != tt.want || err != nil {
			t.Errorf("page of %s in %s = %q, %v, want %q", tt.name, tt.source, got, err, tt.want)
		}
	}
}
