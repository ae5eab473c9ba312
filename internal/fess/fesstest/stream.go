package fesstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// scroll writes a line for each document that is found. line returns a line and
// reports whether more may follow.
func (h *Handler) scroll(w http.ResponseWriter, values url.Values, caller roles, line func(doc, *found) (any, bool)) {
	if !h.o.Scroll {
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "Scroll Search is not available."})
		return
	}
	if h.engineState() == "down" {
		h.fail(w, http.StatusInternalServerError)
		return
	}
	lines, err := h.lines(values, caller, line)
	if err != nil {
		h.fail(w, http.StatusBadRequest)
		return
	}
	writeLines(w, lines)
}

// lines returns the lines of a scroll search.
func (h *Handler) lines(values url.Values, caller roles, line func(doc, *found) (any, bool)) ([]byte, error) {
	values = maps.Clone(values)
	maps.DeleteFunc(values, func(name string, _ []string) bool {
		return slices.Contains([]string{"start", "facet.field", "facet.query", "geo.location.point", "sdh"}, name)
	})
	f, err := h.search(values, &result{}, caller)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, d := range f.docs {
		row, more := line(d, f)
		if err := e.Encode(row); err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	return b.Bytes(), nil
}

// scrollV1 returns a line of API v1: all that the engine stores except the
// text.
func (h *Handler) scrollV1(d doc, f *found) (any, bool) {
	row := h.row(d, f)
	h.addNew(row, d)
	row["_version"], row["_seq_no"], row["_primary_term"] = -1, -2, 0
	if d.Lang != "" {
		row["lang"] = []string{d.Lang}
	}
	return row, true
}

// scrollV2 returns a line of API v2. Fess 15.7.0 sends only the first one.
func (h *Handler) scrollV2(d doc, f *found) (any, bool) {
	return map[string]any{"data": h.row(d, f)}, false
}

func writeLines(w http.ResponseWriter, lines []byte) {
	w.Header().Set("Content-Type", "application/x-ndjson;charset=UTF-8")
	_, _ = w.Write(lines) // an error means that the client has gone
}

// copyOf returns the stored copy of a document in the page of Fess
// (WEB-INF/view/cache.hbs, 15.4). Without a copy the page is empty.
func (h *Handler) copyOf(id string, caller roles) (*doc, string) {
	for _, d := range h.docs {
		if d.ID == id && caller.canSee(d) {
			address, when := html.EscapeString(d.URL), d.Modified.UTC().Format("2006-01-02T15:04:05.000-0700")
			return &d, fmt.Sprintf(`<!DOCTYPE html>
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8">
<base href="%s">
<div style="border:1px solid #999;margin:5px -1px;padding:0;">
<div style="color:#000;background:#ddd;border:1px solid #666;margin:10px 15px;padding:5px;text-align:left;">`+
				`This is a cache of %s. It is a snapshot of the page as it appeared on %s.</div>
</div>
%s
`, address, address, when, d.more.Copy)
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
