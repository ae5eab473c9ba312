package extract

import (
	"context"
	"errors"

	"knowhow/internal/extract/pdf"
)

// sharedPDF is how many bytes of memory a PDF document may take if
// Input.MaxUnpacked is set. Two of 900 real documents take more.
const sharedPDF = 48 << 20

// extractPDF converts the result of package pdf, within the limits of Text.
func extractPDF(ctx context.Context, t *Text, in *Input) error {
	memory, left := 0, in.budget()
	if left.small {
		memory = sharedPDF
	}
	p, err := pdf.Read(ctx, in.Data, memory)
	switch {
	case left.small && errors.Is(err, pdf.ErrMemory):
		left.bytes = -1 // for Parts
		return ErrUnpacked
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
