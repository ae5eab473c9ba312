package mcpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"knowhow/internal/httpguard"
	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/wire"
	"knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An exchange is one HTTP request that has been admitted, on its way to one of
// the SDK's handlers.
type exchange struct {
	handler *HTTPHandler
	filter  *filter
	request *http.Request
}

// stateless says whether the request belongs to a revision without sessions.
func (x *exchange) stateless() bool {
	return x.handler.modern != nil && x.request.Header.Get(headerRevision) >= statelessRevision
}

// old says whether the request is a message of the older transport.
func (x *exchange) old() bool {
	return x.handler.old != nil && x.request.URL.Query().Has("sessionid")
}

// get opens a server-to-client stream: of a session, or of the older
// transport, where it starts the session.
func (x *exchange) get() {
	h := x.handler
	switch {
	case h.opts.DisableSSE:
		refuseMethod(x.filter, h.methods())
	case x.stateless():
		x.pass(h.modern)
	case h.old != nil && x.request.Header.Get(headerSession) == "":
		ss := h.opens()
		if ss == nil {
			x.tooManySessions(jsonrpc.ID{})
			return
		}
		defer h.done(ss)
		defer ss.stop()
		ss.header = x.request.Header
		x.in(ss)
		x.openOld(ss)
	default:
		x.filter.resumed = x.request.Header.Get(headerResume) != ""
		x.filter.stream = x.filter.resumed
		x.pass(h.legacy)
	}
}

// delete ends a session, and the requests that run in it first, because the
// SDK would wait for them.
func (x *exchange) delete() {
	h, id := x.handler, x.request.Header.Get(headerSession)
	if x.stateless() {
		x.pass(h.modern)
		return
	}
	if ss := h.session(id); ss != nil {
		ss.stop()
		defer h.forget(id)
	}
	x.pass(h.legacy)
}

// post checks a message, or a batch of them, and passes it on.
func (x *exchange) post() {
	p, ok := x.body()
	if !ok {
		return
	}
	if p.Batch && !x.sift(&p) {
		return
	}
	h, old := x.handler, x.old()
	first, initialize := x.inspect(p)
	x.filter.id, x.filter.stream = first, first.IsValid() && !initialize && !old
	if x.filter.answered() {
		return
	}
	if !x.stateless() && !old && (x.taken(p) || !initialize && x.callDirectly(p)) {
		return
	}
	if old && !x.stateless() {
		x.postOld(p)
		return
	}
	if !x.rewind(p) {
		return
	}
	switch {
	case x.stateless():
		ss := h.passes()
		defer h.done(ss)
		x.in(ss)
		x.pass(h.modern)
	case initialize && x.request.Header.Get(headerSession) == "":
		ss := h.opens()
		if ss == nil {
			x.tooManySessions(first)
			return
		}
		defer h.done(ss)
		x.in(ss)
		x.pass(h.legacy)
	default:
		x.pass(h.legacy)
	}
}

// in makes the SDK's next connection belong to a session.
func (x *exchange) in(ss *session) {
	x.request = x.request.WithContext(withSession(x.request.Context(), ss))
}

// pass hands the request to the SDK.
func (x *exchange) pass(next http.Handler) {
	if !x.handler.opts.DisableSSE && !x.stateless() {
		// Errors of 2026-07-28 have an HTTP status, which a comment would
		// send too early.
		x.filter.keepAlive(keepAlive)
	}
	next.ServeHTTP(x.filter, x.request)
	if x.filter.finish() == http.StatusNotFound {
		x.handler.forget(x.request.Header.Get(headerSession)) // ended for being idle
	}
}

func (x *exchange) tooManySessions(id jsonrpc.ID) {
	x.filter.Header().Set("Retry-After", "60")
	reply(x.filter, http.StatusServiceUnavailable, id, fault.New(fault.CodeBusy,
		fmt.Sprintf("the server has %d sessions, all of them in use, try again later", x.handler.opts.MaxSessions),
		map[string]any{"code": "BUSY", "retryable": true, "retryAfterMs": 60000}))
}

