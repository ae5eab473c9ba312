package extract

import (
	"context"
	"errors"

	"knowhow/internal/extract/pdf"
)

// extractPDF converts the result of package pdf, within the limits of Text.
func extractPDF(ctx context.Context, t *Text, data []byte) error {
	p, err := pdf.Read(ctx, data)
	switch {
	case errors.Is(err, pdf.ErrLocked):
		return locked("PDF document")
	case err != nil:
		return err
	}
	t.Title, t.Lang, t.Body, t.Damaged = oneLine(clean(ctx, p.Title)), p.Lang, p.Body, p.Damaged
	t.Illegible = p.Illegible
	for _, h := range p.Headings[:min(len(p.Headings), maxHeadings)] {
		t.Headings = append(t.Headings, Heading{Offset: h.Offset, Level: h.Level, Text: shorten(h.Text, maxHeading)})
	}
	for _, page := range p.Pages {
		t.Pages = append(t.Pages, Page{Offset: page.Offset, Label: shorten(oneLine(clean(ctx, page.Label)), maxPageLabel)})
	}
	return nil
}
