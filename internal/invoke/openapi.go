package invoke

import (
	_ "embed" // the document
	"net/http"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"
)

// document is the OpenAPI document. Names between @ are replaced by the bridge.
//
//go:embed openapi.json
var document string

// openAPI answers GET /openapi.json. It connects to no server. The document
// lists the enabled servers and refers to GET /tools for their tools.
func (h *handler) openAPI(_ *http.Request, x *exchange) *failure {
	var ids []string
	for _, s := range h.servers.Status() {
		if !s.Disabled {
			ids = append(ids, s.ID)
		}
	}
	server := struct {
		Type        string   `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum,omitempty"` // JSON Schema requires an enum to have values
	}{"string", "An MCP server that is enabled in the settings.", ids}
	here := "/" // relative to the URL of the document
	if h.port != 0 {
		here = "http://127.0.0.1:" + strconv.Itoa(h.port)
	}
	security := []map[string][]string{}
	if h.needsToken {
		security = append(security, map[string][]string{"bearer": {}})
	}
	var pairs []string
	for _, p := range []struct {
		mark  string
		value any
	}{{`"@version@"`, h.version}, {`"@url@"`, here}, {`"@security@"`, security}, {`"@server_id@"`, server}} {
		value, err := compact.Marshal(p.value)
		if err != nil {
			return internalFailure()
		}
		pairs = append(pairs, p.mark, string(value))
	}
	x.body = [][]byte{[]byte(strings.NewReplacer(pairs...).Replace(document))}
	return nil
}
