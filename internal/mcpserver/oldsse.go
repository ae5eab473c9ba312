package mcpserver

import (
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// getOld opens a session of the older transport, HTTP+SSE of 2024-11-05: a
// stream for all answers, whose first event contains the URL for POSTs. The
// session ends with the stream, or if it is not initialized in time.
func (h *HTTPHandler) getOld(w http.ResponseWriter, r *http.Request) {
	s := h.open(true)
	if s == nil {
		h.tooManySessions(w, jsonrpc.ID{})
		return
	}
	defer h.end(s)
	late := time.AfterFunc(oldInitialize, func() {
		if !s.conn.isReady() {
			h.end(s)
		}
	})
	defer late.Stop()
	s.header = r.Header
	s.get.attach(w, func() bool {
		s.get.eventLocked("endpoint", []byte(r.URL.EscapedPath()+"?sessionid="+s.id), true)
		return true
	})
	s.get.carry(r.Context(), s.conn.closed, http.StatusOK, true)
}

// postOld handles a POST to that URL.
func (h *HTTPHandler) postOld(w http.ResponseWriter, r *http.Request, p payload, one *jsonrpc.Request) {
	id := p.lastID()
	s := h.use(r.URL.Query().Get("sessionid"), true, false)
	if s == nil {
		refuse(w, http.StatusNotFound, id, "session not found")
		return
	}
	defer h.release(s, false)
	if p.batch && max(s.conn.revisionInUse(), r.Header.Get(headerRevision)) >= unbatchedRevision {
		refuse(w, http.StatusBadRequest, jsonrpc.ID{}, noBatches)
		return
	}
	if one != nil {
		if e := checkRequest(one, p.modern); e != nil {
			refuse(w, http.StatusBadRequest, id, e.Message)
			return
		}
	}
	s.conn.deliver(r.Context(), h.take(w, s.conn, p, s.header, s.get, false))
	w.WriteHeader(http.StatusAccepted)
}
