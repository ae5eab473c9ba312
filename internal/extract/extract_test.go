package extract

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// mustExtract extracts and checks the properties of every text.
func mustExtract(t *testing.T, in Input) *Text {
	t.Helper()
	x, err := Extract(t.Context(), in)
	if err != nil {
		t.Fatalf("Extract(%q): %v", in.Name, err)
	}
	checkText(t, x)
	return x
}

// checkText checks what Text promises.
func checkText(t *testing.T, x *Text) {
	t.Helper()
	for _, s := range []string{x.Title, x.Body, x.Lang, x.Canonical} {
		if !utf8.ValidString(s) {
			t.Fatalf("%q is not UTF-8", s)
		}
		if i := strings.IndexFunc(s, plain.IsControl); i >= 0 {
			t.Fatalf("%q has a control character at %d", s, i)
		}
	}
	last := -1
	for _, h := range x.Headings {
		switch {
		case h.Offset <= last || h.Offset >= len(x.Body) || !utf8.RuneStart(x.Body[h.Offset]):
			t.Fatalf("heading %+v after offset %d in %d bytes", h, last, len(x.Body))
		case h.Level < 1 || h.Level > document.NestedTermLevel || h.Text == "" && h.Level < document.TermLevel ||
			len(h.Text) > plain.MaxHeading || !utf8.ValidString(h.Text) || strings.ContainsAny(h.Text, "\n\t"):
			t.Fatalf("bad heading %+v", h)
		}
		last = h.Offset
	}
	if len(x.Title) > plain.MaxTitle || strings.ContainsAny(x.Title, "\n\t") {
		t.Fatalf("bad title %q", x.Title)
	}
}

// titles returns the headings as text from the body on, to test the offsets.
func titles(x *Text) []string {
	var out []string
	for _, h := range x.Headings {
		line, _, _ := strings.Cut(x.Body[h.Offset:], "\n")
		out = append(out, strings.Repeat("#", h.Level)+" "+h.Text+" @ "+line)
	}
	return out
}

func TestExtractPlainText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"a.txt", "", ""},
		{"a.txt", "\n \n  one\r\ntwo\rthree\n\n\nfour  \n\n", "  one\ntwo\nthree\n\n\nfour"},
		{"a.txt", "some more text a\x00b\x01c\x7fd\u0085e\u2028f\ufeffg and more",
			"some more text abcd\ne\nfg and more"},
		{"build.log", "\x1b[1;31merror\x1b[0m: x \x1bq\fnext", "error: x q\nnext"},
		{"a.txt", "\ufeffBOM", "BOM"},
		{"LICENSE", "Copyright\n", "Copyright"},
		{"x.go", "package x // é\n", "package x // é"},
		{"a.txt", "bad \xff byte, good ü and ö and ä and more of good text \u00fc \u00fc",
			"bad \ufffd byte, good ü and ö and ä and more of good text ü ü"},
	}
	for _, tt := range tests {
		x := mustExtract(t, Input{Name: tt.name, Data: []byte(tt.in)})
		if x.Body != tt.want || x.Title != "" || x.Headings != nil {
			t.Errorf("Extract(%s %q) = %q, title %q, want %q and no title", tt.name, tt.in, x.Body, x.Title, tt.want)
		}
	}
}

// onLine drops the signs that end lines and pages, which a verbatim text may have,
// and byte order marks, which it may have inside.
func onLine(r rune) rune {
	if strings.ContainsRune("\r\f\u0085\ufeff", r) {
		return -1
	}
	return r
}

