package mcpclient

import (
	"bytes"
	"encoding/json"
	"strconv"

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
	var wire struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(m.Error, &wire) != nil {
		return &RemoteError{Code: codeInternal, Message: string(m.Error)}
	}
	return &RemoteError{Code: wire.Code, Message: wire.Message, Data: wire.Data}
}

// Codes of JSON-RPC errors.
const (
	codeNoMethod = -32601
	codeInternal = -32603
	codeRevision = -32022 // the server does not speak the revision (MCP 2026-07-28)
)

// appendHead appends what stands before the params of a request of ours; id 0
// makes a notification.
func appendHead(b []byte, id int64, method string) []byte {
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != 0 {
		b = append(b, `"id":`...)
		b = strconv.AppendInt(b, id, 10)
		b = append(b, ',')
	}
	b = append(b, `"method":`...)
	name, err := json.Marshal(method)
	if err != nil {
		name = []byte(`""`) // a string can always be written
	}
	return append(b, name...)
}

// requestFrame returns a request, or with id 0 a notification, on one line that
// ends with a newline. The params must be a JSON object; nil and null leave
// them out.
func requestFrame(id int64, method string, params json.RawMessage) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, 80+len(method)+len(params)))
	buf.Write(appendHead(buf.AvailableBuffer(), id, method))
	if text := bytes.TrimSpace(params); len(text) > 0 && string(text) != "null" {
		if text[0] != '{' {
			return nil, &errkind.Argument{Name: "params", Want: "a JSON object"}
		}
		buf.WriteString(`,"params":`)
		if err := json.Compact(buf, text); err != nil {
			return nil, &errkind.Argument{Name: "params", Want: "valid JSON (" + err.Error() + ")"}
		}
	}
	buf.WriteString("}\n")
	return buf.Bytes(), nil
}

// answerFrame returns the answer to a server's request: every ping is answered,
// nothing else is offered. The id goes back as it came.
func answerFrame(m *message) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...)
	if string(m.Method) == `"ping"` {
		return append(b, `,"result":{}}`+"\n"...)
	}
	return append(b, `,"error":{"code":-32601,"message":"this client offers no such method"}}`+"\n"...)
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
