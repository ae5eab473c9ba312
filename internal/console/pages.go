package console

import "net/http"

// A Page is the beginning of a page or a slide of a document.
type Page struct {
	Offset int    `json:"offset"` // of its first byte in the text
	Label  string `json:"label"`  // its number, or another label such as "iv"
}

// servePages sends the pages of the document with the ID in the parameter id, in order.
func (c *console) servePages(w http.ResponseWriter, r *http.Request) {
	id, err := parameter(r.URL.Query(), "id", 1)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	pages, err := c.o.Pages(r.Context(), id)
	c.send(w, r, append([]Page{}, pages...), err)
}