// A verbatim text is unchanged except for invisible characters (FRS 8.5.3).
func TestExtractVerbatim(t *testing.T) {
	for _, tt := range []struct{ name, media, in, want string }{
		{"a.txt", "text/plain", "  a\r\nb\r\n\r\nend \n\n", "  a\r\nb\r\n\r\nend \n\n"},
		{"a", "text/plain; charset=iso-8859-1", "\n\tcaf\xe9\r\r\x0c", "\n\tcafé\r\r\x0c"},
		{"a.txt", "text/plain", "\ufeffBOM and\u0085no \ufeff BOM\u2028\n", "BOM and\u0085no \ufeff BOM\u2028\n"},
		{"a.txt", "text/plain", "a\x00b\x01c\x7fd\u0090e and \x1b[1;31mred\x1b[0m \x1bq\n", "abcde and red q\n"},
		{"a.csv", "text/csv", "a,b\r\n1,2\r\n", "a,b\r\n1,2\r\n"},
		{"a.md", "text/plain", "---\ntitle: T\n---\n\n# A\r\n", "---\ntitle: T\n---\n\n# A\r\n"},
		{"a.md", "text/markdown", "---\ntitle: T\n---\n\n# A\r\n", "T\n\n# A"},
		{"a.html", "text/html", "<p>a</p>\r\n<p>b</p>\r\n", "a\n\nb"},
	} {
		x, err := Extract(t.Context(), Input{Name: tt.name, MediaType: tt.media, Data: []byte(tt.in), Verbatim: true})
		if err != nil || x.Body != tt.want {
			t.Errorf("Extract(%s, %s, %q) = %+v, %v, want %q", tt.name, tt.media, tt.in, x, err, tt.want)
		}
	}
}

