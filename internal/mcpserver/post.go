package mcpserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/mcpserver/access"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const noBatches = "the negotiated revision has no batches"

// primedRevision and later ones begin each stream with an event that has an id
// alone.
const primedRevision = "2025-11-25"

// postSession answers what is posted to a session of Streamable HTTP, or starts
// one. one is the message of a body that is neither a batch nor a response.
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
			w.WriteHeader(http.StatusAccepted) // a response to a request that nobody made
			return
		}
		reply(w, http.StatusBadRequest, id, newError(codeInvalidRequest, "the "+headerSession+" header is required, initialize gives one",
			map[string]any{"code": "NOT_INITIALIZED", "retryable": true, "reason": "noSession"}))
		return
	}
	asJSON, ok := h.accepted(w, r, id)
	if !revisionKnown(w, r, id) || !ok {
		return
	}
	var s *session
	if name == "" {
		s = h.open(false)
	} else if s = h.use(name, false, false); s == nil {
		refuse(w, http.StatusNotFound, id, "session not found")
		return
	}
	if s == nil {
		h.tooManySessions(w, id)
		return
	}
	defer h.release(s, false)
	switch revision := s.conn.revisionInUse(); {
	case p.batch && max(revision, r.Header.Get(headerRevision)) >= unbatchedRevision:
		access.Refuse(w, http.StatusBadRequest, noBatches)
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
	g := s.conn.take(p, r.Header, st, false)
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

// streamRevision returns the revision that decides on the form of the stream that
// answers a request.
func streamRevision(r *http.Request, one *jsonrpc.Request) string {
	if one != nil && one.Method == methodInitialize {
		var p struct{ ProtocolVersion string }
		_ = json.Unmarshal(one.Params, &p) // the SDK says what is wrong with it
		return p.ProtocolVersion
	}
	return r.Header.Get(headerRevision)
}

// postJSON answers the messages of a body in JSON.
func (h *HTTPHandler) postJSON(w http.ResponseWriter, r *http.Request, c *conn, p payload, status bool) {
	b := &body{over: make(chan struct{})}
	g := c.take(p, r.Header, b, true)
	if g.open == 0 {
		h.postNothing(w, r, c, g)
		return
	}
	c.deliver(r.Context(), g)
	b.wait(r.Context(), w, c.closed, status)
}

// postNothing delivers the messages of a body without calls to be answered.
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
// where it starts the session.
func (h *HTTPHandler) get(w http.ResponseWriter, r *http.Request) {
	name, none := r.Header.Get(headerSession), jsonrpc.ID{}
	switch {
	case h.events == nil:
		access.RefuseMethod(w, h.methods())
		return
	case h.stateless(r):
		onlyPost(w)
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

// resume sends what came on a stream after an event, and carries it until it ends.
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
		// If nothing more comes, because its last answer was dropped, the client
		// must be told so, else it would resume it for ever.
		st.carry(r.Context(), s.conn.closed, http.StatusNoContent, true)
	}
}

// delete ends a session, and the requests that run in it.
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

// The older transport, HTTP+SSE of 2024-11-05: GET opens a stream for all answers,
// and names the endpoint to which messages are posted.

func (h *HTTPHandler) getOld(w http.ResponseWriter, r *http.Request) {
	s := h.open(true)
	if s == nil {
		h.tooManySessions(w, jsonrpc.ID{})
		return
	}
	defer h.end(s)
	s.header = r.Header
	s.get.attach(w, func() bool {
		s.get.eventLocked("endpoint", []byte(r.URL.EscapedPath()+"?sessionid="+s.id), true)
		return true
	})
	s.get.carry(r.Context(), s.conn.closed, http.StatusOK, true)
}

func (h *HTTPHandler) postOld(w http.ResponseWriter, r *http.Request, p payload, one *jsonrpc.Request) {
	id := p.lastID()
	s := h.use(r.URL.Query().Get("sessionid"), true, false)
	if s == nil {
		refuse(w, http.StatusNotFound, id, "session not found")
		return
	}
	defer h.release(s, false)
	if p.batch && max(s.conn.revisionInUse(), r.Header.Get(headerRevision)) >= unbatchedRevision {
		access.Refuse(w, http.StatusBadRequest, noBatches)
		return
	}
	if one != nil {
		if e := checkRequest(one, p.modern); e != nil {
			refuse(w, http.StatusBadRequest, id, e.Message)
			return
		}
	}
	s.conn.deliver(r.Context(), s.conn.take(p, s.header, s.get, false))
	w.WriteHeader(http.StatusAccepted)
}

// postStateless answers a request of 2026-07-28, which brings along all that it
// needs.
func (h *HTTPHandler) postStateless(w http.ResponseWriter, r *http.Request, p payload, one *jsonrpc.Request) {
	id := p.lastID()
	asJSON, ok := h.accepted(w, r, id)
	if !ok {
		return
	}
	if r.Header.Get(headerResume) != "" {
		refuse(w, http.StatusBadRequest, id, "can't send Last-Event-ID for POST request")
		return
	}
	if one == nil {
		w.WriteHeader(http.StatusAccepted) // a response to a request that nobody made
		return
	}
	if status, e := checkStateless(r, one); e != nil {
		reply(w, status, one.ID, e)
		return
	}
	if !one.IsCall() {
		w.WriteHeader(http.StatusAccepted) // what it is about has ended with its own request
		return
	}
	c := newConn(h.server, "", 0)
	h.mu.Lock()
	closed := h.closed
	h.conns[c] = struct{}{}
	h.mu.Unlock()
	if closed {
		c.stop() // which the call is told
	}
	defer func() {
		if r.Context().Err() != nil {
			c.cancel(one.ID) // the client's end of the request is its cancellation
		}
		c.end(r.Context())
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
	}()
	if asJSON && one.Method != methodListen {
		h.postJSON(w, r, c, p, true)
		return
	}
	st := newStream(w)
	st.status = true
	c.alone = st
	c.deliver(r.Context(), c.take(p, r.Header, st, false))
	// Errors have an HTTP status, which a comment would send too early.
	st.carry(r.Context(), c.closed, http.StatusOK, false)
}

// checkStateless returns why a request of 2026-07-28 cannot be served, with its
// HTTP status: its header must say what its body says.
func checkStateless(r *http.Request, one *jsonrpc.Request) (int, *jsonrpc.Error) {
	mismatch := func(format string, args ...any) (int, *jsonrpc.Error) {
		return http.StatusBadRequest, newError(mcp.CodeHeaderMismatch, fmt.Sprintf(format, args...), nil)
	}
	switch e := checkRequest(one, true); {
	case e == nil:
	case e.Code == codeMethodNotFound && one.IsCall():
		return http.StatusNotFound, e
	default:
		return http.StatusBadRequest, newError(codeInvalidRequest, e.Message, nil)
	}
	header, named := r.Header.Get(headerRevision), namedRevision(one)
	switch {
	case named == "" && !one.IsCall():
	case named == "":
		return http.StatusBadRequest, newError(codeInvalidParams, fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyProtocolVersion), nil)
	case named != header:
		return mismatch("%s header %q does not match request %s %q", headerRevision, header, mcp.MetaKeyProtocolVersion, named)
	}
	switch method := r.Header.Get("Mcp-Method"); {
	case method == "":
		return mismatch("missing required Mcp-Method header")
	case method != one.Method:
		return mismatch("header mismatch: Mcp-Method header value '%s' does not match body value '%s'", method, one.Method)
	}
	member := map[string]string{methodCallTool: "name", "prompts/get": "name", methodReadResource: "uri"}[one.Method]
	if member == "" {
		return 0, nil
	}
	name := r.Header.Get("Mcp-Name")
	if name == "" {
		return mismatch("missing required Mcp-Name header for method %q", one.Method)
	}
	var params map[string]json.RawMessage
	value := ""
	if json.Unmarshal(one.Params, &params) != nil || params[member] != nil && json.Unmarshal(params[member], &value) != nil {
		return mismatch("failed to extract name from parameters for method %q", one.Method)
	}
	if name != value {
		return mismatch("header mismatch: Mcp-Name header value '%s' does not match body value '%s'", name, value)
	}
	return 0, nil
}

// namedRevision returns the revision that a request names for itself, "" if none.
func namedRevision(r *jsonrpc.Request) string {
	if !namesRevision(r.Params) {
		return ""
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &p) // params of another type name none
	revision, _ := p.Meta[mcp.MetaKeyProtocolVersion].(string)
	return revision
}

// isStateless reports whether a message is a request that names its revision.
func isStateless(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	return ok && namedRevision(r) != ""
}

// refuseStateless answers a request that names its revision, but not in its
// header, or in a session.
func refuseStateless(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) {
	revision := r.Header.Get(headerRevision)
	if revision == "" {
		revision = string(Pinned) // what the specification has clients without the header mean
	}
	supported := slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v >= statelessRevision })
	e := newError(mcp.CodeUnsupportedProtocolVersion, fmt.Sprintf("protocol version %q is not supported by this server", revision), nil)
	e.Data, _ = compact.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: revision}) // strings always have a JSON form
	reply(w, http.StatusBadRequest, id, e)
}

// onlyPost refuses what 2026-07-28 does not have.
func onlyPost(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST")
	refuse(w, http.StatusMethodNotAllowed, jsonrpc.ID{}, "Method Not Allowed")
}
