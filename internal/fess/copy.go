package fess

import (
	"context"
	"fmt"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

var _ search.Service = (*Client)(nil)

// copyPath is the page that shows a stored copy, in every version of Fess.
const copyPath = "/cache/"

// StoredCopy returns the copy of a document that Fess stored. It looks the
// document up like Find. Fess stores copies of pages of type text/html, up to
// 2.5 MB. For other documents it answers with an empty frame. Such an answer,
// and one with another frame, is an error of kind Unsupported.
//
// A server with API v1 shows copies on a web page, where some versions ignore
// tokens. Only documents for guests can be read there reliably.
func (c *Client) StoredCopy(ctx context.Context, id string, labels []string) (*search.StoredCopy, error) {
	row, err := c.row(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	none := fmt.Errorf("the Fess server keeps no copy of document %s: %w", id, errkind.Unsupported)
	var framed []byte
	if c.api.known() == v2 {
		// Since Fess 15.7, a hit has a field for that.
		if scalar(row["has_cache"]) != "true" {
			return nil, none
		}
		framed, err = c.copyV2(ctx, id, none)
	} else {
		framed, err = c.copyPage(ctx, id, none)
	}
	if err != nil {
		return nil, err
	}
	data := wire.Unframe(framed)
	if len(data) == 0 {
		return nil, none
	}
	return &search.StoredCopy{DocID: id, URL: hitOf(row).URL, MediaType: "text/html; charset=utf-8", Data: data}, nil
}

// copyV2 requests a copy with API v2. It returns the error none if there is
// none.
func (c *Client) copyV2(ctx context.Context, id string, none error) ([]byte, error) {
	a, err := c.send(ctx, "/api/v2/cache/"+id, nil, jsonType)
	if err != nil {
		return nil, err
	}
	switch {
	case a.notFound() || a.status == http.StatusNotFound:
		return nil, none
	case !a.wanted:
		return nil, c.unusable(a)
	}
	if err := c.check(ctx, a); err != nil {
		return nil, err
	}
	var body wire.Copy
	if err := decode(a, &body); err != nil {
		return nil, err
	}
	switch {
	case body.DocID == nil || body.Content == nil:
		return nil, notFess(a)
	case string(*body.DocID) != id:
		return nil, none
	}
	return []byte(*body.Content), nil
}

// copyPage requests the web page of a copy. It returns the error none if there
// is none, because Fess then redirects to an error page.
func (c *Client) copyPage(ctx context.Context, id string, none error) ([]byte, error) {
	a, err := c.send(ctx, copyPath, []param{{"docId", id}}, htmlType)
	if err != nil {
		return nil, err
	}
	switch s := a.status; {
	case s == http.StatusOK && a.wanted:
		return a.body, nil
	case s == http.StatusTooManyRequests || s >= 500 || s == http.StatusUnauthorized || s == http.StatusForbidden:
		return nil, noJSON(a)
	}
	return nil, none
}
