package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// postStateless answers a request of 2026-07-28, which is independent of other
// requests.
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
		w.WriteHeader(http.StatusAccepted) // a response without a request
		return
	}
	if status, e := checkStateless(r, one); e != nil {
		reply(w, status, one.ID, e)
		return
	}
	if !one.IsCall() {
		w.WriteHeader(http.StatusAccepted) // the request that it concerns has ended
		return
	}
	c := newConn(h.server, "", 0)
	h.mu.Lock()
	closed := h.closed
	h.conns[c] = struct{}{}
	h.mu.Unlock()
	if closed {
		c.stop() // the answer to the call is that the server is shutting down
	}
	defer func() {
		if r.Context().Err() != nil {
			c.cancel(one.ID) // in this revision a client cancels by closing the request
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
	c.deliver(r.Context(), h.take(w, c, p, r.Header, st, false))
	// Errors have an HTTP status, which would be sent too early by a comment.
	st.carry(r.Context(), c.closed, http.StatusOK, false)
}

// checkStateless returns the reason why a request of 2026-07-28 cannot be
// served, with its HTTP status: its header must match its body.
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
		return http.StatusBadRequest, newError(codeInvalidParams, fmt.Sprintf("missing or invalid _meta field %q",
			mcp.MetaKeyProtocolVersion), nil)
	case named != header:
		return mismatch("%s header %q does not match request %s %q", headerRevision, header,
			mcp.MetaKeyProtocolVersion, named)
	}
	switch method := r.Header.Get("Mcp-Method"); {
	case method == "":
		return mismatch("missing required Mcp-Method header")
	case method != one.Method:
		return mismatch("header mismatch: Mcp-Method header value '%s' does not match body value '%s'", method,
			one.Method)
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
	if json.Unmarshal(one.Params, &params) != nil || params[member] != nil && json.Unmarshal(params[member],
		&value) != nil {
		return mismatch("failed to extract name from parameters for method %q", one.Method)
	}
	if name != value {
		return mismatch("header mismatch: Mcp-Name header value '%s' does not match body value '%s'", name, value)
	}
	return 0, nil
}

// namedRevision returns the revision in a request, or "" if there is none.
func namedRevision(r *jsonrpc.Request) string {
	if !namesRevision(r.Params) {
		return ""
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &p) // params of another type contain none
	revision, _ := p.Meta[mcp.MetaKeyProtocolVersion].(string)
	return revision
}

// onlyPost refuses methods that 2026-07-28 does not have.
func onlyPost(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST")
	refuse(w, http.StatusMethodNotAllowed, jsonrpc.ID{}, "Method Not Allowed")
}