func TestExtractRefuses(t *testing.T) {
	tests := []struct {
		in   Input
		want string // in the message
	}{
		{Input{Name: "a.pdf", Data: []byte("<html>404")}, "PDF"},
		{Input{Name: "a.pdf"}, "PDF"},
		{Input{Name: "report", MediaType: "application/pdf", Data: []byte("x")}, "file that is not a PDF document"},
		{Input{Name: "a.bin", Data: zipOf(t, zipEntry{"a.txt", "a"})}, "ZIP"},
		{Input{Name: "a.pages", Data: []byte("PK\x03\x04abc")}, "Pages"},
		{Input{Name: "a.doc", Data: []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1abcd")}, "old format"},
		{Input{Name: "photo.JPG", Data: []byte("text in truth")}, "image"},
		{Input{Name: "x", MediaType: "image/png", Data: []byte("text in truth")}, "image/png"},
		{Input{Name: "x.svg", Data: []byte("<svg/>")}, "image"},
		{Input{Name: "x", Data: []byte("\x00\x01\x02\x03")}, "binary data"},
		{Input{Name: "x.txt", Data: []byte("\x00\x01\x02\x03")}, "binary data"},
		{Input{Name: "x", Data: []byte("\xff\x00\x02\xfe\x13\x90")}, "binary data"},
	}
	for _, tt := range tests {
		x, err := Extract(t.Context(), tt.in)
		if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Extract(%s, %q) = %v, %v, want kind Unsupported and %q", tt.in.Name, tt.in.Data, x, err, tt.want)
		}
	}
}

func TestFormats(t *testing.T) {
	const page = "<!-- c --> <!DOCTYPE html><p>x"
	tests := []struct {
		in              Input
		media, fileType string
	}{
		{Input{Name: "a.HTML", Data: []byte("<p>x")}, "text/html", "html"},
		{Input{Name: "https://h/a/b.htm", Data: []byte("<p>x")}, "text/html", "html"},
		{Input{Name: "page", Data: []byte(page)}, "text/html", "html"},
		{Input{Name: "page", MediaType: "text/plain", Data: []byte(page)}, "text/plain", "txt"},
		{Input{Name: "page.md", MediaType: "text/html; charset=utf-8", Data: []byte(page)}, "text/html", "html"},
		{Input{Name: "a.xhtml", Data: []byte("<p/>")}, "application/xhtml+xml", "html"},
		{Input{Name: "a.md", MediaType: "text/plain", Data: []byte("x")}, "text/markdown", "txt"},
		{Input{Name: "a.md", MediaType: "application/octet-stream", Data: []byte("x")}, "text/markdown", "txt"},
		{Input{Name: "a", MediaType: "text/x-markdown", Data: []byte("x")}, "text/markdown", "txt"},
		{Input{Name: "a", Data: []byte("x")}, "text/plain", "txt"},
		{Input{Name: "a.unknown", MediaType: "nonsense", Data: []byte("x")}, "text/plain", "txt"},
		{Input{Name: "a.json", Data: []byte("{}")}, "application/json", "others"},
		{Input{Name: "a", MediaType: "application/ld+json", Data: []byte("{}")}, "application/ld+json", "others"},
		{Input{Name: `C:\d.pdf\a.go`, Data: []byte("package a")}, "text/x-go", "others"},
	}
	for _, tt := range tests {
		x := mustExtract(t, tt.in)
		if x.MediaType != tt.media || x.FileType != tt.fileType {
			t.Errorf("Extract(%s, %s) is %s, %s, want %s, %s", tt.in.Name, tt.in.MediaType, x.MediaType, x.FileType,
				tt.media, tt.fileType)
		}
	}
}

func TestSupported(t *testing.T) {
	cut := strings.Repeat("日", 200)[:512] // ends inside a character
	tests := []struct {
		name, head string
		want       bool
	}{
		{"README", "text", true},
		{"empty", "", true},
		{"Makefile", "all:\n\tgo build\n", true},
		{"notes", cut, true},
		{"notes.rst", cut, true},
		{"data.csv", "a,b\n1,2\n", true},
		{"old.txt", "caf\xe9", true},
		{"old", "caf\xe9 cr\xe8me", true},
		{"utf16", "h\x00e\x00l\x00l\x00o\x00 \x00w\x00o\x00r\x00l\x00d\x00", true},
		{"a.txt", strings.Repeat("x", 50) + "\x00", true},
		{"a", strings.Repeat("x", 50) + "\x00", false},
		{"a.pdf", "%PDF-1.4\n", true},
		{"a", "%PDF-1.4\n", true},
		{"a.txt", "%PDF-1.4\n", true},
		{"a.pdf", "junk\n%PDF-1.4\n", true},
		{"a.pdf", "text", false},
		{"a.txt", "see %PDF-1.4\n", true},
		{"a.png", "\x89PNG\r\n\x1a\n", false},
		{"a.exe", "MZ", false},
		{"a", "\x7fELF\x02\x01", false},
		{"a.gz", "\x1f\x8b\x08", true}, // damaged
		{"a.gz", "\x00\x01\x02", true}, // likewise
		{"a.zip", "\x00\x01\x02", true},
		{"a.bin", "\x00\x01\x02", false},
	}
	for _, tt := range tests {
		if got := Supported(tt.name, []byte(tt.head)); got != tt.want {
			t.Errorf("Supported(%q, %q) = %t, want %t", tt.name, tt.head, got, tt.want)
		}
	}
}

func TestExtractMarkdown(t *testing.T) {
	tests := []struct {
		name, in, title string
		headings        []string
	}{
		{"headings", "# One #\n\ntext\n\n## Two *with* `code_x` and [link](u \"t\") {#id}\nThree\n-----\n#no\n####### no\n",
			"One", []string{"# One @ # One #", "## Two with code_x and link @ ## Two *with* `code_x` and [link](u \"t\") {#id}", "## Three @ Three"}},
		{"code", "```sh\n# no\n```\n~~~~\n# no\n~~~\n# no\n~~~~\n    # no\n# yes", "yes", []string{"# yes @ # yes"}},
		{"unclosed code", "# a\n```\n# no", "a", []string{"# a @ # a"}},
		{"setext", "Title\n=====\n\n---\n- item\n---\n> quote\n---\n\nSub\n---", "Title",
			[]string{"# Title @ Title", "## Sub @ Sub"}},
		{"front matter", "---\ntitle: \"The \\\"Title\\\"\"\ntags: [a]\n---\n\n# First\n", `The "Title"`,
			[]string{"# First @ # First"}},
		{"front matter in single quotes", "---\ntitle: 'It''s'\n...\nx", "It's", nil},
		{"TOML", "+++\ntitle = \"T\"\n+++\nx", "T", nil},
		{"front matter without an end", "---\ntitle: x\n", "", nil},
		{"rule at the top", "---\n\ntitle: x\n---\n", "title: x", []string{"## title: x @ title: x"}},
		{"empty heading", "#\n\n# #\n\n# x", "x", []string{"# x @ # x"}},
		{"snake_case and a * b", "# snake_case a * b \\*c\\* __bold__ <b>x</b>", "snake_case a * b *c* bold x",
			[]string{"# snake_case a * b *c* bold x @ # snake_case a * b \\*c\\* __bold__ <b>x</b>"}},
		{"C#", "# C#\n\n## F# ##\n", "C#", []string{"# C# @ # C#", "## F# @ ## F# ##"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.md", Data: []byte(tt.in)})
			if x.Title != tt.title {
				t.Errorf("title = %q, want %q", x.Title, tt.title)
			}
			if diff := cmp.Diff(tt.headings, titles(x)); diff != "" {
				t.Errorf("headings (-want +got):\n%s", diff)
			}
		})
	}
	x := mustExtract(t, Input{Name: "a.md", Data: []byte("---\ntitle: T\nlang: de-AT\n---\n\n# A\r\n\r\n* [x](y)\r\n")})
	if want := "T\n\n# A\n\n* [x](y)"; x.Body != want || x.Lang != "de" {
		t.Errorf("body = %q, lang %q, want %q, de", x.Body, x.Lang, want)
	}
}

// The values of front matter that are written for readers are a part of the text.
func TestFrontMatter(t *testing.T) {
	for _, tt := range []struct{ name, in, title, want string }{
		{"skill", "---\nname: pdf-forms\ndescription: Fills in forms.\nlicense: MIT\nmetadata:\n  author: Jane Doe\n  version: \"1.0\"\n---\n# Forms\n",
			"Forms", "pdf-forms\nFills in forms.\nJane Doe\n\n# Forms"},
		{"lists", "---\ntags: [red, \"dark blue\"]\naliases:\n- Old name\n- Older\nauthors:\n  - name: A B\n    affiliation: Uni\ndate: 2024-01-02\nlayout: post\n---\nx",
			"", "red, dark blue\nOld name, Older\nA B, Uni\n\nx"},
		{"blocks", "---\ndescription: >-\n  folded\n  line\nsummary: |\n  two\n  lines\nabstract: plain text\n  goes on\n---\nx",
			"", "folded line\ntwo\nlines\nplain text goes on\n\nx"},
		{"title as heading", "---\ntitle: Guide\ntags: a\n---\n# Guide\n\ntext", "Guide", "a\n\n# Guide\n\ntext"},
		{"title alone", "---\ntitle: Guide\n---\ntext", "Guide", "Guide\n\ntext"},
		{"no body", "---\ntitle: Guide\n---\n", "Guide", "Guide"},
		{"nothing for readers", "---\nlayout: post\ntags: ~\nsummary:\n---\ntext", "", "text"},
		{"not YAML", "---\ntitle: Part 2: forms\ndescription: Use when: \"x\" is\n  {{ y }}\ntags:\n  - a\n  - b\n---\ntext", "Part 2: forms",
			"Part 2: forms\nUse when: \"x\" is {{ y }}\na, b\n\ntext"},
		{"TOML", "+++\ntitle = \"T\"\ndate = 2024-01-02\n[taxonomies]\ntags = [\"a\", \"b\"]\n[[authors]]\nname = \"C\"\nurl = \"u\"\n+++\nx", "T", "T\na, b\nC, u\n\nx"},
		{"control characters", "---\ndescription: \"a\\u0007b\\e[1mc\\0\"\n---\nx", "", "abc\n\nx"},
		{"aliases", "---\ntitle: &t Name\nx: &x [*t, *t]\ny: &y [*x, *x]\ntags: [*t, *y, new]\n---\nx", "Name",
			"Name\nName, new\n\nx"},
		{"heading inside", "---\ndescription: |\n  # no heading\n---\n# H\n", "H", "# no heading\n\n# H"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "SKILL.md", Data: []byte(tt.in)})
			if x.Title != tt.title || x.Body != tt.want {
				t.Errorf("title %q, body %q, want %q, %q", x.Title, x.Body, tt.title, tt.want)
			}
			if rest := x.Body[x.Lead:]; !strings.HasSuffix(tt.in, rest+"\n") && !strings.HasSuffix(tt.in, rest) ||
				strings.HasPrefix(rest, "\n") {
				t.Errorf("behind the values stands %q, which is not the end of the file", rest)
			}
			for _, h := range x.Headings {
				if !strings.HasPrefix(x.Body[h.Offset:], "# "+h.Text) {
					t.Errorf("heading %q at %q", h.Text, x.Body[h.Offset:])
				}
			}
		})
	}
}

