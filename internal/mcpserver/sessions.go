package mcpserver

import (
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// opens makes the session of a request that starts one. If there are too many,
// the one that has been idle for the longest time is ended; it returns nil if all
// are in use. Every session that it makes is given to done when the request has
// ended.
func (h *HTTPHandler) opens() *session {
	h.mu.Lock()
	if h.fullLocked() {
		h.sweepLocked()
	}
	var dropped *session
	if h.fullLocked() {
		dropped = h.dropLocked()
	}
	var ss *session
	if !h.fullLocked() {
		ss = newSession(httpGrace)
		ss.opened = func(id string) { h.file(id, ss) }
		h.opening[ss] = struct{}{}
	}
	h.mu.Unlock()
	if dropped != nil {
		_ = dropped.sdkSession().Close() // nothing runs in it, and nobody is told
	}
	return ss
}

// dropLocked forgets and stops the session that has been idle for the longest
// time. It returns nil if all sessions are in use.
func (h *HTTPHandler) dropLocked() *session {
	oldest, at := "", time.Time{}
	for id, ss := range h.sessions {
		if used, idle := ss.idleSince(); idle && (oldest == "" || used.Before(at)) {
			oldest, at = id, used
		}
	}
	dropped := h.sessions[oldest]
	if dropped != nil {
		delete(h.sessions, oldest)
		dropped.stop()
	}
	return dropped
}

func (h *HTTPHandler) fullLocked() bool {
	return len(h.sessions)+len(h.opening) >= h.opts.MaxSessions
}

// file keeps a session under the id that the SDK gave it. The older transport
// has no ids: its sessions last as long as their streams.
func (h *HTTPHandler) file(id string, ss *session) {
	if id == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.opening, ss)
	h.sessions[id] = ss
}

// passes makes the session of a request that brings everything along. It is
// given to done when the request has ended.
func (h *HTTPHandler) passes() *session {
	ss := newSession(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passing[ss] = struct{}{}
	return ss
}

// done forgets a session that lasts no longer than its request.
func (h *HTTPHandler) done(ss *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.opening, ss)
	delete(h.passing, ss)
}

// use marks the session of that id as in use by an HTTP request until release is
// called. Without such a session it does nothing.
func (h *HTTPHandler) use(id string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ss := h.sessions[id]
	if ss == nil {
		return func() {}
	}
	ss.use(1)
	return func() { ss.use(-1) }
}

// session returns the session of that id, nil if there is none.
func (h *HTTPHandler) session(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

func (h *HTTPHandler) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
}

// sweepLocked forgets the sessions that the SDK has ended for being idle.
func (h *HTTPHandler) sweepLocked() {
	live := map[*mcp.ServerSession]bool{}
	for sdk := range h.server.sdk.Sessions() {
		live[sdk] = true
	}
	maps.DeleteFunc(h.sessions, func(_ string, ss *session) bool { return !live[ss.sdkSession()] })
}

func (h *HTTPHandler) allSessions() []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(h.sessions)),
		slices.Collect(maps.Keys(h.opening)), slices.Collect(maps.Keys(h.passing)))
}
