package mcpclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// metaPrefix is the prefix of the names in _meta that MCP 2026-07-28 reserves.
const metaPrefix = "io.modelcontextprotocol/"

// modernMeta returns the members of _meta that each request of MCP 2026-07-28
// must contain.
func modernMeta(client clientInfo) map[string]any {
	return map[string]any{
		metaPrefix + "protocolVersion":    revisionModern,
		metaPrefix + "clientInfo":         client,
		metaPrefix + "clientCapabilities": struct{}{},
	}
}

// withMeta returns params with the given members added to their _meta.
func withMeta(params json.RawMessage, members map[string]any) (json.RawMessage, error) {
	var fields, given map[string]json.RawMessage
	if len(bytes.TrimSpace(params)) > 0 && json.Unmarshal(params, &fields) != nil {
		return nil, &errkind.Argument{Name: "params", Want: "a JSON object"}
	}
	_ = json.Unmarshal(fields["_meta"], &given) // if it is not an object, it is replaced
	meta := maps.Clone(members)
	for name, v := range given {
		meta[name] = v
	}
	all := map[string]any{}
	for name, v := range fields {
		all[name] = v
	}
	all["_meta"] = meta
	return encode(all)
}

// describe sets the headers of a request of MCP 2026-07-28, which spare proxies
// from parsing the body. Other requests are left as they are.
func describe(h http.Header, c *call, frame []byte) {
	if c == nil || h.Get("Mcp-Protocol-Version") != revisionModern {
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

// headerValue encodes a text for a header.
func headerValue(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	if plain && strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?base64?") {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
