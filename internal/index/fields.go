package index

import (
	"context"

	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// isText reports whether a field holds one text that is not tokenized. Its
// column in table docs has the same name.
func isText(field string) bool {
	switch field {
	case "label", "filetype", "mimetype", "host", "filename", "lang", "url", "doc_id":
		return true
	}
	return false
}

// Texts implements [match.Fields].
func (e *evaluator) Texts(ctx context.Context, field string, f func(value string) bool) (segment.Docs, error) {
	if !isText(field) {
		return e.view.None(), nil
	}
	return e.selected(ctx, field, f)
}

// Numbers implements [match.Fields].
func (e *evaluator) Numbers(ctx context.Context, field string, f func(value int64) bool) (segment.Docs, error) {
	column := "size"
	if field == "timestamp" {
		column = "modified"
	}
	return e.selectedNumbers(ctx, column, f)
}

// WithID implements [match.Fields].
func (e *evaluator) WithID(ctx context.Context, id string) (segment.Docs, error) {
	return e.docs(ctx, `SELECT id FROM docs WHERE doc_id=?`, id)
}
