package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A failure is an error response. Requests that fail for the same reason have
// the same text; the detail is specific.
type failure struct {
	status int
	text   string // short, and the same for every failure of this kind
	detail string // the cause, and what to do next

	header, value string                 // additional header of the response; "" for none
	remote        *mcpclient.RemoteError // the server's error, or nil
	ended         bool                   // the rest of the request cannot be read
}

// statusGone is logged as the status of a request whose client disconnected
// before the response.
const statusGone = 499

// kinds maps the kinds of a server's failures to statuses. The first match
// counts. An error without a kind is an internal error.
var kinds = []struct {
	kind   error
	status int
	text   string
}{
	{errkind.NotFound, http.StatusNotFound, "unknown server"},
	{errkind.Denied, http.StatusForbidden, "server is disabled"},
	{errkind.Timeout, http.StatusGatewayTimeout, "server timed out"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "server timed out"},
	{errkind.Unavailable, http.StatusBadGateway, "server unavailable"},
	{errkind.Unauthorized, http.StatusBadGateway, "server unavailable"},
	{errkind.TooLarge, http.StatusBadGateway, "server unavailable"},
	{errkind.Invalid, http.StatusBadGateway, "server settings are wrong"},
	{errkind.Busy, http.StatusBadGateway, textBusy},
}

const textBusy = "busy"

// Limits on the parts of a server's error that are passed on, in bytes.
const (
	maxDetail = 8 << 10
	maxData   = 64 << 10
)

// classify returns the failure for an error of [Servers].
func (h *handler) classify(server string, err error) *failure {
	if remote, ok := errors.AsType[*mcpclient.RemoteError](err); ok {
		return remoteFailure(remote)
	}
	for _, k := range kinds {
		if !errors.Is(err, k.kind) {
			continue
		}
		f := &failure{status: k.status, text: k.text, detail: cut(errkind.Message(err), maxDetail)}
		switch k.kind {
		case errkind.NotFound:
			f.detail = h.unknownServer(server)
		case errkind.Denied:
			if h.disabled(server) {
				f.detail = "the server " + spell.Quote(server) +
					" is disabled in the MCP settings: enable it there and start the bridge again"
			} else {
				f.text = "tool is left out"
			}
		}
		return f
	}
	return internalFailure()
}

// serverFailure is like classify, for a request to a single server. It logs
// failures that the operator should know.
func (h *handler) serverFailure(ctx context.Context, server string, err error) *failure {
	if f := abandoned(ctx); f != nil {
		return f
	}
	f := h.classify(server, err)
	if f.status >= http.StatusInternalServerError && f.remote == nil {
		h.log.Error("calling an MCP server", "server", server, "status", f.status, "error", err)
	}
	return f
}

// disabled reports whether a server is disabled in the settings.
func (h *handler) disabled(server string) bool {
	return slices.ContainsFunc(h.servers.Status(), func(s mcpclient.Status) bool {
		return s.ID == server && s.Disabled
	})
}

// unknownServer returns the detail for an unknown server, with similar ids.
func (h *handler) unknownServer(server string) string {
	var ids []string
	for _, s := range h.servers.Status() {
		ids = append(ids, s.ID)
	}
	text := "the MCP settings have no server " + spell.Quote(server)
	if near := spell.Near(server, ids, 3); len(near) > 0 {
		text += ", did you mean " + spell.List(near) + "?"
	}
	return text + " (GET /servers lists them)"
}

// remoteFailure passes on the error of a server.
func remoteFailure(e *mcpclient.RemoteError) *failure {
	message := cut(e.Message, maxDetail)
	detail := fmt.Sprintf("JSON-RPC error %d: %s", e.Code, message)
	sent := &mcpclient.RemoteError{Code: e.Code, Message: message}
	if len(e.Data) > 0 && len(e.Data) <= maxData && json.Valid(e.Data) {
		sent.Data = e.Data
		detail += "; data: " + cut(string(e.Data), maxDetail)
	}
	return &failure{status: http.StatusInternalServerError, text: "server answered with an error", detail: detail,
		remote: sent}
}

// internalFailure does not contain the cause, which is in the log.
func internalFailure() *failure {
	return &failure{status: http.StatusInternalServerError, text: "internal error",
		detail: "the bridge could not handle this request; see its log"}
}

// busy asks the client to try again.
func busy(detail string) *failure {
	return &failure{status: http.StatusBadGateway, text: textBusy, detail: detail, header: "Retry-After", value: "1"}
}

// malformed refuses an invalid request.
func malformed(text, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, text: text, detail: fmt.Sprintf(format, args...)}
}

// noRoute refuses an unknown path.
func noRoute(path string) *failure {
	return &failure{status: http.StatusNotFound, text: "not found",
		detail: "nothing is served at " + spell.Quote(path) +
			": use POST /invoke, or GET /, /servers, /tools or /openapi.json"}
}

// json returns the body of the response.
func (f *failure) json() []byte {
	type rpcError struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	answer := struct {
		Status string    `json:"status"`
		Error  string    `json:"error"`
		Detail string    `json:"detail"`
		RPC    *rpcError `json:"rpc_error,omitempty"`
	}{Status: "error", Error: f.text, Detail: f.detail}
	if f.remote != nil {
		answer.RPC = &rpcError{f.remote.Code, f.remote.Message, f.remote.Data}
	}
	body, _ := compact.Marshal(answer) // the data is valid JSON: remoteFailure checked it
	return append(body, '\n')
}

// cut returns at most the first n bytes of a foreign text, without splitting a
// character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
