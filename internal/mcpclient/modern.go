package mcpclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"knowhow/internal/errkind"
)

// metaPrefix is of the names that MCP 2026-07-28 reserves in _meta.
const metaPrefix = "io.modelcontextprotocol/"

// modernMeta returns the members of _meta by which each request of MCP
// 2026-07-28 introduces itself, without the braces.
func modernMeta(client json.RawMessage) json.RawMessage {
	return json.RawMessage(`"` + metaPrefix + `protocolVersion":"` + revisionModern + `","` +
		metaPrefix + `clientInfo":` + string(client) + `,"` + metaPrefix + `clientCapabilities":{}`)
}

// withMeta returns params with the given members in their _meta, before those
// that stand there. The rest stays as it was written.
func withMeta(params, members json.RawMessage) (json.RawMessage, error) {
	var fields struct {
		Meta json.RawMessage `json:"_meta"`
	}
	text := bytes.TrimSpace(params)
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	if text[0] != '{' || json.Unmarshal(text, &fields) != nil {
		return nil, &errkind.Argument{Name: "params", Want: "a JSON object"}
	}
	meta := joinMembers(members, fields.Meta)
	if fields.Meta == nil {
		return joinMembers(append([]byte(`"_meta":`), meta...), text), nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	all["_meta"] = meta
	return json.Marshal(all)
}

// joinMembers returns an object with members, then those of object, which may
// be nil.
func joinMembers(members, object json.RawMessage) json.RawMessage {
	rest := bytes.TrimSpace(object)
	if len(rest) < 2 || rest[0] != '{' || len(bytes.TrimSpace(rest[1:len(rest)-1])) == 0 {
		rest = []byte("{}")
	} else {
		rest = append([]byte(","), rest[1:]...)
	}
	if rest[0] == '{' {
		rest = rest[1:]
	}
	return append(append([]byte("{"), members...), rest...)
}

// describe writes into the headers what a request of MCP 2026-07-28 is, so that
// proxies need not read it.
func (l *streamableLink) describe(h http.Header, c *call, frame []byte) {
	l.mu.Lock()
	modern := l.modern
	l.mu.Unlock()
	if !modern || c == nil {
		return
	}
	h.Set("Mcp-Method", c.method)
	var q struct {
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	if json.Unmarshal(frame, &q) != nil {
		return
	}
	name := q.Params.Name
	if c.method == "resources/read" {
		name = q.Params.URI
	}
	if name != "" {
		h.Set("Mcp-Name", headerValue(name))
	}
}

// headerValue writes a text so that it fits into a header.
func headerValue(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	if plain && strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?base64?") {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
