package fess

import (
	"context"
	"fmt"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// maxID is the maximum length of a document's ID, in bytes. Fess generates IDs
// of 32 hexadecimal digits; documents that were added through its API may have
// other IDs.
const maxID = 128

// Find implements [search.Service]. Fess assigns a new ID to a document
// whenever it indexes it again, so an older ID may not be found.
func (c *Client) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	row, err := c.row(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	h := hitOf(row)
	return &h, nil
}

// FindText returns a document as Find does, and its text if the server sends all of
// it; see ReadText.
func (c *Client) FindText(
	ctx context.Context, id string, labels []string,
) (h *search.Hit, text string, ok bool, err error) {
	row, err := c.row(ctx, id, labels)
	if err != nil {
		return nil, "", false, err
	}
	found := hitOf(row)
	text, ok = wholeText(row)
	return &found, text, ok, nil
}

// row looks one document up. The API has no call for that, but the field doc_id
// can be searched.
func (c *Client) row(ctx context.Context, id string, labels []string) (wire.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	missing := fmt.Errorf("document %.130q: %w", id, errkind.NotFound)
	if !isName(id, maxID, "_-") || labels != nil && len(labels) == 0 {
		return nil, missing
	}
	text := "doc_id:" + id
	if strings.HasPrefix(id, "-") {
		text = `doc_id:"` + id + `"` // outside of quotes, a leading - would be an operator
	}
	where, err := labelParams(wire.FieldLabel, labels)
	if err != nil {
		return nil, err
	}
	params := append([]param{{wire.Query, text}}, where...)
	a, err := c.documents(ctx, append(params, param{wire.Start, "0"}, param{wire.Num, "1"}), nil)
	if err != nil {
		return nil, err
	}
	for _, row := range a.Data {
		if scalar(row["doc_id"]) == id {
			return row, nil
		}
	}
	return nil, missing
}

// ReadText implements [search.Service]. Fess sends the text of a document only
// if query.additional.response.fields and query.additional.api.response.fields
// contain the field content. A text that is shorter than a digest is known
// without these settings.
func (c *Client) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	if off < 0 {
		return nil, &errkind.Argument{Name: "offset", Value: off, Want: "an integer from 0"}
	}
	row, err := c.row(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	whole, ok := wholeText(row)
	if !ok {
		return nil, fmt.Errorf("the index gives no text of document %s; set query.additional.response.fields=content "+
			"and "+
			"query.additional.api.response.fields=content on the Fess server to make it: %w", id, errkind.Unsupported)
	}
	t := search.WindowOf(whole, off, n)
	t.DocID, t.URL, t.Hash = id, hitOf(row).URL, hash(whole)
	return t, nil
}
