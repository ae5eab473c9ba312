package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A countingContext is done after a number of looks at it, and counts the looks
// after that.
type countingContext struct {
	context.Context
	left, after int
}

func (c *countingContext) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	c.after++
	return context.Canceled
}

// longPDF makes a PDF of one page with n lines.
func longPDF(n int) []byte {
	line := "(The text of a page, which is plain English and goes on and on.) Tj 0 -12 Td "
	return []byte(strings.Replace(smallPDF, "(A heading) Tj", strings.Repeat(line, n), 1))
}

// TestExtractStops shows that every parser looks at the context all the time
// and stops when it is done. Looks are counted because time can't be.
func TestExtractStops(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	const size = 1 << 19
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	line := "The words of a line that is about one thing and goes on with it.\n"
	for name, in := range map[string]Input{
		"text":             {Name: "a.txt", Data: []byte(fill(line))},
		"text on one line": {Name: "a.txt", Data: []byte(fill("word "))},
		"control bytes":    {Name: "a.txt", Data: []byte(fill("a line\r\n\x1b[1m"))},
		"verbatim":         {Name: "a.txt", Data: []byte(fill(line)), Verbatim: true},
		"declared UTF-8":   {Name: "a", MediaType: "text/plain; charset=utf-8", Data: []byte(fill("wörter "))},
		"damaged UTF-8": {Name: "a", MediaType: "text/plain; charset=utf-8",
			Data: []byte(fill(line + line + "\xff\n"))},
		"Shift JIS":       {Name: "a.txt", Data: bytes.Repeat(encode(t, japanese.ShiftJIS, japaneseText), size/300)},
		"windows-1252":    {Name: "a.txt", Data: bytes.Repeat(encode(t, charmap.Windows1252, germanText), size/200)},
		"HTML":            {Name: "a.html", Data: []byte(fill("<p>A word<b>and</b> more</p>"))},
		"HTML text":       {Name: "a.html", Data: []byte(fill("word "))},
		"HTML navigation": {Name: "a.html", Data: []byte("<nav>" + fill("<p>word</p>"))},
		"HTML comment":    {Name: "a.html", Data: []byte("a<!--" + fill("<p>"))},
		"HTML attributes": {Name: "a.html", Data: []byte("a<p " + fill("a=b "))},
		"Markdown":        {Name: "a.md", Data: []byte(fill("# A heading\n\nA paragraph.\n\n"))},
		"PDF":             {Name: "a.pdf", Data: longPDF(1500)},
		"Word":            {Name: "a.docx", Data: docxOf(t, fill(paragraphs(line)))},
		"Word table":      {Name: "a.docx", Data: docxOf(t, "<w:tbl><w:tr><w:tc>"+fill(paragraphs(line)))},
		"Excel":           {Name: "a.xlsx", Data: xlsxOf(t, "", fill("<row><c><v>1.5</v></c><c><v>2</v></c></row>"))},
		"OpenDocument":    {Name: "a.odt", Data: odfOf(t, "text", "<office:text>"+fill("<text:p>"+line+"</text:p>"))},
		"EPUB": {Name: "a.epub", Data: packageOf(t, "mimetype", "application/epub+zip",
			"META-INF/container.xml", `<rootfile full-path="o.opf"/>`, "o.opf",
			`<item id="a" href="a.xhtml"/><itemref idref="a"/>`, "a.xhtml", fill("<p>"+line+"</p>"))},
		"RTF":  {Name: "a.rtf", Data: []byte(`{\rtf1 ` + fill(line+`\par `))},
		"CSV":  {Name: "a.csv", Data: []byte(fill("one,two,3\n"))},
		"mail": {Name: "a.eml", Data: []byte("Subject: a\n\n" + fill(line))},
		"mailbox": {Name: "a.mbox", Data: []byte(fill("From a@b Mon Jan  1 00:00:00 2024\nSubject: a\n\n" +
			strings.Repeat(line, 100) + "\n"))},
		"notebook": {Name: "a.ipynb", Data: []byte(`{"cells":[{"cell_type":"markdown","source":"` +
			fill("word ") + `"}]}`)},
		"reStructuredText": {Name: "a.rst", Data: []byte(fill("A heading\n=========\n\nA *word*.\n\n"))},
		"AsciiDoc":         {Name: "a.adoc", Data: []byte(fill("== A heading\n\nA *word*.\n\n"))},
		"Org":              {Name: "a.org", Data: []byte(fill("* A heading\n\nA *word*.\n\n"))},
		"LaTeX":            {Name: "a.tex", Data: []byte(fill("\\section{A heading}\n\nA \\emph{word}.\n\n"))},
		"manual":           {Name: "a.1", Data: []byte(".TH A 1\n" + fill(".SH A\nA \\fBword\\fR.\n"))},
		"JSON":             {Name: "a.json", Data: []byte("[" + fill(`{"a":{"b":1}},`) + "1]")},
		"YAML":             {Name: "a.yaml", Data: []byte(fill("a:\n  b: 1\n"))},
		"TOML":             {Name: "a.toml", Data: []byte(fill("[a]\nb = 1\n"))},
		"code":             {Name: "a.go", Data: []byte(fill("// A is a.\nfunc A() {\n}\n"))},
		"subtitles":        {Name: "a.srt", Data: []byte(fill("1\n00:00:01,000 --> 00:00:02,000\nA word.\n\n"))},
		"SVG":              {Name: "a.svg", Data: []byte("<svg>" + fill("<text>A word.</text>"))},
		"gzip":             {Name: "a.txt.gz", Data: gzipOf(t, []byte(fill(line)))},
	} {
		t.Run(name, func(t *testing.T) {
			const enough = 1 << 40
			all := &countingContext{Context: t.Context(), left: enough}
			if _, err := Extract(all, in); err != nil {
				t.Fatal(err)
			}
			looks := enough - all.left
			if looks < len(in.Data)/plain.CheckLen {
				t.Errorf("%d looks at the context for %d bytes, want at least one for each %d", looks, len(in.Data),
					plain.CheckLen)
			}
			for _, n := range []int{0, looks / 2, looks - 3} {
				ctx := &countingContext{Context: t.Context(), left: n}
				x, err := Extract(ctx, in)
				if x != nil || !errors.Is(err, context.Canceled) || ctx.after > 20 {
					t.Errorf("after %d of %d looks: Extract = %v, %v after %d looks more, want context.Canceled at once", n, looks, x != nil, err, ctx.after)
				}
			}
		})
	}
}

func TestExtractDeadline(t *testing.T) {
	long := errors.New("reading took longer than 10s, the file is left out")
	for _, in := range []Input{{Name: "a.pdf", Data: []byte(smallPDF)}, {Name: "a.txt", Data: []byte("text")}} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 0, long)
		defer cancel()
		_, err := Extract(ctx, in)
		want := fmt.Sprintf("extracting text: %v", long)
		if !errors.Is(err, long) || !errors.Is(err, errkind.TooLarge) || errkind.Message(err) != want {
			t.Errorf("Extract(%s) = %v, want kind TooLarge and %q", in.Name, err, want)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 0)
		defer cancel()
		if _, err = Extract(ctx, in); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errkind.TooLarge) {
			t.Errorf("Extract(%s) = %v, want context.DeadlineExceeded of kind TooLarge", in.Name, err)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		stop(long)
		if _, err = Extract(ctx, in); !errors.Is(err, long) || errors.Is(err, errkind.TooLarge) {
			t.Errorf("Extract(%s) = %v, want the cause and no kind", in.Name, err)
		}
	}
}
