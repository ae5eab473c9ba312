package mcpserver

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/compact"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A call is one request while it is being answered, and the progress of the
// work that it started until that ends.
type call struct {
	conn   *conn
	group  *group
	id     jsonrpc.ID
	method string
	params json.RawMessage
	header http.Header // of the HTTP request; nil on stdio

	// Set by the middleware.
	revision string // the revision of the request
	token    any    // its progressToken: a string, a number, or nil
	uri      string // of resources/read
	slot     bool   // it counts against MaxInFlight; used by the goroutine of the handler

	// Guarded by conn.mu.
	cancelled   bool                    // by the client
	interrupted bool                    // by HTTPHandler.Interrupt
	cancel      context.CancelCauseFunc // ends the context of the handler; nil before it is called

	mu   sync.Mutex // guards what follows, and keeps notifications in order
	last float64
	sent bool
	done bool // the handler has returned
}

type callKey struct{}

// callFrom returns the call of a handler's context, or nil.
func callFrom(ctx context.Context) *call {
	k, _ := ctx.Value(callKey{}).(*call)
	return k
}

// Progress sends notifications/progress for the request that ctx or one of its
// parents belongs to. It does nothing if that request has no progressToken.
// done must increase from call to call: a value that is not larger than the
// last one sent is dropped, and so are values that are not finite. A total of 0
// is unknown.
//
// Work that continues after the answer may report with a context from
// [context.WithoutCancel]. Over HTTP, the client receives these reports only if
// it keeps a GET stream open. Without SSE, all reports are lost.
func Progress(ctx context.Context, done, total float64, message string) {
	k := callFrom(ctx)
	if k == nil || k.token == nil || !finite(done) || !finite(total) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sent && done <= k.last {
		return
	}
	k.sent, k.last = true, done
	p := struct {
		Token    any     `json:"progressToken"`
		Message  string  `json:"message,omitempty"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
	}{k.token, sentence(message), done, max(total, 0)}
	w := &compact.Object{}
	w.Add("jsonrpc", "2.0")
	w.Add("method", notifyProgress)
	w.Add("params", p)
	if k.done {
		k.conn.sendMessage(nil, w.Bytes())
	} else {
		k.conn.sendMessage(k, w.Bytes())
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// finish records that the handler has returned, after its last message.
func (k *call) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
}

// progressToken returns the token in a request's _meta, or nil if there is none
// with a permitted type.
func progressToken(meta map[string]any) any {
	switch t := meta["progressToken"].(type) {
	case string, float64:
		return t
	}
	return nil
}
