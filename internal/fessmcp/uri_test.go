package fessmcp

import (
	"errors"
	"strings"
	"testing"

	"knowhow/internal/errkind"
)

func TestParseURI(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want address
	}{
		{"fess://finance/doc/e79fbfdfb09d4bffb58ec230c68f6f7e", address{id: "e79fbfdfb09d4bffb58ec230c68f6f7e"}},
		{"fess://finance/doc/a-B_9/content", address{id: "a-B_9", content: true}},
		{"fess://finance/doc/content", address{id: "content"}},
		{"fess://finance/doc/content/content", address{id: "content", content: true}},
		{"fess://finance/doc/%61bc", address{id: "abc"}},
		{"fess://finance/doc/" + strings.Repeat("a", 128), address{id: strings.Repeat("a", 128)}},
	} {
		got, err := finance.parseURI(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
	}
}

func TestParseURIRefuses(t *testing.T) {
	for _, in := range []string{
		"",
		"finance",
		"https://finance/doc/abc",
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
		if got, err := finance.parseURI(in); !errors.Is(err, errkind.NotFound) || len(err.Error()) > 600 {
			t.Errorf("parseURI(%.80q) = %+v, %v, want a short error of kind NotFound", in, got, err)
		}
	}
}

func FuzzParseURI(f *testing.F) {
	f.Add("fess://finance/doc/abc/content")
	f.Add("fess://finance/doc/%61%2f..")
	f.Fuzz(func(t *testing.T, uri string) {
		a, err := finance.parseURI(uri)
		if err != nil {
			if !errors.Is(err, errkind.NotFound) {
				t.Fatalf("parseURI(%q) = %v, want kind NotFound", uri, err)
			}
			return
		}
		if !isID(a.id) {
			t.Fatalf("parseURI(%q).id = %q", uri, a.id)
		}
		canonical := finance.documentURI(a.id)
		if a.content {
			canonical = finance.contentURI(a.id)
		}
		if again, err := finance.parseURI(canonical); err != nil || again != a {
			t.Fatalf("parseURI(%q) = %+v, but parseURI(%q) = %+v, %v", uri, a, canonical, again, err)
		}
	})
}
