package mcpserver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"golang.org/x/sync/semaphore"
)

// Limits on memory: the maximum number of queued requests, which may have large
// arguments, and of handlers that only wait.
const (
	maxQueued = 1000
	maxIdle   = 10_000
)

// A limiter limits the number of requests that do work. Further requests wait
// in a queue for a limited time, so that clients that send requests at the same
// time are all served.
type limiter struct {
	inFlight int
	maxWait  time.Duration
	slots    *semaphore.Weighted
	queued   bounded // requests that wait for a slot
	idle     bounded // handlers in Wait
}

func newLimiter(inFlight int, maxWait time.Duration) *limiter {
	return &limiter{inFlight: inFlight, maxWait: maxWait, slots: semaphore.NewWeighted(int64(inFlight)),
		queued: bounded{most: maxQueued}, idle: bounded{most: maxIdle}}
}

// A bounded is a number that does not exceed a bound.
type bounded struct {
	most int64
	n    atomic.Int64
}

// enter adds one, or returns false.
func (b *bounded) enter() bool {
	if b.n.Add(1) <= b.most {
		return true
	}
	b.leave()
	return false
}

func (b *bounded) leave() { b.n.Add(-1) }

// limited reports whether requests with a method are limited. Requests that
// keep a session alive are not.
func limited(method string) bool {
	switch method {
	case methodCallTool, methodReadResource, methodListResources:
		return true
	}
	return false
}

// acquire waits for a slot. The error is that of the context, or one that tells
// the peer to try again later.
func (l *limiter) acquire(ctx context.Context) error {
	if l.slots.TryAcquire(1) {
		return nil
	}
	if !l.queued.enter() {
		return l.busy()
	}
	defer l.queued.leave()
	wait, cancel := context.WithTimeout(ctx, l.maxWait)
	defer cancel()
	switch err := l.slots.Acquire(wait, 1); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.busy()
}

func (l *limiter) release() { l.slots.Release(1) }

func (l *limiter) busy() error {
	return &Error{Err: fmt.Errorf("the server is busy with other requests, try again in a second: %w", errkind.Busy),
		Data: map[string]any{"retryAfterMs": 1000, "maxInFlightRequests": l.inFlight}}
}

// Wait calls f for the handler of a tool or a resource with the context ctx.
// From then on, the request does not count against MaxInFlight, so f must only
// wait, and the handler may afterwards only make its answer. At most 10,000
// handlers wait concurrently; for a further one, Wait returns an error that
// tells the peer to try again later. Otherwise it returns the error of f. It
// must be called from the handler's own goroutine.
func (s *Server) Wait(ctx context.Context, f func() error) error {
	if !s.limit.idle.enter() {
		return s.limit.busy()
	}
	defer s.limit.idle.leave()
	if k := callFrom(ctx); k != nil && k.slot {
		k.slot = false
		s.limit.release()
	}
	return f()
}
