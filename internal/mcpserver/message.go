package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A payload is the content of one line or one HTTP body.
type payload struct {
	messages []jsonrpc.Message
	bad      []json.RawMessage // answers to elements that are not JSON-RPC
	batch    bool
	modern   bool // a message specifies a revision without batches for itself
}

// maxBatch limits the size of the answer to a batch: an invalid element of two
// bytes gets an answer of a hundred.
const maxBatch = 10000

// parse splits one line or body into messages. With pinned, revision 2026-07-28
// in a message is ignored.
func parse(data []byte, pinned bool) payload {
	var p payload
	if !json.Valid(data) {
		p.bad = []json.RawMessage{errorLine(codeParse, "parse error: not valid JSON")}
		return p
	}
	p.modern = !pinned && namesRevision(data)
	if data = bytes.TrimSpace(data); data[0] != '[' {
		p.add(data)
		return p
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil || len(elements) == 0 {
		p.bad = []json.RawMessage{errorLine(codeInvalidRequest, "invalid request: empty batch")}
		return p
	}
	if len(elements) > maxBatch {
		p.bad = []json.RawMessage{errorLine(codeInvalidRequest,
			fmt.Sprintf("invalid request: a batch must not have more "+
				"than %d elements", maxBatch))}
		return p
	}
	p.batch = true
	for _, e := range elements {
		p.add(e)
	}
	return p
}

func (p *payload) add(raw []byte) {
	m, err := decode(raw)
	if err != nil {
		p.bad = append(p.bad, errorLine(codeInvalidRequest, "invalid request: "+err.Error()))
		return
	}
	p.messages = append(p.messages, m)
}

// single returns the request or notification if it is the only message of the
// payload, otherwise nil.
func (p *payload) single() *jsonrpc.Request {
	if p.batch {
		return nil
	}
	r, _ := p.messages[0].(*jsonrpc.Request)
	return r
}

// lastID returns the id of the last call, for errors about the whole payload.
func (p *payload) lastID() (id jsonrpc.ID) {
	for _, m := range p.messages {
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			id = r.ID
		}
	}
	return id
}

// decode decodes one message. It is stricter than the SDK's decoder about ids:
// the SDK would change a fraction, a boolean or an integer beyond 2^53. It also
// does not allocate 32 KiB for each message.
func decode(raw []byte) (jsonrpc.Message, error) {
	var w map[string]json.RawMessage // a struct would accept "Method" for "method"
	if err := json.Unmarshal(raw, &w); err != nil || w == nil {
		return nil, errors.New("not a JSON-RPC object")
	}
	if string(w["jsonrpc"]) != `"2.0"` {
		return nil, errors.New(`"jsonrpc" must be "2.0"`)
	}
	id, err := decodeID(w["id"])
	if err != nil {
		return nil, err
	}
	if m, ok := w["method"]; ok {
		r := &jsonrpc.Request{ID: id, Params: w["params"]}
		if m[0] != '"' || json.Unmarshal(m, &r.Method) != nil {
			return nil, errors.New(`"method" must be a string`)
		}
		return r, nil
	}
	if !id.IsValid() || w["result"] == nil && w["error"] == nil {
		return nil, errors.New("neither a request, a notification nor a response")
	}
	r := &jsonrpc.Response{ID: id, Result: w["result"]}
	if e := w["error"]; e != nil && string(e) != "null" {
		e := &jsonrpc.Error{}
		if json.Unmarshal(w["error"], e) != nil {
			return nil, errors.New(`"error" must be an error object`)
		}
		r.Error = e
	}
	return r, nil
}

// maxInteger is the largest integer that every JSON parser reads exactly.
const maxInteger = 1 << 53

func decodeID(raw json.RawMessage) (jsonrpc.ID, error) {
	if len(raw) == 0 {
		return jsonrpc.ID{}, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return jsonrpc.ID{}, err
		}
		return jsonrpc.MakeID(s)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < -maxInteger || n > maxInteger {
		return jsonrpc.ID{}, errors.New("id must be a string or an integer of at most 2^53")
	}
	return jsonrpc.MakeID(float64(n))
}

// namesRevision reports whether a message may specify its own revision, also if
// an encoder escapes the slash in the name.
func namesRevision(raw []byte) bool { return bytes.Contains(raw, []byte("/protocolVersion")) }

// cancelTarget returns the id of the request in a notifications/cancelled.
func cancelTarget(r *jsonrpc.Request) (jsonrpc.ID, bool) {
	var p map[string]json.RawMessage
	if json.Unmarshal(r.Params, &p) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := decodeID(p["requestId"])
	return id, err == nil && id.IsValid()
}

