package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

func TestExtractHTML(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"paragraphs", "<p>one\n two</p><p>three</p><div>four<p>five</div>six",
			"one two\n\nthree\n\nfour\n\nfive\n\nsix"},
		{"inline", "a<b>b</b> <i> c</i>&nbsp;d &lt;x&gt; &amp;amp; e", "ab c d <x> &amp; e"},
		{"breaks", "a<br>b<br/> c<br><br>d<br><br><br>e", "a\nb\nc\n\nd\n\ne"},
		{"lists", "<ul><li>a</li><li>b<ul><li>c</ul></ul><dl><dt>d<dd>e</dl>", "a\nb\n\nc\n\nd\ne"},
		{"pre", "<p>x</p><pre>\n  if a &lt; b:\n\n\tc\n</pre>y", "x\n\n  if a < b:\n\n\tc\n\ny"},
		{"pre in pre", "<pre>a\n<pre> b\n</pre> c\n</pre> d  e", "a\n\n b\n\n c\n\nd e"},
		{"table", "<table><caption>T</caption><tr><th>a</th><th>b</th></tr><tr><td><p>1</p></td><td></td><td><div>2</div></td></tr></table>x",
			"T\na\tb\n1\t\t2\n\nx"},
		{"paragraphs in a cell", "<table><tr><td><p>a</p><p>b</p></td><td>c</td></tr></table>", "a\n\nb\tc"},
		{"dropped", "<script>s</script>a<style>s</style><nav>n <nav>m</nav> n</nav>b<noscript><p>n</noscript><template>t</template><svg><text>s</text></svg><!-- c -->c<iframe>i</iframe><button>Copy</button>",
			"a\n\nbc"},
		{"navigation role", "<div role=navigation><div>n</div>n</div>a", "a"},
		{"navigation class", "<div class=\"menu MainMenu\"><ul><li>n</ul></div><ul class=breadcrumb><li>n</ul>a<div class=navfooter><table><tr><td>n</table></div>", "a"},
		{"class of a menu of dishes", "<div class='menu mainmenus'>a</div><p class=breadcrumb>b", "a\n\nb"},
		{"unclosed nav loses nothing", "<nav>a<p>b", "a\n\nb"},
		{"unclosed nav after text", "x<nav>a<p>b", "x\n\na\n\nb"},
		{"page of navigation alone", "<nav>a</nav>", "a"},
		{"self-closing script in XHTML", "<?xml version=\"1.0\"?><html><script src=\"x\"/><p>a</p></html>", "a"},
		{"self-closing blocks in XHTML", "<?xml version=\"1.0\"?><html>a<br/>b<pre/> c  d<h1/>e</html>",
			"a\nb\n\nc d\n\ne"},
		{"controls", "<p>a\x00b&#1;c\x1b</p>", "abc"},
		{"broken", "<p <b>x</p>< y <3 &bogus; </", "x\n\n< y <3 &bogus; </"},
		{"textarea", "a<textarea>b <i>c</i></textarea>", "a\n\nb <i>c</i>"},
		{"heading anchors", "<h2><a class=a href='#x'>§</a>Examples</h2><h3>C# <a href='#c'>¶</a></h3><h4><a href='#t'>Linked title</a></h4><h5>F#</h5>",
			"Examples\n\nC#\n\nLinked title\n\nF#"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.html", Data: []byte(tt.in)})
			if diff := cmp.Diff(tt.want, x.Body); diff != "" {
				t.Errorf("Extract(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// The terms of definition lists are headings. What follows a list does not belong
// to its last term.
func TestTerms(t *testing.T) {
	long := strings.Repeat("long ", 14)
	term := func(at int, text string) document.Heading {
		return document.Heading{Offset: at, Level: document.TermLevel, Text: text}
	}
	nested := func(at int, text string) document.Heading {
		return document.Heading{Offset: at, Level: document.NestedTermLevel, Text: text}
	}
	for name, tt := range map[string]struct {
		file, in string
		want     []document.Heading
	}{
		"HTML": {"a.html", "<h2>A</h2><dl><dt>f()<a href='#f'>¶</a><dd>" + long + "<dl><dt>g</dt><dd>" + long +
			"<dl><dt>h<dd>i</dl></dl>j</dl><p>z<dl><dt>k<dd>" + long + "</dl>",
			[]document.Heading{{Offset: 0, Level: 2, Text: "A"}, term(3, "f()"), nested(78, "g"), nested(156, ""),
				term(159, ""), term(162, "k")}},
		"a list in a heading": {"a.html", "<h2>A<dl><dt>b</dt></dl>c</h2>d",
			[]document.Heading{{Offset: 0, Level: 2, Text: "A b c"}}},
		"a heading behind a list": {"a.html", "<dl><dt>b<dd>" + long + "</dl><h2>D</h2>",
			[]document.Heading{term(0, "b"), {Offset: 73, Level: 2, Text: "D"}}},
		"terms of the same text": {"a.html", "<dl><dt>-a<dt>--all<dd>" + long + "</dl>",
			[]document.Heading{term(0, "-a, --all")}},
		"a manual page": {"a.1", ".TH A 1\n.SH B\n.TP\n.B \\-x\n" + long + "\n.RS\n.PP\nz\n.RE\n.IP \\(bu\nk\n.PP\nend\n" +
			".IP name\n" + long + "\n",
			[]document.Heading{{Offset: 0, Level: 1, Text: "B"}, term(3, "-x"), term(87, ""), term(92, "name")}},
		"a list of short items": {"a.1", ".TH A 1\n.SH B\n.TP\n.B \\-x\ny\n.TP\n0\nSuccess\n.SH C\nd\n",
			[]document.Heading{{Offset: 0, Level: 1, Text: "B"}, {Offset: 20, Level: 1, Text: "C"}}},
	} {
		x := mustExtract(t, Input{Name: tt.file, Data: []byte(tt.in)})
		if diff := cmp.Diff(tt.want, x.Headings); diff != "" {
			t.Errorf("%s: headings of %q (-want +got):\n%s", name, x.Body, diff)
		}
	}
}

func TestExtractHTMLFacts(t *testing.T) {
	const page = `<!doctype html><html lang="de-CH"><head><title> The
 Title &amp; more</title><link rel=Canonical href="https://example.com/a?b=1"><link rel=canonical href="https://example.com/second">
</head><body><h1>Fir<b>st</b></h1><p>x</p><h2> </h2><h3>Second<br>line</h3><svg><title>no</title></svg></body></html>`
	x := mustExtract(t, Input{Name: "a.html", Data: []byte(page)})
	want := &Text{
		Title: "The Title & more", Body: "First\n\nx\n\nSecond\nline", Lang: "de", MediaType: "text/html",
		FileType: "html",
		Headings: []document.Heading{{Offset: 0, Level: 1, Text: "First"},
			{Offset: 10, Level: 3, Text: "Second line"}},
		Canonical: "https://example.com/a?b=1",
	}
	if diff := cmp.Diff(want, x); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, href := range []string{"/relative", "javascript:alert(1)", "file:///etc/passwd", "https://",
		"http://" + strings.Repeat("x", 3000)} {
		x := mustExtract(t, Input{Name: "a.html", Data: []byte(`<link rel=canonical href="` + href + `">a`)})
		if x.Canonical != "" {
			t.Errorf("canonical of %.40q = %.40q, want none", href, x.Canonical)
		}
	}
}

func TestMainContent(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("The content of the page. ", 20))
	tests := []struct{ name, in, want string }{
		{"main", "<div>Menu</div><main><h1>A</h1><p>" + long + "</main><footer>Foot</footer>", "A\n\n" + long},
		{"role", "<div>Menu</div><div role=main><div>x</div><h1>A</h1>" + long + "</div>Foot", "x\n\nA\n\n" + long},
		{"articles", "Menu<article><h1>A</h1>" + long + "<article>c</article></article>x<article><h1>B</h1>" + long +
			"</article>",
			"A\n\n" + long + "\n\nc\n\nB\n\n" + long},
		{"main wins over article", "Menu<main>" + long + "<article>" + long + "</article></main>",
			long + "\n\n" + long},
		{"main that is not closed", "Menu<main><p>" + long + "</div>", long},
		{"empty main", "<main> </main><p>" + long, long},
		{"main that contains almost nothing", "<main>Loading</main><p>" + long, "Loading\n\n" + long},
		{"articles that are a small part", "<p>" + long + "</p><article>comment</article>", long + "\n\ncomment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.html", Data: []byte(tt.in)})
			if diff := cmp.Diff(tt.want, x.Body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, h := range x.Headings {
				if !strings.HasPrefix(x.Body[h.Offset:], h.Text) {
					t.Errorf("heading %q does not stand at %d", h.Text, h.Offset)
				}
			}
		})
	}
}

