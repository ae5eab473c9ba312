package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A limiter bounds the requests that do real work. What is over the bound waits
// in a queue that is bounded in length and in time.
type limiter struct {
	slots   chan struct{}
	waiters chan struct{}
	maxWait time.Duration
}

func newLimiter(inFlight, queued int, maxWait time.Duration) *limiter {
	return &limiter{make(chan struct{}, inFlight), make(chan struct{}, queued), maxWait}
}

// limited says whether a method does work that is counted. Everything that
// keeps a session alive passes always.
func limited(method string) bool {
	switch method {
	case methodCallTool, methodReadResource, methodListResources:
		return true
	}
	return false
}

// acquire waits for a slot. The error is the context's, or one that tells the
// peer to come back later.
func (l *limiter) acquire(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.waiters <- struct{}{}:
		defer func() { <-l.waiters }()
	default:
		return l.busy()
	}
	t := time.NewTimer(l.maxWait)
	defer t.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-t.C:
		return l.busy()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limiter) release() { <-l.slots }

func (l *limiter) busy() *jsonrpc.Error {
	return protocolError(codeBusy, "the server is busy with other requests, try again in a second", map[string]any{
		"code": "BUSY", "retryable": true, "retryAfterMs": 1000, "maxInFlightRequests": cap(l.slots)})
}