// Methods that the SDK knows in the revisions with a handshake. No server of
// this program declares the last ones.
var (
	undeclaredMethods = []string{"prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
		"resources/subscribe", "resources/unsubscribe"}
	knownMethods = append([]string{methodInitialize, methodPing, methodListTools, methodCallTool, methodListResources,
		methodReadResource, methodListTemplates, methodDiscover}, undeclaredMethods...)
	knownNotifications = []string{notifyCancelled, notifyInitialized, notifyProgress,
		"notifications/roots/list_changed"}
)

// checkRequest returns the reason why a request cannot be served in any state
// of a connection, or nil. For an unknown method its code is
// codeMethodNotFound. modern reports that the request may be one of 2026-07-28.
func checkRequest(r *jsonrpc.Request, modern bool) *jsonrpc.Error {
	notification := slices.Contains(knownNotifications, r.Method)
	switch {
	case modern && r.Method == methodListen:
	case !notification && !slices.Contains(knownMethods, r.Method):
		return errUnknownMethod(r.Method)
	case notification && r.IsCall():
		return newError(codeInvalidRequest, fmt.Sprintf("invalid request: unexpected id for %q", r.Method), nil)
	case !notification && !r.IsCall():
		return newError(codeInvalidRequest, fmt.Sprintf("invalid request: missing id for %q", r.Method), nil)
	case r.Method == notifyProgress && len(r.Params) == 0:
		return newError(codeInvalidRequest, `invalid request: missing required "params"`, nil)
	}
	return nil
}

// adapt prepares a request for the SDK. Missing params become empty ones, so
// that missing members are reported by name. If one revision is pinned, the
// revision that a 2026-07-28 client puts into each request is removed: the SDK
// would answer it with -32022, after which a client must not fall back to
// initialize.
func adapt(r *jsonrpc.Request, pinned bool) {
	if len(r.Params) == 0 || bytes.Equal(r.Params, []byte("null")) {
		if r.Method == methodCallTool || r.Method == methodReadResource ||
			slices.Contains(undeclaredMethods, r.Method) {
			r.Params = json.RawMessage("{}")
		}
		return
	}
	if !pinned || !namesRevision(r.Params) {
		return
	}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(r.Params, &params) != nil || json.Unmarshal(params["_meta"], &meta) != nil {
		return // the SDK reports the error
	}
	delete(meta, mcp.MetaKeyProtocolVersion)
	var err error
	if params["_meta"], err = compact.Marshal(meta); err != nil {
		return
	}
	if p, err := compact.Marshal(params); err == nil {
		r.Params = p
	}
}

// Texts of SDK errors that have no code or contain internal details.
const (
	sdkTypeName      = " into a *mcp."                            // params of a wrong type, with the params and a Go type
	sdkUninitialized = "is invalid during session initialization" // a request before initialize
)

// sdkError converts an error of the SDK to our form.
func sdkError(err error) *jsonrpc.Error {
	e, coded := errors.AsType[*jsonrpc.Error](err)
	text := err.Error()
	switch {
	case strings.Contains(text, sdkUninitialized):
		return notInitialized("a request")
	case strings.Contains(text, sdkTypeName):
		return invalidParams("invalid params: a member of them has the wrong type", nil)
	case !coded:
		return newError(codeInvalidRequest, sentence(text), nil)
	case e.Code == 0:
		return &jsonrpc.Error{Code: codeInvalidRequest, Message: sentence(e.Message), Data: e.Data}
	}
	return &jsonrpc.Error{Code: e.Code, Message: text, Data: e.Data}
}

// errorLine returns an error response to a message whose id is not known.
func errorLine(code int64, message string) json.RawMessage {
	w := &compact.Object{}
	w.Add("jsonrpc", "2.0")
	w.Add("id", nil)
	w.Add("error", ErrorObject{Code: code, Message: message})
	return w.Bytes()
}

// duplicateID returns the response to a request whose id is in use.
func duplicateID(id jsonrpc.ID) json.RawMessage {
	raw, _ := compact.Marshal(id.Raw()) // strings and integers can always be encoded
	return errorLine(codeInvalidRequest, fmt.Sprintf("invalid request: the id %s is in use by a request that has not "+
		"been answered", spell.Cut(string(raw))))
}

// errorResponse returns an error response to a request.
func errorResponse(id jsonrpc.ID, e *jsonrpc.Error) json.RawMessage {
	if !id.IsValid() {
		return errorLine(e.Code, e.Message)
	}
	b, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: e})
	if err != nil {
		return errorLine(codeInternal, "internal error")
	}
	return b
}

// array returns the JSON array of responses.
func array(answers []json.RawMessage) []byte {
	b, err := compact.Marshal(answers)
	if err != nil { // a response that is not JSON
		return errorLine(codeInternal, "internal error")
	}
	return b
}
