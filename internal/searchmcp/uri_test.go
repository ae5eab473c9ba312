package searchmcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestParseURI(t *testing.T) {
	b := &Tools{domain: finance}
	for _, tt := range []struct {
		in   string
		want address
	}{
		{"fess://finance/doc/e79fbfdfb09d4bffb58ec230c68f6f7e",
			address{scheme: "fess", domain: "finance", id: "e79fbfdfb09d4bffb58ec230c68f6f7e"}},
		{"fess://finance/doc/a-B_9/content", address{scheme: "fess", domain: "finance", id: "a-B_9", content: true}},
		{"fess://finance/doc/content", address{scheme: "fess", domain: "finance", id: "content"}},
		{"fess://finance/doc/content/content", address{scheme: "fess", domain: "finance", id: "content",
			content: true}},
		{"fess://finance/doc/%61bc", address{scheme: "fess", domain: "finance", id: "abc"}},
		{"fess://finance/doc/" + strings.Repeat("a", 128), address{scheme: "fess", domain: "finance",
			id: strings.Repeat("a", 128)}},
	} {
		got, err := b.parseURI(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
	}
}

// TestFolderURI checks that resources of folders have URIs of their own, and that
// those of earlier versions can be read.
func TestFolderURI(t *testing.T) {
	b := &Tools{domain: finance, wording: OfFolders}
	for _, scheme := range []string{"knowhow", "fess"} {
		for uri, want := range map[string]address{
			scheme + "://finance/doc/abc":         {scheme: scheme, domain: "finance", id: "abc"},
			scheme + "://finance/doc/abc/content": {scheme: scheme, domain: "finance", id: "abc", content: true},
		} {
			if got, err := b.parseURI(uri); err != nil || got != want || got.String() != uri {
				t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want)
			}
		}
	}
	if got := b.address("abc").String(); got != "knowhow://finance/doc/abc" {
		t.Errorf("the URI of a document is %s", got)
	}
	_, err := b.parseURI("knowhow://hr/doc/abc")
	if !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(),
		"knowhow://finance/doc/DOC_ID and knowhow://finance/doc/DOC_ID/content") {
		t.Errorf("parseURI() of another domain = %v", err)
	}
}

func TestParseURIRefuses(t *testing.T) {
	b := &Tools{domain: finance}
	for _, in := range []string{
		"",
		"finance",
		"https://finance/doc/abc",
		"knowhow://finance/doc/abc",
		"FESS://finance/doc/abc",
		"fess://hr/doc/abc",
		"fess://finance_2/doc/abc",
		"fess://user@finance/doc/abc",
		"fess://finance:80/doc/abc",
		"fess://finance",
		"fess://finance/",
		"fess://finance/doc",
		"fess://finance/doc/",
		"fess://finance/doc//content",
		"fess://finance/docs/abc",
		"fess://finance/doc/abc/",
		"fess://finance/doc/abc/content/",
		"fess://finance/doc/abc/contents",
		"fess://finance/doc/abc/content/content",
		"fess://finance/doc/a/b",
		"fess://finance/doc/a%2Fb",
		"fess://finance/doc/..",
		"fess://finance/doc/%2e%2e",
		"fess://finance/doc/../doc/abc",
		"fess://finance/doc/abc%",
		"fess://finance/doc/abc%zz",
		"fess://finance/doc/abc%00",
		"fess://finance/doc/a b",
		"fess://finance/doc/a+b",
		"fess://finance/doc/*",
		"fess://finance/doc/id\" OR label:hr",
		"fess://finance/doc/日本",
		"fess://finance/doc/abc#frag",
		"fess://finance/doc/abc?x=1",
		"fess://finance/doc/abc?",
		"fess://finance/doc/abc/content?cursor=%",
		"fess://finance/doc/" + strings.Repeat("a", 129),
		"fess://finance/doc/" + strings.Repeat("a", 100_000),
	} {
		if got, err := b.parseURI(in); !errors.Is(err, errkind.NotFound) || len(err.Error()) > 600 {
			t.Errorf("parseURI(%.80q) = %+v, %v, want a short error of kind NotFound", in, got, err)
		}
	}
}

func FuzzParseURI(f *testing.F) {
	f.Add("fess://finance/doc/abc/content")
	f.Add("fess://finance/doc/%61%2f..")
	b := &Tools{domain: finance, wording: OfFolders}
	f.Fuzz(func(t *testing.T, uri string) {
		a, err := b.parseURI(uri)
		if err != nil {
			if !errors.Is(err, errkind.NotFound) {
				t.Fatalf("parseURI(%q) = %v, want kind NotFound", uri, err)
			}
			return
		}
		if !isID(a.id) {
			t.Fatalf("parseURI(%q).id = %q", uri, a.id)
		}
		canonical := a.String()
		if again, err := b.parseURI(canonical); err != nil || again != a {
			t.Fatalf("parseURI(%q) = %+v, but parseURI(%q) = %+v, %v", uri, a, canonical, again, err)
		}
	})
}
