package extract

import (
	"context"
	"errors"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// sharedPDF is how many bytes of memory a PDF document may take if
// Input.MaxUnpacked is set. Two of 900 real documents take more.
const sharedPDF = 48 << 20

// readPDF converts the result of package pdf, within the limits of Text.
func readPDF(ctx context.Context, t *Text, in Input) error {
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
		return plain.Locked("PDF document")
	case err != nil:
		return err
	}
	t.Title, t.Lang, t.Body, t.Damaged = plain.OneLine(plain.Clean(ctx, p.Title)), p.Lang, p.Body, p.Damaged
	t.Illegible = p.Illegible
	for _, h := range p.Headings {
		t.Mark(h.Offset, h.Level, h.Text)
	}
	for _, page := range p.Pages {
		label := plain.Shorten(plain.OneLine(plain.Clean(ctx, page.Label)), plain.MaxPageLabel)
		t.Pages = append(t.Pages, document.Page{Offset: page.Offset, Label: label})
	}
	return nil
}
