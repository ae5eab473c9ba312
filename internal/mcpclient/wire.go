package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxMessage is the maximum length of a message of a server, in bytes. A longer
// one ends the connection.
const maxMessage = 64 << 20

// A message is any JSON-RPC message of a server. Its parts stay as the server
// wrote them.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method json.RawMessage `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// number returns the id of one of our requests. Ids that a server returns as
// strings are accepted.
func (m *message) number() (int64, bool) {
	id := m.ID
	if len(id) > 2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return n, err == nil
}

// asks reports whether the message is a request that requires a response.
func (m *message) asks() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// failure returns the error of a response as the server wrote it, so it may
// contain secrets. It returns nil if the response is a result. An error that is
// not an object, as JSON-RPC requires, is accepted: its text is the message.
func (m *message) failure() *RemoteError {
	if len(m.Error) == 0 || string(m.Error) == "null" {
		return nil
	}
	e := &RemoteError{}
	if json.Unmarshal(m.Error, e) != nil {
		return &RemoteError{Code: codeInternal, Message: string(m.Error)}
	}
	return e
}

// JSON-RPC error codes.
const (
	codeNoMethod = -32601
	codeInternal = -32603
	codeRevision = -32022 // the server does not support the revision (MCP 2026-07-28)
)

// A request is a request to a server, or a notification if its ID is 0.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      int64           `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

// requestFrame returns a request, or a notification if id is 0, on one line
// that ends with a newline. params must be a JSON object; nil and null omit
// them.
func requestFrame(id int64, method string, params json.RawMessage) ([]byte, error) {
	text := bytes.TrimSpace(params)
	if string(text) == "null" {
		text = nil
	}
	if len(text) > 0 && text[0] != '{' {
		return nil, &errkind.Argument{Name: "params", Want: "a JSON object"}
	}
	frame, err := encode(request{"2.0", id, method, text})
	if err != nil {
		return nil, &errkind.Argument{Name: "params", Want: "valid JSON (" + errors.Unwrap(err).Error() + ")"}
	}
	return frame, nil
}

// encode returns a value as JSON on one line that ends with a newline. JSON in
// it is kept as written, except for white space.
func encode(v any) ([]byte, error) {
	b, err := compact.Marshal(v)
	return append(b, '\n'), err
}

// answerFrame returns the response to a server's request. Only ping is
// supported. The id is returned unchanged.
func answerFrame(m *message) []byte {
	body := `"result":{}`
	if string(m.Method) != `"ping"` {
		body = `"error":{"code":-32601,"message":"this client offers no such method"}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, body)
}

// progressToken returns the _meta.progressToken of params as written, or nil if
// there is none.
func progressToken(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte(`"progressToken"`)) {
		return nil
	}
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	return p.Meta.Token
}