// maxDrain is how much is read of a body that is too large, in bytes.
const maxDrain = 64 << 20

// body reads and parses the body. If it cannot be served, the request has been
// answered.
func (x *exchange) body() (wire.Payload, bool) {
	w, r, limit := x.filter, x.request, x.handler.opts.MaxBody
	tooLarge := fmt.Sprintf("the body of a request must not exceed %d bytes", limit)
	if r.ContentLength > limit {
		httpguard.Drain(w, r, maxDrain)
		refuse(w, http.StatusRequestEntityTooLarge, tooLarge)
		return wire.Payload{}, false
	}
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type of a request must be application/json")
		return wire.Payload{}, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		httpguard.Drain(w, r, maxDrain)
		refuse(w, http.StatusRequestEntityTooLarge, tooLarge)
		return wire.Payload{}, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body of the request could not be read")
		return wire.Payload{}, false
	}
	p := wire.Parse(body, x.handler.pinned)
	if len(p.Bad) > 0 && !p.Batch {
		writeJSON(w, http.StatusBadRequest, p.Bad[0])
		return wire.Payload{}, false
	}
	return p, true
}

// rewind puts the body back for the SDK.
func (x *exchange) rewind(p wire.Payload) bool {
	body, err := p.Encode()
	if err != nil {
		refuse(x.filter, http.StatusBadRequest, "the request could not be read")
		return false
	}
	r := x.request
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if x.handler.opts.DisableSSE || r.Header.Get("Accept") == "" {
		// The answer will be JSON, or the client takes anything (RFC 9110,
		// section 12.5.1): do not insist on clients that ask for streams.
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	return true
}

// inspect answers what the SDK would answer wrongly. It returns the id of the
// last call, for errors that concern the whole body, and whether the body
// starts a session.
func (x *exchange) inspect(p wire.Payload) (id jsonrpc.ID, initialize bool) {
	old := x.old()
	for _, m := range p.Msgs {
		r, ok := m.(*jsonrpc.Request)
		if !ok {
			continue
		}
		if r.IsCall() {
			id = r.ID
		}
		switch {
		case r.Method == methodInitialize && !p.Modern:
			x.request.Header.Del(headerRevision) // the body negotiates, and the client may be ahead of us
			initialize = true
		case x.stateless() || old: // answers of the older transport go to its stream
		case !slices.Contains(legacyMethods, r.Method) && !slices.Contains(legacyNotifications, r.Method):
			x.unknownMethod(r)
			return id, false
		case x.request.Header.Get(headerSession) == "":
			reply(x.filter, http.StatusBadRequest, r.ID, fault.New(fault.CodeInvalidRequest,
				"the "+headerSession+" header is required, initialize gives one", map[string]any{
					"code": "NOT_INITIALIZED", "retryable": true, "reason": "noSession"}))
			return id, false
		}
	}
	return id, initialize
}

// unknownMethod answers a call of a method that no revision with a handshake
// has. The SDK refuses it with text.
func (x *exchange) unknownMethod(r *jsonrpc.Request) {
	if !r.IsCall() {
		x.filter.WriteHeader(http.StatusAccepted) // unknown notifications are ignored
		return
	}
	reply(x.filter, http.StatusOK, r.ID, errUnknownMethod(r.Method))
}

func errUnknownMethod(method string) *jsonrpc.Error {
	return fault.New(fault.CodeMethodNotFound, "there is no method "+spell.Quote(method), nil)
}

// legacyMethods and legacyNotifications are those that the SDK knows of the
// revisions with a handshake.
var (
	legacyMethods = append([]string{methodInitialize, methodPing, methodListTools, methodCallTool, methodListResources,
		methodReadResource, methodListTemplates, methodDiscover}, wire.Undeclared()...)
	legacyNotifications = []string{notifyCancelled, notifyInitialized, notifyProgress, "notifications/roots/list_changed"}
)
