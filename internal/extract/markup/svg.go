package markup

import (
	"context"
	"strings"

	"golang.org/x/net/html"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// SVG extracts the title, the descriptions and the texts of a drawing
// (SVG 2), one line each.
func SVG(ctx context.Context, t *plain.Text, src string) {
	z := html.NewTokenizer(plain.NewReader(ctx, strings.NewReader(src)))
	out := plain.NewWriter(ctx)
	var b strings.Builder
	inside := "" // the current element with text
	skipped := 0 // open elements that are not read
	flush := func() {
		line := plain.OneLine(plain.Clean(ctx, strings.ToValidUTF8(b.String(), "")))
		b.Reset()
		if inside == "title" && t.Title == "" {
			t.Title = line
		}
		out.Line(line)
		inside = ""
	}
	for {
		switch tt := z.Next(); tt {
		case html.ErrorToken:
			flush()
			out.Finish(t)
			return
		case html.TextToken:
			if inside != "" && skipped == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			raw, _ := z.TagName()
			name := string(raw)
			if tt == html.SelfClosingTagToken {
				z.NextIsNotRawText()
				continue
			}
			switch name {
			case "style", "script", "metadata":
				skipped++
			case "title", "desc", "text", "foreignobject":
				flush()
				inside = name
			default:
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			raw, _ := z.TagName()
			switch name := string(raw); name {
			case "style", "script", "metadata":
				skipped = max(skipped-1, 0)
			case inside:
				flush()
			}
		}
	}
}
