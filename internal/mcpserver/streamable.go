package mcpserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const noBatches = "the negotiated revision has no batches"

// primedRevision is the first revision in which streams begin with an event
// that has only an id.
const primedRevision = "2025-11-25"

// postSession answers a POST to a session of Streamable HTTP, or starts a
// session. one is the message of a body that is neither a batch nor a response.
func (h *HTTPHandler) postSession(w http.ResponseWriter, r *http.Request, p payload, one *jsonrpc.Request) {
	id, name := p.lastID(), r.Header.Get(headerSession)
	initialize := one != nil && one.Method == methodInitialize
	if one != nil {
		switch e := checkRequest(one, false); {
		case e == nil:
		case e.Code == codeMethodNotFound && one.IsCall():
			reply(w, http.StatusOK, one.ID, e)
			return
		case e.Code == codeMethodNotFound:
			w.WriteHeader(http.StatusAccepted) // unknown notifications are ignored
			return
		case name != "" || initialize:
			reply(w, http.StatusBadRequest, one.ID, e)
			return
		}
	}
	if name == "" && !initialize {
		switch {
		case len(p.messages) == 0:
			writeJSON(w, http.StatusBadRequest, array(p.bad))
			return
		case one == nil && !p.batch:
			w.WriteHeader(http.StatusAccepted) // a response without a request
			return
		}
		reply(w, http.StatusBadRequest, id, newError(codeInvalidRequest,
			"the "+headerSession+" header is required, initialize gives one",
			map[string]any{"code": "NOT_INITIALIZED", "retryable": true, "reason": "noSession"}))
		return
	}
	asJSON, ok := h.accepted(w, r, id)
	if !revisionKnown(w, r, id) || !ok {
		return
	}
	s := h.use(name, false, false)
	if name == "" {
		s = h.open(false)
	}
	switch {
	case s == nil && name == "":
		h.tooManySessions(w, id)
		return
	case s == nil:
		refuse(w, http.StatusNotFound, id, "session not found")
		return
	}
	defer h.release(s, false)
	switch revision := s.conn.revisionInUse(); {
	case p.batch && max(revision, r.Header.Get(headerRevision)) >= unbatchedRevision:
		refuse(w, http.StatusBadRequest, jsonrpc.ID{}, noBatches)
		return
	case r.Header.Get(headerResume) != "":
		refuse(w, http.StatusBadRequest, id, "can't send Last-Event-ID for POST request")
		return
	case p.modern && slices.ContainsFunc(p.messages, isStateless):
		refuseStateless(w, r, id)
		return
	case one != nil && one.IsCall() && s.conn.inUse(one.ID):
		refuse(w, http.StatusBadRequest, id, fmt.Sprintf("duplicate in-flight request ID %v", one.ID.Raw()))
		return
	}
	if initialize {
		w.Header().Set(headerSession, s.id)
		defer func() {
			if s.conn.revisionInUse() == "" {
				h.end(s)
			}
		}()
	}
	if asJSON {
		h.postJSON(w, r, s.conn, p, false)
		return
	}
	st := newStream(w)
	st.events, st.name = h.events, streamName{s.id, rand.Text()}
	g := h.take(w, s.conn, p, r.Header, st, false)
	if g.open == 0 {
		h.postNothing(w, r, s.conn, g)
		return
	}
	h.events.open(st)
	if revision := streamRevision(r, one); revision >= primedRevision && revision < statelessRevision {
		st.prime()
	}
	s.conn.deliver(r.Context(), g)
	st.carry(r.Context(), s.conn.closed, http.StatusOK, true)
}

// streamRevision returns the revision that determines the form of a request's
// stream.
func streamRevision(r *http.Request, one *jsonrpc.Request) string {
	if one != nil && one.Method == methodInitialize {
		var p struct{ ProtocolVersion string }
		_ = json.Unmarshal(one.Params, &p) // the SDK reports the error
		return p.ProtocolVersion
	}
	return r.Header.Get(headerRevision)
}

// postJSON answers the messages of a body in JSON. If the client ends the request
// before, its calls are cancelled: unlike a stream, such an answer cannot be
// resumed, so nobody would receive it.
func (h *HTTPHandler) postJSON(w http.ResponseWriter, r *http.Request, c *conn, p payload, status bool) {
	b := &body{over: make(chan struct{})}
	g := h.take(w, c, p, r.Header, b, true)
	if g.open == 0 {
		h.postNothing(w, r, c, g)
		return
	}
	c.deliver(r.Context(), g)
	if !b.wait(r.Context(), w, c.closed, status) {
		c.abandon(g)
	}
}

// postNothing delivers the messages of a body without calls.
func (h *HTTPHandler) postNothing(w http.ResponseWriter, r *http.Request, c *conn, g *group) {
	refused := g.answers
	g.answers = nil
	c.deliver(r.Context(), g)
	switch {
	case len(refused) == 0:
		w.WriteHeader(http.StatusAccepted)
	case len(g.items) > 0 || g.unknown:
		writeJSON(w, http.StatusOK, array(refused))
	default:
		writeJSON(w, http.StatusBadRequest, array(refused))
	}
}

func (h *HTTPHandler) tooManySessions(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "60")
	reply(w, http.StatusServiceUnavailable, id, newError(codeBusy,
		fmt.Sprintf("the server has %d sessions, all of them in use, try again later", h.opts.MaxSessions),
		map[string]any{"code": "BUSY", "retryable": true, "retryAfterMs": 60000}))
}

