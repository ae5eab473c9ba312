package site

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestParse(t *testing.T) {
	type parsed struct{ Start, Scope, Host, Name string }
	for _, tt := range []struct {
		source string
		want   parsed
	}{
		{"https://Docs.Example.com:443/guide/", parsed{"https://docs.example.com/guide/", "https://docs.example.com/guide/",
			"docs.example.com", "docs.example.com guide"}},
		{"http://h.example", parsed{"http://h.example/", "http://h.example/", "h.example", "h.example"}},
		{"HTTP://h.example:8080/a/b.html?x=1#top", parsed{"http://h.example:8080/a/b.html?x=1", "http://h.example:8080/a/",
			"h.example", "h.example b.html"}},
		{"http://[::1]:80/a", parsed{"http://[::1]/a", "http://[::1]/", "::1", "::1 a"}},
		{"https://bücher.example/ä/", parsed{"https://xn--bcher-kva.example/%C3%A4/", "https://xn--bcher-kva.example/%C3%A4/",
			"xn--bcher-kva.example", "xn--bcher-kva.example ä"}},
	} {
		s, err := Parse(tt.source)
		if err != nil {
			t.Errorf("Parse(%s): %v", tt.source, err)
			continue
		}
		if diff := cmp.Diff(tt.want, parsed{s.String(), s.scope, s.Host(), s.Name()}); diff != "" {
			t.Errorf("Parse(%s) (-want +got):\n%s", tt.source, diff)
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("Parse(%s) = %v, %v, want %v", s, again, err, s)
		}
	}
	for _, source := range []string{"docs", "ftp://h/", "https://", "https:///a", "http://user:secret@h/",
		"http://a b/", "http://h:port/", "https://" + strings.Repeat("a", maxAddress)} {
		if s, err := Parse(source); !errors.Is(err, errkind.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%.40s) = %v, %v, want kind Invalid without the password", source, s, err)
		}
	}
}

// One page has one address.
func TestAddress(t *testing.T) {
	base, err := url.Parse("https://h.example/docs/a/page.html?x=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ ref, want string }{
		{"b.html", "https://h.example/docs/a/b.html"},
		{"b.html#part", "https://h.example/docs/a/b.html"},
		{"#part", "https://h.example/docs/a/page.html?x=1"},
		{"", "https://h.example/docs/a/page.html?x=1"},
		{"?y=2", "https://h.example/docs/a/page.html?y=2"},
		{"?", "https://h.example/docs/a/page.html"},
		{"..", "https://h.example/docs/"},
		{"../../../../up", "https://h.example/up"},
		{"https://H.Example:443/docs/./b/../c", "https://h.example/docs/c"},
		{"https://h.example/docs/%2e%2E/c", "https://h.example/c"},
		{"//h.example./c", "https://h.example/c"},
		{"http://h.example:80/", "http://h.example/"},
		{"http://h.example:443/", "http://h.example:443/"},
		{"https://h.example", "https://h.example/"},
		{"/%7Eme/%c3%A4ä b", "https://h.example/~me/%C3%A4%C3%A4%20b"},
		{"/100%", "https://h.example/100%25"},
		{"/a%2Fb%3Fc", "https://h.example/a%2Fb%3Fc"},
		{" \n/sp\tlit ", "https://h.example/split"},
		{`\docs\c`, "https://h.example/docs/c"},
		{"/c?b=2&a=1&&", "https://h.example/c?b=2&a=1"},
		{"/c?utm_source=x&id=7&PHPSESSID=abc&gclid=1", "https://h.example/c?id=7"},
		{"/c?fbclid=1", "https://h.example/c"},
		{"/c?sid=1&Session=2&q=sid", "https://h.example/c?q=sid"},
		{"/c;jsessionid=12AB?x=1", "https://h.example/c?x=1"},
		{"/c;JSESSIONID=12AB/d;v=1", "https://h.example/c/d;v=1"},
		{"/s%p%zz", "https://h.example/s%25p%25zz"},
		{"mailto:a@b.example", ""},
		{"javascript:void(0)", ""},
		{"data:text/html,x", ""},
		{"https://me@h.example/", ""},
		{"https://me:secret@h.example/", ""},
		{"http://a b/", ""},
		{"http://", ""},
		{"/?" + strings.Repeat("a=1&", maxParameters), ""},
		{"/" + strings.Repeat("a", maxAddress), ""},
	} {
		got, ok := address(base, tt.ref)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("address(%.60q) = %q, %v, want %q", tt.ref, got, ok, tt.want)
		}
		if !ok {
			continue
		}
		if again, ok := address(nil, got); !ok || again != got {
			t.Errorf("address(%q) = %q, %v, want it unchanged", got, again, ok)
		}
	}
}

func TestPath(t *testing.T) {
	s, err := Parse("https://h.example/docs/")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ rest, want string }{
		{"", "index"},
		{"index", "%69ndex"},
		{"index.html", "index.html"},
		{"?page=2", "?page=2"},
		{"guide/", "guide/"},
		{"guide/x%20y.html?a=%20", "guide/x y.html?a=%20"},
		{"%C3%A4%2F%3F%25%00", "ä%2F%3F%25%00"},
		{"%C3x%A4", "%C3x%A4"},
		{".well-known/x", "%2Ewell-known/x"},
	} {
		if got := s.path("https://h.example/docs/" + tt.rest); got != tt.want {
			t.Errorf("path(%q) = %q, want %q", tt.rest, got, tt.want)
		}
	}
}

// FuzzAddress checks that an address is its own form, and that it never leaves the host
// of an address that is relative.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"a/b?c#d", "//h/%zz", `\\h\x`, "?a=1&sid=2", "http://ä.example/", ";jsessionid=1", "%2e%2e/x"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://h.example/docs/a")
	f.Fuzz(func(t *testing.T, ref string) {
		a, ok := address(base, ref)
		if !ok {
			return
		}
		if again, ok := address(nil, a); !ok || again != a {
			t.Errorf("address(%q) = %q, whose address is %q, %v", ref, a, again, ok)
		}
		if u, err := url.Parse(a); err != nil || u.Hostname() == "" || !strings.HasPrefix(u.EscapedPath(), "/") {
			t.Errorf("address(%q) = %q: %v", ref, a, err)
		}
		s, err := Parse(a)
		if err != nil {
			t.Fatalf("Parse(%q): %v", a, err)
		}
		if p := s.path(a); p == "" || strings.HasPrefix(p, ".") || !s.contains(a) {
			t.Errorf("path of %q is %q", a, p)
		}
	})
}
