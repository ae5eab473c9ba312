package fessserver

import (
	"errors"
	"fmt"
	"html"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// maxText is the maximum length of a text that is served as one page, in bytes.
const maxText = 16 << 20

// cached returns a document's text as a page with Fess's head (Fess 15.4,
// cache.hbs), and the document. The text is one preformatted block, which keeps
// its white space. If the document has no text, the page has only the head.
func (c *call) cached(id string) (string, *search.Hit, error) {
	ctx := c.r.Context()
	hit, err := c.backend.Find(ctx, id, nil)
	if err != nil {
		return "", nil, err
	}
	body := ""
	text, err := c.backend.ReadText(ctx, id, nil, 0, maxText)
	switch {
	case errors.Is(err, errkind.Unsupported):
	case err != nil:
		return "", nil, err
	case text.Size > maxText:
		return "", nil, fmt.Errorf("the text has %d bytes; the limit for one page is %d: %w", text.Size, maxText,
			errkind.TooLarge)
	default:
		// A newline directly after <pre> is ignored (HTML 13.1.2.5).
		body = fmt.Sprintf("<html><head><title>%s</title></head><body><pre>\n%s</pre></body></html>",
			html.EscapeString(hit.Title), html.EscapeString(text.Window))
	}
	// Clients recognize the head by its lines, so the URL must be on one line.
	return wire.Frame(sanitize.Line(hit.URL), created(hit, "2006-01-02T15:04:05.000-0700"), body), hit, nil
}

// created returns when a document was added, in a layout of package time, or ""
// if that is unknown.
func created(h *search.Hit, form string) string {
	t := h.Created
	if t.IsZero() {
		t = h.Timestamp
	}
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(form)
}

// cachePage answers GET /cache/?docId= with a document's text as a page.
func (c *call) cachePage() {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		c.w.Header().Set("Allow", "GET, HEAD")
		writeHTML(c.w, http.StatusMethodNotAllowed, c.r.Method+" is not allowed.")
		return
	}
	id := c.params.Get("docId")
	if !validID(id) {
		writeHTML(c.w, http.StatusNotFound, "There is no such document: set docId to the id of a document.")
		return
	}
	page, _, err := c.cached(id)
	if err != nil {
		c.logFailure(err, newUUID())
		message := "The document cannot be shown: see the log."
		if s := status(err); s < http.StatusInternalServerError {
			message = sentenceOf(err)
		}
		writeHTML(c.w, status(err), message)
		return
	}
	// The text is escaped; the policy is a second protection.
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	c.w.Header().Set("Content-Disposition", `inline; filename="`+id+`"`)
	c.w.Header().Set("Content-Type", "text/html;charset=UTF-8")
	_, _ = c.w.Write([]byte(page)) // an error means that the client is gone
}
