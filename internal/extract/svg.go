package extract

import (
	"context"
	"strings"

	"golang.org/x/net/html"
)

// extractSVG extracts the title, the descriptions and the texts of a drawing
// (SVG 2), one line each.
func extractSVG(ctx context.Context, t *Text, src string) {
	z := html.NewTokenizer(reader{ctx, strings.NewReader(src)})
	var out lines
	var b strings.Builder
	inside := "" // the current element with text
	skipped := 0 // open elements that are not read
	flush := func() {
		line := oneLine(clean(ctx, strings.ToValidUTF8(b.String(), "")))
		b.Reset()
		if inside == "title" && t.Title == "" {
			t.Title = line
		}
		out.add(line)
		inside = ""
	}
	for {
		switch tt := z.Next(); tt {
		case html.ErrorToken:
			flush()
			out.finish(t)
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
