package site

import (
	"bytes"
	"compress/gzip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func base(t testing.TB, a string) *url.URL {
	t.Helper()
	u, err := url.Parse(a)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSitemap(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	const urlset = `<?xml version="1.0" encoding="ISO-8859-1"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="i">
<url><loc> https://h.example/a?x=1&amp;y=2 </loc><lastmod>2026-01-02</lastmod>
<image:image><image:loc>https://h.example/a.png</image:loc></image:image></url>
<url><loc><![CDATA[/b#x]]></loc><lastmod>2026-01-02T01:00:00+01:00</lastmod></url>
<url><loc></loc></url><url><loc>mailto:x</loc></url>
</urlset>`
	want := []sitemapEntry{{"https://h.example/a?x=1&y=2", day}, {"https://h.example/b", day}}
	for _, tt := range []struct {
		name, text string
		pages      []sitemapEntry
		others     []string
	}{
		{"urlset", urlset, want, nil},
		{"gzip", zipped(t, urlset), want, nil},
		{"cut", urlset[:strings.Index(urlset, "<url><loc></loc>")], want, nil},
		{"gzip, cut", zipped(t, urlset)[:60], nil, nil},
		{"index", `<sitemapindex><sitemap><loc>https://h.example/1.xml.gz</loc><lastmod>x</lastmod></sitemap></sitemapindex>`,
			nil, []string{"https://h.example/1.xml.gz"}},
		{"text", "\ufeffhttps://h.example/a\nnothing\nhttps://h.example/b\r\n",
			[]sitemapEntry{{address: "https://h.example/a"}, {address: "https://h.example/b"}}, nil},
		{"empty", "", nil, nil},
		{"a page", "<!doctype html><p>Not found<br></html>", nil, nil},
	} {
		pages, others := parseSitemap(base(t, "https://h.example/sitemap.xml"), []byte(tt.text))
		if diff := cmp.Diff(tt.pages, pages, cmp.AllowUnexported(sitemapEntry{})); diff != "" {
			t.Errorf("%s: pages (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.others, others); diff != "" {
			t.Errorf("%s: sitemaps (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestMarkdownLinks(t *testing.T) {
	const text = `# Project

> [Start](https://h.example/start.md): where to begin
- [Space]( <b c.md> ) and [title](d.md "Title"), ![image](i.png)
- <https://h.example/e> and <b>[ref]: f.md
- [broken](
`
	want := []string{"https://h.example/start.md", "https://h.example/b%20c.md", "https://h.example/d.md",
		"https://h.example/i.png", "https://h.example/f.md", "https://h.example/e"}
	if diff := cmp.Diff(want, markdownLinks(base(t, "https://h.example/llms.txt"), []byte(text))); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestReadPage(t *testing.T) {
	const text = `<!doctype html><html><head><title> The  page </title><base href="/docs/"><link rel=canonical href="page">
<link rel="next" href="next"><link rel=stylesheet href=x.css><meta http-equiv="Refresh" content="5; URL='later'">
<script>document.write('<a href="script">')</script></head><body>
<a href="a&amp;b">A</a> <a href='a&b#c'>again</a> <a rel="external nofollow" href=no>no</a> <a name=x>anchor</a>
<iframe src=frame>inside</iframe><map><area href=area></map><a href="mailto:x@y">mail</a><style>.x{}</style></body>`
	got := readPage(base(t, "https://h.example/x/y"), []byte(text))
	want := pageContent{canonical: "https://h.example/docs/page", title: "The page", hash: got.hash}
	for _, l := range []string{"next", "later", "a&b", "frame", "area"} {
		want.links = append(want.links, "https://h.example/docs/"+l)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pageContent{})); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	same := readPage(base(t, "https://h.example/x/y"), []byte(`<title>The page</title><p>A again no
	anchor mail</p><script>1</script>`))
	if same.hash != got.hash {
		t.Error("pages with the same visible text have different hashes")
	}
	other := readPage(base(t, "https://h.example/x/y"), []byte(`<title>The page</title><p>A again no anchor post</p>`))
	if other.hash == got.hash {
		t.Error("pages with different texts have the same hash")
	}
}

func FuzzSitemap(f *testing.F) {
	f.Add("<urlset><url><loc>/a</loc></url></urlset>")
	f.Add("https://h.example/a\n")
	f.Add(zipped(f, "<sitemapindex><sitemap><loc>/a</loc></sitemap>"))
	f.Fuzz(func(t *testing.T, text string) {
		pages, others := parseSitemap(base(t, "https://h.example/"), []byte(text))
		for _, p := range pages {
			others = append(others, p.address)
		}
		for _, a := range others {
			if again, ok := address(nil, a); !ok || again != a {
				t.Errorf("%q is not an address", a)
			}
		}
	})
}

func FuzzLinks(f *testing.F) {
	f.Add("[a](b) <http://x> [c]: d")
	f.Add("<a href=x><base href=y><a href=z>")
	f.Fuzz(func(t *testing.T, text string) {
		b := base(t, "https://h.example/a")
		for _, a := range append(markdownLinks(b, []byte(text)), readPage(b, []byte(text)).links...) {
			if again, ok := address(nil, a); !ok || again != a {
				t.Errorf("%q is not an address", a)
			}
		}
	})
}