// Other markup has the same metadata as front matter.
func TestMarkupMetadata(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a.org", "#+TITLE: T\n#+AUTHOR: Jane Doe\n#+KEYWORDS: red, lake\n#+FILETAGS: :a:b:\n#+DATE: 2024\n\nx\n",
			"Jane Doe\nred, lake\na b\n\nx"},
		{"a.adoc", "= T\n:author: Jane Doe\n:description: About {author}\n:keywords: red, lake\n:toc: left\n\nx\n",
			"T\n\nJane Doe\nAbout Jane Doe\nred, lake\n\nx"},
		{"a.rst", ".. meta::\n   :description: About\n      lakes\n   :keywords: red, lake\n   :robots: noindex\n\nx\n",
			"About lakes\nred, lake\n\nx"},
		{"a.tex", "\\title{T}\\author{Jane Doe \\and Bo}\n\\begin{document}\n\\maketitle\nx\n\\end{document}\n",
			"Jane Doe, Bo\n\nx"},
	} {
		if x := mustExtract(t, Input{Name: tt.name, Data: []byte(tt.in)}); x.Body != tt.want {
			t.Errorf("%s: body = %q, want %q", tt.name, x.Body, tt.want)
		}
	}
}

func TestLongTitlesAreCut(t *testing.T) {
	long := strings.Repeat("日本", 400)
	x := mustExtract(t, Input{Name: "a.html", Data: []byte("<title>" + long + "</title><h1>" + long + "</h1>")})
	if !strings.HasSuffix(x.Title, "…") || len(x.Headings) != 1 || !strings.HasSuffix(x.Headings[0].Text, "…") {
		t.Errorf("title %q, headings %v, want both cut with an ellipsis", x.Title, x.Headings)
	}
}

