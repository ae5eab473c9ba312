package fess

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

var _ search.Service = (*Client)(nil)

// copyPath is the page that shows a stored copy, in every version of Fess.
const copyPath = "/cache/"

// frame matches the text that Fess writes before a stored copy
// (WEB-INF/view/cache.hbs, Fess 15.4 and 15.7): a document type, the charset,
// the base, and a box with a note.
var frame = regexp.MustCompile(`^\s*<!DOCTYPE html>\r?\n<meta http-equiv="Content-Type"[^\n]*\n<base href="[^\n]*\n` +
	`<div [^\n]*\n<div [^\n]*</div>\r?\n</div>\r?\n`)

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
	h := row.hit()
	none := fmt.Errorf("the Fess server keeps no copy of document %s: %w", id, errkind.Unsupported)
	var framed []byte
	if c.api.known() == v2 {
		// Since Fess 15.7, a hit has a field for that.
		if scalar(row.HasCache) != "true" {
			return nil, none
		}
		framed, err = c.copyV2(ctx, id, none)
	} else {
		framed, err = c.copyPage(ctx, id, none)
	}
	if err != nil {
		return nil, err
	}
	data := unframe(framed)
	if len(data) == 0 {
		return nil, none
	}
	return &search.StoredCopy{DocID: id, URL: h.URL, MediaType: "text/html; charset=utf-8", Data: data}, nil
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
	var body struct {
		DocID   *text `json:"doc_id"`
		Content *text `json:"content"`
	}
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

// unframe returns a stored copy without Fess's frame, or nil if it has none.
func unframe(framed []byte) []byte {
	cut := frame.FindIndex(framed)
	if cut == nil {
		return nil
	}
	return bytes.TrimSpace(framed[cut[1]:])
}
