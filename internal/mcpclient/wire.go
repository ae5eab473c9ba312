package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
)

// maxMessage is the length in bytes of the longest message of a server that is
// read. A longer one ends the connection.
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

// number returns the id of one of our requests. Servers that write our numbers
// as strings are forgiven.
func (m *message) number() (int64, bool) {
	id := m.ID
	if len(id) > 2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return n, err == nil
}

// asks reports whether the message is a request that waits for an answer.
func (m *message) asks() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// failure returns the error of a response, as the server wrote it and so perhaps
// with secrets; nil where the response is a result. An error that is no object
// as JSON-RPC wants it counts too: its text is the message.
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

// Codes of JSON-RPC errors.
const (
	codeNoMethod = -32601
	codeInternal = -32603
	codeRevision = -32022 // the server does not speak the revision (MCP 2026-07-28)
)

// A request is one of ours, or with ID 0 a notification.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      int64           `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

// requestFrame returns a request, or with id 0 a notification, on one line that
// ends with a newline. The params must be a JSON object; nil and null leave
// them out.
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

// encode returns a value as JSON on one line that ends with a newline. What is
// JSON already stays as it was written, but for white space.
func encode(v any) ([]byte, error) {
	b, err := compact.Marshal(v)
	return append(b, '\n'), err
}

// answerFrame returns the answer to a server's request: every ping is answered,
// nothing else is offered. The id goes back as it came.
func answerFrame(m *message) []byte {
	body := `"result":{}`
	if string(m.Method) != `"ping"` {
		body = `"error":{"code":-32601,"message":"this client offers no such method"}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, body)
}

// progressToken returns the _meta.progressToken of params, as it was written;
// nil where there is none.
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
