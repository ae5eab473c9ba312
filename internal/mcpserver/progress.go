package mcpserver

import (
	"context"
	"math"
	"sync"

	"knowhow/internal/mcpserver/fault"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call is one request while it is answered, and the progress of the work it
// started for as long as that goes on.
type call struct {
	method   string
	uri      string // of resources/read
	revision string // the revision the request is served under
	sdk      *mcp.ServerSession
	token    any // the request's progressToken: a string, a number, or nil
	id       jsonrpc.ID

	cancelled bool // by the client; guarded by the session's mutex

	mu       sync.Mutex // guards what follows, and the order of notifications
	answered bool
	last     float64
	sent     bool
}

type callKey struct{}

// callFrom returns the call of a handler's context, nil if it has none.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// RevisionFrom returns the revision that the request of ctx is served under,
// for example "2025-03-26"; "" outside a request.
func RevisionFrom(ctx context.Context) string {
	if c := callFrom(ctx); c != nil {
		return c.revision
	}
	return ""
}

// Progress sends notifications/progress for the request that ctx or one of its
// parents belongs to. It does nothing if that request named no progressToken.
// done must grow from call to call: a value that is not larger than the last
// one sent is dropped, as are values that are not finite. A total of 0 is
// unknown.
//
// Work that goes on after the answer may go on reporting with a context made by
// [context.WithoutCancel]. Over HTTP that reaches the client only if it keeps a
// GET stream open; otherwise it is lost, as is everything while SSE is off.
func Progress(ctx context.Context, done, total float64, message string) {
	c := callFrom(ctx)
	if c == nil || c.token == nil || !finite(done) || !finite(total) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent && done <= c.last {
		return
	}
	c.sent, c.last = true, done
	if c.answered {
		// The SDK refuses to send to the stream of an answered request, and
		// knows that stream by a value in the context.
		ctx = context.Background()
	}
	// An error means that the client is gone or has no stream to send to:
	// neither is a reason to stop the work.
	_ = c.sdk.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: c.token, Progress: done, Total: max(total, 0), Message: fault.Sentence(message)})
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// finish notes that the request is about to be answered.
func (c *call) finish() {
	c.mu.Lock()
	c.answered = true
	c.mu.Unlock()
}

// progressToken returns the token of a request's _meta, nil if there is none
// of an allowed type.
func progressToken(meta map[string]any) any {
	switch t := meta["progressToken"].(type) {
	case string, float64:
		return t
	}
	return nil
}