// Hostile pages must be read in time that grows with their length alone: a walk
// that is quadratic in one of these would not come to an end.
func TestHostileHTML(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	const n = 200_000
	pages := map[string]string{
		"nested div":       strings.Repeat("<div>", n) + "deep",
		"nested main":      strings.Repeat("<main>", n) + "deep" + strings.Repeat("</main>", n),
		"nested nav":       strings.Repeat("<nav>", n) + "deep",
		"nested pre":       strings.Repeat("<pre>\n", n) + "deep",
		"many articles":    strings.Repeat("<article>deep</article>", n),
		"many headings":    strings.Repeat("<h1>deep", n),
		"one heading":      "<h1>" + strings.Repeat("deep <b>", n),
		"heading anchors":  "<h1>" + strings.Repeat("<a href=#>deep", n),
		"many attributes":  "<p " + strings.Repeat("a=b ", n) + ">deep",
		"unclosed comment": "deep<!--" + strings.Repeat("<p>-", n),
		"unclosed tag":     "deep" + strings.Repeat("<p ", n),
		"tables":           strings.Repeat("<table><tr><td>", n) + "deep",
		"entities":         strings.Repeat("&amp", n) + "deep",
		"blanks":           strings.Repeat(" \n", n) + "deep",
		"raw text":         "deep" + strings.Repeat("<script><", n),
		"open scripts":     "deep<script>" + strings.Repeat("<!--<script>", n),
		"open titles":      "deep<title>" + strings.Repeat("</titl", n),
		"cells":            "<table><tr>" + strings.Repeat("<td>", n) + "deep",
		"breaks":           strings.Repeat("<br>\n", n) + "deep",
		"links in heading": "<h1>" + strings.Repeat("<a href=#x>deep</a>", n),
		"mains":            strings.Repeat("<main>deep</main>", n),
		"long attribute":   "<a href='" + strings.Repeat("&amp", n) + "'>deep",
		"end tags":         "deep" + strings.Repeat("</p></main></nav>", n),
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.html", Data: []byte(page)})
			if !strings.Contains(x.Body, "deep") {
				t.Errorf("the text is lost")
			}
		})
	}
}

