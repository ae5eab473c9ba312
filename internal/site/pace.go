package site

import (
	"context"
	"sync"
	"time"
)

// Limits on the requests to one host.
const (
	maxRequests = 2                      // at a time
	interval    = 260 * time.Millisecond // between the beginnings of two: at most four arrive in a second
	maxPause    = 10 * time.Minute       // that a server may ask for
	busyPause   = 5 * time.Second        // if it does not say for how long it is busy
)

// Hosts limit the requests to each host, over all mirrors. The zero Hosts is ready to
// use. Its methods are safe for concurrent use.
type Hosts struct {
	mu     sync.Mutex
	byName map[string]*host
}

// host returns the host with a name.
func (h *Hosts) host(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = map[string]*host{}
	}
	if h.byName[name] == nil {
		h.byName[name] = &host{slots: make(chan struct{}, maxRequests)}
	}
	return h.byName[name]
}

// A host limits the requests to one host.
type host struct {
	slots chan struct{} // has an element for each request

	mu   sync.Mutex
	next time.Time // earliest time of the next request
}

// acquire waits until a request may begin. The next one may begin after the interval
// every. The caller must call release.
func (h *host) acquire(ctx context.Context, every time.Duration) error {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		wait := h.turn(every)
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			h.release()
			return ctx.Err()
		}
	}
}

// turn takes the turn for a request, or returns how long to wait for the next look.
func (h *host) turn(every time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if wait := h.next.Sub(now); wait > 0 {
		return wait
	}
	h.next = now.Add(max(every, interval))
	return 0
}

func (h *host) release() { <-h.slots }

// pause lets no request begin for some time.
func (h *host) pause(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(min(d, maxPause)); until.After(h.next) {
		h.next = until
	}
}