// FuzzMarkup checks the texts of the formats that are read line by line.
func FuzzMarkup(f *testing.F) {
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		switch filepath.Ext(file) {
		case ".1", ".5", ".8", ".txt", ".rst", ".adoc", ".org":
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.1", "a.txt", "a.rst", "a.adoc", "a.org"} {
			if x, err := Extract(t.Context(), Input{Name: name, Data: data}); err == nil {
				checkText(t, x)
			}
		}
	})
}

func FuzzExtract(f *testing.F) {
	f.Add("a.html", "", []byte("<title>t</title><main><h1>A</h1><pre>x\n\n</pre><table><tr><td><p>a<td>b</table></main>"))
	f.Add("a.md", "", []byte("---\ntitle: x\n---\n# A\nB\n==\n```\n# c\n"))
	f.Add("a.md", "", []byte("---\ntitle: &t x\ntags: [*t, {a: b}]\nauthor:\n- name: n\n---\n# A\n"))
	f.Add("a.md", "", []byte("+++\ntitle = \"x\"\n[[authors]]\nname = \"n\"\n+++\nb"))
	f.Add("a.txt", "", []byte("Gr\xf6\xdfe 1"))
	f.Add("a", "text/html; charset=shift_jis", []byte("<p>\x93\xfa\x96{"))
	f.Add("a.txt", "", []byte("\x1b$B\x46\x7c\x1b(B \xff\xfe\x00"))
	f.Add("", "", []byte("h\x00e\x00l\x00l\x00o\x00 \x00w\x00o\x00r\x00l\x00d\x00"))
	f.Add("x.pdf", "", []byte(smallPDF))
	f.Add("x.html", "", []byte("<h1><a href=#x><main>#</main></a><pre><main>\n\n</pre>#</a>"))
	f.Fuzz(func(t *testing.T, name, media string, data []byte) {
		for _, in := range []Input{{Name: name, MediaType: media, Data: data}, {Name: "a.html", Data: data},
			{Name: "a.md", Data: data}, {Name: "a.txt", Data: data}, {Name: "a.txt", Data: data, Verbatim: true}} {
			x, err := Extract(t.Context(), in)
			if err != nil {
				if x != nil || !errors.Is(err, errkind.Unsupported) && !errors.Is(err, errkind.Corrupt) &&
					!errors.Is(err, errkind.TooLarge) {
					t.Fatalf("Extract = %v, %v, want a kind of error alone", x, err)
				}
				continue
			}
			if in.Verbatim {
				x.Body = strings.Map(onLine, x.Body)
			}
			checkText(t, x)
			if !Supported(in.Name, data[:min(len(data), 512)]) && in.MediaType == "" {
				t.Fatalf("Extract takes what Supported does not")
			}
		}
	})
}
