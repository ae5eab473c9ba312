package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A payload is what one line or one HTTP body holds.
type payload struct {
	msgs   []jsonrpc.Message
	bad    []json.RawMessage // ready-made answers to what is no JSON-RPC
	batch  bool
	modern bool // some message names a revision without batches for itself
}

// maxBatch bounds the answer to a batch: what is no message may be two bytes
// long, and gets a hundred.
const maxBatch = 10000

// parse splits one line or body into messages, and prepares each for the SDK.
// pinned hides from the SDK that a client could speak 2026-07-28.
func parse(data []byte, pinned bool) payload {
	p := payload{}
	if !json.Valid(data) {
		p.bad = []json.RawMessage{errorLine(codeParse, "parse error: not valid JSON")}
		return p
	}
	p.modern = !pinned && bytes.Contains(data, revisionHint)
	if data = bytes.TrimSpace(data); data[0] != '[' {
		p.add(data, pinned)
		return p
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil || len(elements) == 0 {
		p.bad = []json.RawMessage{errorLine(codeInvalidRequest, "invalid request: empty batch")}
		return p
	}
	if len(elements) > maxBatch {
		p.bad = []json.RawMessage{errorLine(codeInvalidRequest, fmt.Sprintf("invalid request: a batch must not have more than %d elements", maxBatch))}
		return p
	}
	p.batch = true
	for _, e := range elements {
		p.add(e, pinned)
	}
	return p
}

func (p *payload) add(raw []byte, pinned bool) {
	m, err := decode(raw)
	if err != nil {
		p.bad = append(p.bad, errorLine(codeInvalidRequest, "invalid request: "+err.Error()))
		return
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		adapt(r, pinned)
	}
	p.msgs = append(p.msgs, m)
}

// encode writes the messages of a payload again, so that the SDK reads what was
// checked and nothing else.
func (p *payload) encode() ([]byte, error) {
	if !p.batch {
		return jsonrpc.EncodeMessage(p.msgs[0])
	}
	elements := make([]json.RawMessage, len(p.msgs))
	for i, m := range p.msgs {
		e, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return nil, err
		}
		elements[i] = e
	}
	return compact.Marshal(elements)
}

// decode reads one message. It is stricter than the SDK's decoder about ids,
// which would give back a fraction, a boolean or an integer beyond 2^53
// changed, and it does not take 32 KiB a message.
func decode(raw []byte) (jsonrpc.Message, error) {
	var w map[string]json.RawMessage // a struct would take "Method" for "method"
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

// maxInteger is the largest integer that every JSON reader keeps exactly.
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

// revisionHint is in every message that names its revision, also where an
// encoder escapes the slash of the name.
var revisionHint = []byte("/protocolVersion")

// adapt prepares a request for the SDK.
//
// Params that are missing become empty ones, so that what they lack is reported
// by name. The cursor of resources/read goes where the SDK keeps it, and so does
// the id of a request that may be cancelled after its answer. And where one
// revision is pinned, the revision that a 2026-07-28 client puts into each
// request is hidden: the SDK would answer it with -32022, upon which a client
// must not fall back to initialize.
func adapt(r *jsonrpc.Request, pinned bool) {
	if len(r.Params) == 0 || bytes.Equal(r.Params, []byte("null")) {
		if r.Method == methodCallTool || r.Method == methodReadResource || slices.Contains(undeclared, r.Method) {
			r.Params = json.RawMessage("{}")
		}
		return
	}
	cursor := r.Method == methodReadResource && bytes.Contains(r.Params, []byte(`"cursor"`))
	revision := pinned && bytes.Contains(r.Params, revisionHint)
	id, err := compact.Marshal(r.ID.Raw())
	lasting := err == nil && r.IsCall() && (r.Method == methodCallTool || r.Method == methodReadResource)
	if !cursor && !revision && !lasting {
		return
	}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(r.Params, &params) != nil || params["_meta"] != nil && json.Unmarshal(params["_meta"], &meta) != nil {
		return // the SDK says what is wrong with it
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	if revision {
		delete(meta, mcp.MetaKeyProtocolVersion)
	}
	if cursor && params["cursor"] != nil {
		meta[metaCursor] = params["cursor"]
	}
	if lasting {
		meta[metaRequest] = id
	}
	if params["_meta"], err = compact.Marshal(meta); err != nil {
		return
	}
	if p, err := compact.Marshal(params); err == nil {
		r.Params = p
	}
}

// cancelTarget returns the id of the request that a notifications/cancelled
// names.
func cancelTarget(r *jsonrpc.Request) (jsonrpc.ID, bool) {
	var p map[string]json.RawMessage
	if json.Unmarshal(r.Params, &p) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := decodeID(p["requestId"])
	return id, err == nil && id.IsValid()
}

// What the SDK says where it gives no code, or more than a peer should see.
const (
	sdkTypeName      = " into a *mcp."                            // params of a wrong type, with all of them and a Go type
	sdkUninitialized = "is invalid during session initialization" // a request before initialize
)

// mendError gives the errors that the SDK made itself the form of ours.
func mendError(r *jsonrpc.Response) {
	if r.Error == nil {
		return
	}
	e, coded := errors.AsType[*jsonrpc.Error](r.Error)
	text := r.Error.Error()
	switch {
	case strings.Contains(text, sdkUninitialized):
		r.Error = errNotInitialized("a request")
	case strings.Contains(text, sdkTypeName):
		r.Error = invalidParams("invalid params: a member of them has the wrong type", nil)
	case !coded:
		r.Error = protocolError(codeInvalidRequest, sentence(text), nil)
	case e.Code == 0:
		r.Error = &jsonrpc.Error{Code: codeInvalidRequest, Message: sentence(e.Message), Data: e.Data}
	}
}

// isCancelled says whether a response is one that must not be sent: either we
// marked it, or the SDK made it because the request was cancelled before it
// reached us.
func isCancelled(r *jsonrpc.Response) bool {
	if r.Error == nil {
		return false
	}
	e, coded := errors.AsType[*jsonrpc.Error](r.Error)
	return coded && e.Code == codeCancelled || (!coded || e.Code == 0) && r.Error.Error() == sdkCancelled
}

// sdkCancelled is the SDK's text for a request that was cancelled in its queue.
const sdkCancelled = "context canceled"

// errorLine is an error response to something whose id is not known.
func errorLine(code int64, message string) json.RawMessage {
	w := &compact.Object{}
	w.Add("jsonrpc", "2.0")
	w.Add("id", nil)
	w.Add("error", ErrorObject{Code: code, Message: message})
	return w.Bytes()
}

// duplicateID is the answer to a request whose id is taken.
func duplicateID(id jsonrpc.ID) json.RawMessage {
	raw, _ := compact.Marshal(id.Raw()) // strings and integers always have a JSON form
	return errorLine(codeInvalidRequest, fmt.Sprintf("invalid request: the id %s is in use by a request that has not been answered", spell.Cut(string(raw))))
}

// refusal is an error response to a request.
func refusal(id jsonrpc.ID, e *jsonrpc.Error) json.RawMessage {
	if !id.IsValid() {
		return errorLine(e.Code, e.Message)
	}
	b, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: e})
	if err != nil {
		return errorLine(codeInternal, "internal error")
	}
	return b
}