// TestHostileMarkdown does the same for Markdown, whose headings are looked
// through for markup.
func TestHostileMarkdown(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	lines := func(line string) string {
		const size = 1 << 20
		return "# deep\n" + strings.Repeat(line+"\n", size/(len(line)+1))
	}
	for name, src := range map[string]string{
		"brackets":        lines("# " + strings.Repeat("[", 4000)),
		"links":           lines("# " + strings.Repeat("[a](", 1000)),
		"references":      lines("# " + strings.Repeat("[a][", 1000)),
		"pictures":        lines("# " + strings.Repeat("![](", 1000)),
		"tags":            lines("# " + strings.Repeat("<a ", 1300)),
		"attributes":      lines("# " + strings.Repeat("{#", 2000)),
		"emphasis":        lines("# " + strings.Repeat("*", 4000)),
		"underscores":     lines("# " + strings.Repeat("_a", 2000)),
		"code":            lines("# " + strings.Repeat("`", 4000)),
		"escapes":         lines("# " + strings.Repeat("\\", 4000)),
		"hashes":          lines("# x " + strings.Repeat("#", 4000)),
		"headings":        lines("# a"),
		"underlined":      lines("a\n="),
		"quotes":          lines(strings.Repeat(">", 4000)),
		"lists":           lines(strings.Repeat("- ", 2000)),
		"fences":          lines("```") + "~~~",
		"a long fence":    lines("```" + strings.Repeat("~", 4000)),
		"a long line":     "# deep\n" + strings.Repeat("[*`<{#", 1<<19),
		"a long heading":  "# deep " + strings.Repeat("[*`<{#", 1<<19),
		"front matter":    "---\n" + strings.Repeat("title: \"\\\"deep\n", 400) + "---\n# deep",
		"unclosed matter": "---\ntitle: " + strings.Repeat("deep ", 1<<19) + "\n# deep",
	} {
		t.Run(name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.md", Data: []byte(src)})
			if !strings.Contains(x.Title, "deep") {
				t.Errorf("title = %q, want the first heading", x.Title)
			}
		})
	}
}

