package mcpserver

import (
	"net/http"

	"knowhow/internal/mcpserver/access"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Guard lets a request through to next if its token, its Host and its Origin
// pass the checks that o describes, and otherwise answers 401 or 403 with a
// JSON-RPC error. It is for the other handlers of a listener that serves MCP.
// Of o it reads Token, AllowedHosts and AllowedOrigins.
func Guard(o HTTPOptions, next http.Handler) http.Handler { return newAccess(o).Guard(next) }

// Health answers GET with 200 and {"status":"ok"}. It asks for no token, and
// checks Host and Origin as [Guard] does.
func Health(o HTTPOptions) http.Handler {
	o.Token = ""
	return Guard(o, http.HandlerFunc(access.Health))
}

func newAccess(o HTTPOptions) *access.Access {
	return access.New(access.Options{Token: o.Token, AllowedHosts: o.AllowedHosts, AllowedOrigins: o.AllowedOrigins,
		ExposedHeaders: headerSession + ", WWW-Authenticate, Retry-After"})
}

// reply answers a request with an HTTP status and a JSON-RPC error.
func reply(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	writeJSON(w, status, errorResponse(id, e))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}