// get opens a server-to-client stream: of a session, or of the older transport,
// in which it starts the session.
func (h *HTTPHandler) get(w http.ResponseWriter, r *http.Request) {
	name, none := r.Header.Get(headerSession), jsonrpc.ID{}
	switch {
	case isBrowser(r):
		http.Redirect(w, r, "/", http.StatusSeeOther) // here it would wait for ever
		return
	case h.events == nil:
		refuseMethod(w, h.methods())
		return
	case h.stateless(r):
		onlyPost(w)
		return
	case h.old() && name == "" && !acceptsStream(r):
		refuse(w, http.StatusNotAcceptable, none, "MCP is served at this path: send a POST, or a GET with Accept: "+
			"text/event-stream")
		return
	case h.old() && name == "":
		h.getOld(w, r)
		return
	}
	if !revisionKnown(w, r, none) {
		return
	}
	if _, asStream := accepts(r.Header.Values("Accept")); !asStream {
		refuse(w, http.StatusBadRequest, none, "Accept must contain 'text/event-stream' for GET requests")
		return
	}
	if name == "" {
		refuse(w, http.StatusBadRequest, none, "Bad Request: GET requires an Mcp-Session-Id header")
		return
	}
	s := h.use(name, false, true)
	if s == nil {
		refuse(w, http.StatusNotFound, none, "session not found")
		return
	}
	defer h.release(s, true)
	if event := r.Header.Get(headerResume); event != "" {
		h.resume(w, r, s, event)
		return
	}
	if !s.get.attach(w, func() bool {
		h.events.restart(s.get)
		s.get.openLocked()
		return true
	}) {
		refuse(w, http.StatusConflict, none, "stream ID conflicts with ongoing stream")
		return
	}
	s.get.carry(r.Context(), s.conn.closed, http.StatusOK, true)
}

// isBrowser reports whether a person opened the path in a browser.
func isBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !acceptsStream(r)
}

// acceptsStream reports whether a GET asks for a stream by name. Clients that
// look for something else, such as metadata of OAuth, accept anything, and
// would wait for the end of the stream.
func acceptsStream(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(v string) bool {
		return strings.Contains(strings.ToLower(v),
			"text/event-stream")
	})
}

// resume sends the events of a stream after the given one, and carries the
// stream until it ends.
func (h *HTTPHandler) resume(w http.ResponseWriter, r *http.Request, s *session, event string) {
	none := jsonrpc.ID{}
	name, number, ok := strings.Cut(event, "_")
	index, err := strconv.Atoi(number)
	if !ok || err != nil || index < 0 || strings.Contains(number, "_") {
		refuse(w, http.StatusBadRequest, none, fmt.Sprintf("malformed Last-Event-ID %q", event))
		return
	}
	st := h.events.stream(streamName{s.id, name})
	if st == nil {
		refuse(w, http.StatusBadRequest, none, "failed to replay events")
		return
	}
	kept := true
	attached := st.attach(w, func() bool {
		var missed [][]byte
		if missed, kept = h.events.after(st, index); kept && name == "" {
			st.openLocked()
		}
		for i, data := range missed {
			st.replayLocked(index+1+i, data)
		}
		if kept && st.started {
			st.flushLocked()
		}
		return kept
	})
	switch {
	case !kept:
		refuse(w, http.StatusBadRequest, none, "failed to replay events")
	case !attached:
		refuse(w, http.StatusConflict, none, "stream ID conflicts with ongoing stream")
	default:
		// If there are no further events, because the last answer was dropped,
		// the status reports it. Otherwise the client would resume the stream
		// for ever.
		st.carry(r.Context(), s.conn.closed, http.StatusNoContent, true)
	}
}

// delete ends a session and its running requests.
func (h *HTTPHandler) delete(w http.ResponseWriter, r *http.Request) {
	name, none := r.Header.Get(headerSession), jsonrpc.ID{}
	if h.stateless(r) {
		onlyPost(w)
		return
	}
	if !revisionKnown(w, r, none) {
		return
	}
	if name == "" {
		refuse(w, http.StatusBadRequest, none, "Bad Request: DELETE requires an Mcp-Session-Id header")
		return
	}
	s := h.use(name, false, true)
	if s == nil {
		refuse(w, http.StatusNotFound, none, "session not found")
		return
	}
	h.end(s)
	w.WriteHeader(http.StatusNoContent)
}

// isStateless reports whether a message is a request that specifies its
// revision.
func isStateless(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	return ok && namedRevision(r) != ""
}

// refuseStateless answers a request that specifies its revision, but not in its
// header, or in a session.
func refuseStateless(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) {
	revision := r.Header.Get(headerRevision)
	if revision == "" {
		revision = string(Pinned) // the meaning of a missing header in the specification
	}
	supported := slices.DeleteFunc(mcp.SupportedProtocolVersions(),
		func(v string) bool { return v >= statelessRevision })
	e := newError(mcp.CodeUnsupportedProtocolVersion, fmt.Sprintf("protocol version %q is not supported by this server",
		revision), nil)
	// strings can always be encoded
	e.Data, _ = compact.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: revision})
	reply(w, http.StatusBadRequest, id, e)
}
