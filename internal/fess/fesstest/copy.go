package fesstest

import (
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// copyOf returns the stored copy of a document in the page of Fess
// (WEB-INF/view/cache.hbs, 15.4). Without a copy the page is empty.
func (h *Handler) copyOf(id string, caller roles) (*doc, string) {
	for _, d := range h.docs {
		if d.ID == id && caller.canSee(d) {
			return &d, wire.Frame(d.URL, d.Modified.UTC().Format("2006-01-02T15:04:05.000-0700"), d.more.Copy)
		}
	}
	return nil, ""
}

// cachePage serves the web page that shows a stored copy to guests.
func (h *Handler) cachePage(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("docId")
	if id == "" {
		writeHTML(w, http.StatusOK)
		return
	}
	caller, _ := h.authenticate(r)
	d, page := h.copyOf(id, caller)
	if d == nil || h.engineState() == "down" {
		redirect(w, h.o.ContextPath+"/error/")
		return
	}
	w.Header().Set("Content-Type", htmlType)
	_, _ = w.Write([]byte(page)) // an error means that the client has gone
}
