package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Limits on memory: the maximum number of queued requests, which may have large
// arguments, and of handlers that only wait.
const (
	maxQueued = 1000
	maxIdle   = 10_000
)

// LimiterOptions configure a Limiter. The zero value of a limit is its default.
type LimiterOptions struct {
	InFlight  int           // requests that do work at the same time; 0 is 32
	QueueWait time.Duration // how long further ones wait; 0 is 2 s
	Rate      int           // requests in a second; 0 means any number
}

// A Limiter limits the number of requests that do work. Further requests wait
// in a queue for a limited time, so that clients that send requests at the same
// time are all served. Requests beyond the rate do not wait. Several servers may share
// a Limiter.
type Limiter struct {
	o      LimiterOptions
	rate   *rate.Limiter // nil means any number
	slots  *semaphore.Weighted
	queued bounded // requests that wait for a slot
	idle   bounded // handlers in Wait
	active atomic.Int64
}

// NewLimiter returns a limiter.
func NewLimiter(o LimiterOptions) *Limiter {
	if o.InFlight <= 0 {
		o.InFlight = 32
	}
	if o.QueueWait <= 0 {
		o.QueueWait = 2 * time.Second
	}
	l := &Limiter{o: o, slots: semaphore.NewWeighted(int64(o.InFlight)),
		queued: bounded{most: maxQueued}, idle: bounded{most: maxIdle}}
	if o.Rate > 0 {
		l.rate = rate.NewLimiter(rate.Limit(o.Rate), o.Rate)
	}
	return l
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

// Acquire waits until a request may do its work, which ends with [Limiter.Release].
// The error is that of the context, or of kind Busy: it tells the peer when to try
// again; see [RetryAfter].
func (l *Limiter) Acquire(ctx context.Context) error {
	if l.rate != nil {
		if r := l.rate.Reserve(); r.Delay() > 0 {
			after := r.Delay()
			r.Cancel()
			return &Error{Err: fmt.Errorf("more than %d requests were sent in a second, try again in %v: %w", l.o.Rate,
				after.Round(time.Millisecond), errkind.Busy), Data: map[string]any{
				retryAfterMs: max(after.Milliseconds(), 1), "maxRequestsPerSecond": l.o.Rate}}
		}
	}
	if l.slots.TryAcquire(1) {
		l.active.Add(1)
		return nil
	}
	if !l.queued.enter() {
		return l.busy()
	}
	defer l.queued.leave()
	wait, cancel := context.WithTimeout(ctx, l.o.QueueWait)
	defer cancel()
	switch err := l.slots.Acquire(wait, 1); {
	case err == nil:
		l.active.Add(1)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.busy()
}

// Release ends a request that [Limiter.Acquire] let do its work.
func (l *Limiter) Release() {
	l.active.Add(-1)
	l.slots.Release(1)
}

// Active returns the number of requests that do work now.
func (l *Limiter) Active() int { return int(l.active.Load()) }

// retryAfterMs is the member of error.data that says when to try again.
const retryAfterMs = "retryAfterMs"

func (l *Limiter) busy() error {
	return &Error{Err: fmt.Errorf("the server is busy with other requests, try again in a second: %w", errkind.Busy),
		Data: map[string]any{retryAfterMs: int64(1000), "maxInFlightRequests": l.o.InFlight}}
}

// RetryAfter returns when to repeat a request that failed with an error of
// [Limiter.Acquire].
func RetryAfter(err error) time.Duration {
	e, _ := errors.AsType[*Error](err)
	if e == nil {
		return 0
	}
	ms, _ := e.Data[retryAfterMs].(int64)
	return time.Duration(ms) * time.Millisecond
}

// Wait calls f for the handler of a tool or a resource with the context ctx.
// From then on, the request does not count against MaxInFlight, so f must only
// wait, and the handler may afterwards only make its answer. At most 10,000
// handlers wait concurrently; for a further one, Wait returns an error that
// tells the peer to try again later. Otherwise it returns the error of f. It
// must be called from the handler's own goroutine.
func (s *Server) Wait(ctx context.Context, f func() error) error {
	limit, k := s.limit, callFrom(ctx)
	if k != nil && k.conn != nil {
		limit = k.conn.server.limit // s may be the other server of a Replace
	}
	if !limit.idle.enter() {
		return limit.busy()
	}
	defer limit.idle.leave()
	if k != nil && k.slot {
		k.slot = false
		limit.Release()
	}
	return f()
}
