package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"knowhow/internal/errkind"
)

// Bounds on memory: on the requests in the queue, which may have large arguments,
// and on the handlers that only wait.
const (
	maxQueued = 1000
	maxIdle   = 10_000
)

// A limiter bounds the requests that do real work. What is over the bound waits
// in a queue, each request for a bounded time, so that clients that come at once
// are all served.
type limiter struct {
	inFlight, queued, idling int // bounds
	maxWait                  time.Duration

	mu      sync.Mutex // guards what follows
	running int        // slots taken; handlers that come back from waiting may exceed the bound for a moment
	idle    int        // handlers in wait
	queue   []chan struct{}
}

func newLimiter(inFlight int, maxWait time.Duration) *limiter {
	return &limiter{inFlight: inFlight, queued: maxQueued, idling: maxIdle, maxWait: maxWait}
}

// limited reports whether a method does work that is counted. Everything that
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
	l.mu.Lock()
	if l.running < l.inFlight && len(l.queue) == 0 {
		l.running++
		l.mu.Unlock()
		return nil
	}
	if len(l.queue) >= l.queued {
		l.mu.Unlock()
		return l.busy()
	}
	turn := make(chan struct{})
	l.queue = append(l.queue, turn)
	l.mu.Unlock()
	t := time.NewTimer(l.maxWait)
	defer t.Stop()
	select {
	case <-turn:
		return nil
	case <-t.C:
		if l.leave(turn) {
			return l.busy()
		}
		return nil
	case <-ctx.Done():
		if !l.leave(turn) {
			l.release()
		}
		return context.Cause(ctx)
	}
}

// leave takes a request out of the queue. It reports false if that has just got its
// slot.
func (l *limiter) leave(turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, turn)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.nextLocked()
}

// nextLocked gives free slots to the requests that wait, the oldest first.
func (l *limiter) nextLocked() {
	for l.running < l.inFlight && len(l.queue) > 0 {
		l.running++
		close(l.queue[0])
		l.queue[0] = nil // for the garbage collector
		l.queue = l.queue[1:]
	}
}

// wait calls f, whose caller holds a slot, without that slot.
func (l *limiter) wait(f func() error) error {
	l.mu.Lock()
	if l.idle >= l.idling {
		l.mu.Unlock()
		return l.busy()
	}
	l.idle++
	l.running--
	l.nextLocked()
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle--
		l.running++ // what is left to do is to write an answer
	}()
	return f()
}

func (l *limiter) busy() error {
	return &Error{Err: fmt.Errorf("the server is busy with other requests, try again in a second: %w", errkind.Busy),
		Data: map[string]any{"retryAfterMs": 1000, "maxInFlightRequests": l.inFlight}}
}

// Wait calls f on behalf of a tool's or a resource's handler, during which the
// request does not count among the MaxInFlight ones: f is to wait for something
// that happens elsewhere, and to do no work. At most 10,000 handlers wait at
// once; the error of a further one tells its peer to come back later. Otherwise
// the error is f's. It must be called from the handler's own goroutine.
func (s *Server) Wait(f func() error) error { return s.limit.wait(f) }
