package extract

import (
	"context"

	"knowhow/internal/extract/pdf"
)

// extractPDF converts the result of package pdf, within the limits of Text.
func extractPDF(ctx context.Context, t *Text, data []byte) error {
	p, err := pdf.Read(ctx, data)
	if err != nil {
		return err
	}
	t.Title, t.Lang, t.Body = oneLine(clean(ctx, p.Title)), p.Lang, p.Body
	for _, h := range p.Headings[:min(len(p.Headings), maxHeadings)] {
		t.Headings = append(t.Headings, Heading{Offset: h.Offset, Level: h.Level, Text: shorten(h.Text, maxHeading)})
	}
	for _, page := range p.Pages {
		t.Pages = append(t.Pages, Page{Offset: page.Offset, Label: shorten(oneLine(clean(ctx, page.Label)), maxPageLabel)})
	}
	return nil
}
