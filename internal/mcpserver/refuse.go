package mcpserver

import (
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Refuse writes a refusal as a JSON-RPC error with id null. It is an
// [httpguard.RefuseFunc] for listeners that serve MCP.
func Refuse(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
	if f.Status == http.StatusUnauthorized && f.Header.Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
	}
	code := int64(codeInvalidRequest)
	switch f.Reason {
	case httpguard.Overloaded:
		code = codeBusy
	case httpguard.Unavailable:
		code = codeUnavailable
	}
	reply(w, f.Status, jsonrpc.ID{}, newError(code, f.Message, nil))
}

// refuse answers a request with an HTTP status and an error of the protocol
// layer. The zero id means null.
func refuse(w http.ResponseWriter, status int, id jsonrpc.ID, message string) {
	reply(w, status, id, newError(codeInvalidRequest, message, nil))
}

// refuseMethod answers a request with another method than the allowed ones.
func refuseMethod(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, jsonrpc.ID{}, "this method is not allowed here, use "+allowed)
}

// reply answers a request with an HTTP status and a JSON-RPC error.
func reply(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	if u, ok := w.(*untaken); ok {
		u.code = e.Code
	}
	writeJSON(w, status, errorResponse(id, e))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}
