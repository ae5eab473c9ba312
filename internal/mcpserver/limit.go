package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"knowhow/internal/errkind"
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
	inFlight, queued, idling int // bounds
	maxWait                  time.Duration

	mu      sync.Mutex // guards what follows
	running int        // slots in use; handlers that have finished waiting may exceed the limit briefly
	idle    int        // handlers in wait
	queue   []chan struct{}
}

func newLimiter(inFlight int, maxWait time.Duration) *limiter {
	return &limiter{inFlight: inFlight, queued: maxQueued, idling: maxIdle, maxWait: maxWait}
}

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

// leave removes a request from the queue. It returns false if the request has
// just received its slot.
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

// nextLocked gives free slots to waiting requests, the oldest first.
func (l *limiter) nextLocked() {
	for l.running < l.inFlight && len(l.queue) > 0 {
		l.running++
		close(l.queue[0])
		l.queue[0] = nil // for the garbage collector
		l.queue = l.queue[1:]
	}
}

// wait releases the slot of its caller while it calls f.
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
		l.running++ // the remaining work is only to write an answer
	}()
	return f()
}

func (l *limiter) busy() error {
	return &Error{Err: fmt.Errorf("the server is busy with other requests, try again in a second: %w", errkind.Busy),
		Data: map[string]any{"retryAfterMs": 1000, "maxInFlightRequests": l.inFlight}}
}

// Wait calls f for the handler of a tool or a resource. While f runs, the
// request does not count against MaxInFlight, so f must only wait and do no
// work. At most 10,000 handlers wait concurrently; for a further one, Wait
// returns an error that tells the peer to try again later. Otherwise it returns
// the error of f. It must be called from the handler's own goroutine.
func (s *Server) Wait(f func() error) error { return s.limit.wait(f) }
