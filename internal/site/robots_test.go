package site

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The rules of RFC 9309, section 2.2, and its examples.
func TestRobots(t *testing.T) {
	for _, tt := range []struct {
		name, text       string
		allowed, refused []string
	}{
		{"none", "", []string{"/", "/a?b"}, nil},
		{"all agents", "User-agent: *\nDisallow: /a", []string{"/", "/b/a"}, []string{"/a", "/ab", "/a/b?c"}},
		{"nothing disallowed", "User-agent: *\nDisallow:", []string{"/a"}, nil},
		{"another agent", "User-agent: knowhowbot\nDisallow: /\n\nUser-agent: other\nDisallow: /", []string{"/a"}, nil},
		{"this agent", "user-AGENT: KnowHow/2.0 (x)\ndisallow: /a\n\nUser-agent: *\nDisallow: /b", []string{"/b"},
			[]string{"/a"}},
		{"group of several agents", "User-agent: other\nUser-agent: knowhow\nDisallow: /a\nDisallow: /b", []string{"/c"},
			[]string{"/a", "/b"}},
		{"two groups", "User-agent: knowhow\nDisallow: /a\nUser-agent: x\nDisallow: /c\nUser-agent: knowhow\nDisallow: /b",
			[]string{"/c"}, []string{"/a", "/b"}},
		{"sitemap ends no list of agents", "User-agent: knowhow\nSitemap: /x\nUser-agent: other\nDisallow: /a", nil,
			[]string{"/a"}},
		{"longest", "User-agent: *\nDisallow: /a/\nAllow: /a/public/\nDisallow: /a/public/not", []string{"/a/public/x"},
			[]string{"/a/x", "/a/public/not"}},
		{"longest of patterns", "User-agent: *\nAllow: /page\nDisallow: /*.htm", []string{"/page"}, []string{"/page.htm"}},
		{"longest with points", "User-agent: *\nDisallow: /a.b.c*\nAllow: /a.b.c.d", []string{"/a.b.c.d"}, []string{"/a.b.c"}},
		{"equal length", "User-agent: *\nDisallow: /folder\nAllow: /folder", []string{"/folder/page"}, nil},
		{"star", "User-agent: *\nDisallow: /*/x*y", []string{"/x-y", "/a/xz"}, []string{"/a/xzy", "/a/b/xy"}},
		{"end", "User-agent: *\nDisallow: /*.pdf$\nDisallow: /exact$", []string{"/a.pdf?x", "/exact/"},
			[]string{"/a.pdf", "/exact"}},
		{"escapes", "User-agent: *\nDisallow: /%7Eme\nDisallow: /ä", []string{"/%2F"}, []string{"/~me", "/%C3%A4"}},
		{"without a slash", "User-agent: *\nDisallow: private", []string{"/public"}, []string{"/private/x"}},
		{"comments, CRLF and a mark", "\ufeffUser-agent: * # all\r\nDisallow: /a # not this\r\n", []string{"/"},
			[]string{"/a"}},
		{"rules without an agent", "Disallow: /\nUser-agent: *\nDisallow: /a", []string{"/b"}, []string{"/a"}},
		{"a page", "<!doctype html><p>Disallow: /", []string{"/"}, nil},
	} {
		r := parseRobots([]byte(tt.text))
		for _, p := range tt.allowed {
			if !r.allows(p) {
				t.Errorf("%s: %s is refused", tt.name, p)
			}
		}
		for _, p := range tt.refused {
			if r.allows(p) {
				t.Errorf("%s: %s is allowed", tt.name, p)
			}
		}
	}
}

func TestRobotsDelay(t *testing.T) {
	r := parseRobots([]byte("Sitemap: https://h/a.xml\nUser-agent: knowhow\nCrawl-delay: 1.5\nSitemap: /b.xml\n" +
		"User-agent: *\nCrawl-delay: 10"))
	if r.delay != 1500*time.Millisecond {
		t.Errorf("delay = %v, want 1.5s", r.delay)
	}
	if diff := cmp.Diff([]string{"https://h/a.xml", "/b.xml"}, r.sitemaps); diff != "" {
		t.Errorf("sitemaps (-want +got):\n%s", diff)
	}
	for text, want := range map[string]time.Duration{"1e9": maxCrawlDelay, "-1": 0, "NaN": 0, "x": 0, "+Inf": maxCrawlDelay} {
		if got := parseRobots([]byte("User-agent: *\nCrawl-delay: " + text)).delay; got != want {
			t.Errorf("Crawl-delay: %s: %v, want %v", text, got, want)
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /*a*b$\nAllow: /", "/axb")
	f.Fuzz(func(t *testing.T, text, path string) {
		r := parseRobots([]byte(text))
		r.allows(path)
		if len(r.rules) > maxRules || len(r.sitemaps) > maxSitemaps {
			t.Errorf("%d rules, %d sitemaps", len(r.rules), len(r.sitemaps))
		}
	})
}

// Matching takes no more time than the product of the lengths of pattern and path.
func TestRobotsHostile(t *testing.T) {
	r := parseRobots([]byte("User-agent: *\nDisallow: /" + strings.Repeat("*a", 1000) + "b"))
	for range 1000 {
		if !r.allows("/" + strings.Repeat("a", maxAddress)) {
			t.Fatal("refused")
		}
	}
}