func BenchmarkExtractHTML(b *testing.B) {
	page := []byte("<html><head><title>T</title></head><body><nav>n</nav><main>" +
		strings.Repeat("<h2>Heading</h2><p>Some words make a <b>sentence</b>, and this is one.</p><ul><li>item</ul>\n",
			1000) + "</main></body></html>")
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if _, err := Extract(b.Context(), Input{Name: "a.html", Data: page}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExtractMarkdown(b *testing.B) {
	page := []byte(strings.Repeat("## Heading\n\nSome words make a *sentence*, and this is one.\n\n", 60))
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if _, err := Extract(b.Context(), Input{Name: "a.md", Data: page}); err != nil {
			b.Fatal(err)
		}
	}
}

// The alternative texts of images are a part of the text, where the image is.
func TestAlternativeTexts(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a.html", `<p>See<img src=a.png alt="the &quot;red&quot; lake">here. <img alt=""><img><img alt="img/IMG_1.JPG"><a href=x><IMG ALT=Home /></a>`, `See the "red" lake here. Home`},
		{"a.html", `<h1><img alt="ACME"> Guide</h1><p>x<map><area alt="north"></map><input type=image alt=Go><nav><img alt=no></nav>`, "ACME Guide\n\nx north Go"},
		{"a.html", `<h2>One <a href="#one"><img alt="Permalink"></a></h2><pre>a<img alt="b">c</pre>`, "One\n\na b c"},
		{"a.html", `<dl><dt>t<dd>d</dl><img alt="behind the list">`, "t\nd\n\nbehind the list"},
		{"a.xhtml", `<p>a<img alt="b"/>c</p>`, "a b c"},
		{"a.md", "x ![a red lake](a.png) y\n\n<img alt=\"blue\">", "x ![a red lake](a.png) y\n\n<img alt=\"blue\">"},
		{"a.rst", "x\n\n.. image:: a.png\n   :width: 3\n   :alt: a red\n         *lake*\n   :align: left\n\ny |logo| z\n\n.. |logo| image:: l.png\n   :alt: ACME\n", "x\n\na red lake\n\ny ACME z"},
		{"a.rst", ".. figure:: a.png\n   :alt: a red lake\n\n   The caption\n", "a red lake\n\n   The caption"},
		{"a.adoc", "x\n\nimage::a.png[A red lake, 300, 200]\n\nimage::b.png[width=3,alt=\"Blue, deep\",title=T]\n\nan image:c.png[green,20] one, image:d.png[] and image:e.png[width=2]\n", "x\n\nA red lake\n\nBlue, deep\n\nan green one, d.png and e.png"},
		{"a.org", "x\n\n#+CAPTION: A lake\n#+ATTR_HTML: :width 3 :alt red as blood :title t\n[[file:a.png]]\n",
			"x\n\nA lake\nred as blood\na.png"},
		{"a.tex", "x \\includegraphics[width=2cm, alt={A red lake}]{a.png} y", "x A red lake y"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if x := mustExtract(t, Input{Name: tt.name, Data: []byte(tt.in)}); x.Body != tt.want {
				t.Errorf("body = %q, want %q", x.Body, tt.want)
			}
		})
	}
}
