package cli

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
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
		if got := slug(tt.path); got != tt.want {
			t.Errorf("slug(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestDomainID(t *testing.T) {
	tests := []struct{ label, want string }{
		{"docs", "docs"},
		{"docs-2", "docs_2"},
		{"A.b-C", "a_b_c"},
		{"abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwx"},
		{"kb", "kb_docs"},
		{"KB", "kb_docs"},
	}
	for _, tt := range tests {
		if got := domainID(tt.label); got != tt.want {
			t.Errorf("domainID(%q) = %q, want %q", tt.label, got, tt.want)
		}
	}
}

func TestAddSource(t *testing.T) {
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
	}
	for _, tt := range tests {
		got, added, err := addSource(known, tt.path, tt.label)
		if !errors.Is(err, tt.kind) {
			t.Errorf("addSource(%q, %q): error %v, want kind %v", tt.path, tt.label, err, tt.kind)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || added != tt.added {
			t.Errorf("addSource(%q, %q): added %v, want %v; source (-want +got):\n%s", tt.path, tt.label, added, tt.added, diff)
		}
	}
}
