// Package wire reads and writes the messages of JSON-RPC: more strictly than the
// SDK, and errors in the one form that all of the server's have. The transports of
// the MCP server use it.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A Payload is what one line or one HTTP body holds.
type Payload struct {
	Msgs   []jsonrpc.Message
	Bad    []json.RawMessage // ready-made answers to what is no JSON-RPC
	Batch  bool
	Modern bool // some message names a revision without batches for itself
	pinned bool // as in Parse
}

// maxBatch bounds the answer to a batch: what is no message may be two bytes
// long, and gets a hundred.
const maxBatch = 10000

// Parse splits one line or body into messages. pinned hides from the SDK that a
// client could speak 2026-07-28.
func Parse(data []byte, pinned bool) Payload {
	p := Payload{pinned: pinned}
	if !json.Valid(data) {
		p.Bad = []json.RawMessage{ErrorLine(fault.CodeParse, "parse error: not valid JSON")}
		return p
	}
	p.Modern = !pinned && NamesRevision(data)
	if data = bytes.TrimSpace(data); data[0] != '[' {
		p.add(data)
		return p
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil || len(elements) == 0 {
		p.Bad = []json.RawMessage{ErrorLine(fault.CodeInvalidRequest, "invalid request: empty batch")}
		return p
	}
	if len(elements) > maxBatch {
		p.Bad = []json.RawMessage{ErrorLine(fault.CodeInvalidRequest, fmt.Sprintf("invalid request: a batch must not have more than %d elements", maxBatch))}
		return p
	}
	p.Batch = true
	for _, e := range elements {
		p.add(e)
	}
	return p
}

func (p *Payload) add(raw []byte) {
	m, err := Decode(raw)
	if err != nil {
		p.Bad = append(p.Bad, ErrorLine(fault.CodeInvalidRequest, "invalid request: "+err.Error()))
		return
	}
	p.Msgs = append(p.Msgs, m)
}

// Encode writes the messages again, prepared by [Adapt], so that the SDK reads what
// was checked and nothing else.
func (p *Payload) Encode() ([]byte, error) {
	for _, m := range p.Msgs {
		Adapt(m, p.pinned)
	}
	if !p.Batch {
		return jsonrpc.EncodeMessage(p.Msgs[0])
	}
	elements := make([]json.RawMessage, len(p.Msgs))
	for i, m := range p.Msgs {
		e, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return nil, err
		}
		elements[i] = e
	}
	return compact.Marshal(elements)
}

// Decode reads one message. It is stricter than the SDK's decoder about ids,
// which would give back a fraction, a boolean or an integer beyond 2^53
// changed, and it does not take 32 KiB a message.
func Decode(raw []byte) (jsonrpc.Message, error) {
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

// NamesRevision says whether a message may name its own revision.
func NamesRevision(raw []byte) bool { return bytes.Contains(raw, revisionHint) }

// CancelTarget returns the id of the request that a notifications/cancelled
// names.
func CancelTarget(r *jsonrpc.Request) (jsonrpc.ID, bool) {
	var p map[string]json.RawMessage
	if json.Unmarshal(r.Params, &p) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := decodeID(p["requestId"])
	return id, err == nil && id.IsValid()
}

// What the SDK says where it gives no code, or more than a peer should see.
const (
	SDKTypeName      = " into a *mcp."                            // params of a wrong type, with all of them and a Go type
	SDKUninitialized = "is invalid during session initialization" // a request before initialize
)

// MendError gives the errors that the SDK made itself the form of ours.
func MendError(r *jsonrpc.Response) {
	if r.Error == nil {
		return
	}
	e, coded := errors.AsType[*jsonrpc.Error](r.Error)
	text := r.Error.Error()
	switch {
	case strings.Contains(text, SDKUninitialized):
		r.Error = fault.NotInitialized("a request")
	case strings.Contains(text, SDKTypeName):
		r.Error = fault.InvalidParams("invalid params: a member of them has the wrong type", nil)
	case !coded:
		r.Error = fault.New(fault.CodeInvalidRequest, fault.Sentence(text), nil)
	case e.Code == 0:
		r.Error = &jsonrpc.Error{Code: fault.CodeInvalidRequest, Message: fault.Sentence(e.Message), Data: e.Data}
	}
}

// IsCancelled says whether a response is one that must not be sent: either we
// marked it, or the SDK made it because the request was cancelled before it
// reached us.
func IsCancelled(r *jsonrpc.Response) bool {
	if r.Error == nil {
		return false
	}
	e, coded := errors.AsType[*jsonrpc.Error](r.Error)
	return coded && e.Code == fault.CodeCancelled || (!coded || e.Code == 0) && r.Error.Error() == sdkCancelled
}

// sdkCancelled is the SDK's text for a request that was cancelled in its queue.
const sdkCancelled = "context canceled"

// ErrorLine is an error response to something whose id is not known.
func ErrorLine(code int64, message string) json.RawMessage {
	w := &compact.Object{}
	w.Add("jsonrpc", "2.0")
	w.Add("id", nil)
	w.Add("error", fault.Object{Code: code, Message: message})
	return w.Bytes()
}

// DuplicateID is the answer to a request whose id is taken.
func DuplicateID(id jsonrpc.ID) json.RawMessage {
	raw, _ := compact.Marshal(id.Raw()) // strings and integers always have a JSON form
	return ErrorLine(fault.CodeInvalidRequest, fmt.Sprintf("invalid request: the id %s is in use by a request that has not been answered", spell.Cut(string(raw))))
}

// Refusal is an error response to a request.
func Refusal(id jsonrpc.ID, e *jsonrpc.Error) json.RawMessage {
	if !id.IsValid() {
		return ErrorLine(e.Code, e.Message)
	}
	b, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: e})
	if err != nil {
		return ErrorLine(fault.CodeInternal, "internal error")
	}
	return b
}

// MendBody mends the responses of one message or a batch.
func MendBody(b []byte) []byte {
	if t := bytes.TrimSpace(b); len(t) == 0 || t[0] != '[' {
		return MendMessage(b)
	}
	var in, out []json.RawMessage
	if json.Unmarshal(b, &in) != nil {
		return b
	}
	for _, m := range in {
		if m = MendMessage(m); m != nil {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return Batch(out)
}

// MendMessage returns a response as it should be sent, nil if it should not.
func MendMessage(raw []byte) []byte {
	m, err := Decode(raw)
	r, ok := m.(*jsonrpc.Response)
	if err != nil || !ok {
		return raw
	}
	if IsCancelled(r) {
		return nil
	}
	MendError(r)
	mended, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		return raw
	}
	return mended
}

// Batch is the JSON of an array of answers.
func Batch(answers []json.RawMessage) []byte {
	b, err := compact.Marshal(answers)
	if err != nil { // an answer that is no JSON
		return ErrorLine(fault.CodeInternal, "internal error")
	}
	return b
}
