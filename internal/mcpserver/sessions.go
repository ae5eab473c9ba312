package mcpserver

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"
)

// A session is an HTTP connection with an id that lasts longer than a request.
// In the older transport, the id is that of the stream.
type session struct {
	conn   *conn
	id     string
	get    *stream     // for messages without a request; nil if there are no streams
	old    bool        // uses the older transport
	header http.Header // of the GET that opened it, in the older transport

	posts   int         // requests in progress; guarded by HTTPHandler.mu, like the others
	streams int         // GET requests that carry its stream or resume one
	used    time.Time   // end of the last request, or the start of the session
	idle    *time.Timer // ends the session
}

// open starts a session, which is in use until it is released. If there are too
// many, it ends another one; see makeRoomLocked. If all are in use, it returns
// nil.
func (h *HTTPHandler) open(old bool) *session {
	s := &session{id: rand.Text(), old: old, used: time.Now()}
	s.conn = newConn(h.server, s.id, httpGrace)
	if h.events != nil {
		s.get = newStream(nil)
		s.get.lasting = true
		s.conn.alone = s.get
	}
	if h.events != nil && !old {
		s.get.events, s.get.name = h.events, streamName{s.id, ""}
	}
	h.mu.Lock()
	dropped := h.makeRoomLocked()
	opened := !h.closed && len(h.sessions) < h.opts.MaxSessions
	if opened {
		h.sessions[s.id], h.conns[s.conn] = s, struct{}{}
		s.posts = 1
		s.idle = time.AfterFunc(h.opts.SessionIdle, func() { h.expire(s) })
		s.idle.Stop() // it is started by release
		if s.get != nil && s.get.events != nil {
			h.events.open(s.get)
		}
	}
	h.mu.Unlock()
	if dropped != nil {
		dropped.conn.end(context.Background())
	}
	if !opened {
		return nil
	}
	return s
}

// makeRoomLocked removes a session if the maximum is reached: the oldest one of
// the older transport that is not initialized, because everybody can open
// those with a GET, or else the one that has been idle longest. It returns nil
// if it removed none.
func (h *HTTPHandler) makeRoomLocked() *session {
	if len(h.sessions) < h.opts.MaxSessions {
		return nil
	}
	var unused, idle *session
	for _, s := range h.sessions {
		switch {
		case s.old && !s.conn.isReady():
			if unused == nil || s.used.Before(unused.used) {
				unused = s
			}
		case s.posts == 0 && s.streams == 0 && (idle == nil || s.used.Before(idle.used)) && !s.conn.isBusy():
			idle = s
		}
	}
	if unused == nil {
		unused = idle
	}
	if unused != nil {
		h.forgetLocked(unused)
	}
	return unused
}

// use returns the session with that id, for a POST or to carry a stream, or nil
// if there is none. The session is in use until it is released.
func (h *HTTPHandler) use(id string, old, stream bool) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	switch {
	case s == nil || s.old != old:
		return nil
	case stream:
		s.streams++
	default:
		s.posts++
		s.idle.Stop()
	}
	return s
}

// release ends the use that began with use or open.
func (h *HTTPHandler) release(s *session, stream bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.used = time.Now()
	if stream {
		s.streams--
	} else if s.posts--; s.posts == 0 && !s.old && h.sessions[s.id] == s {
		s.idle.Reset(h.opts.SessionIdle)
	}
}

// expire ends a session that has been idle for too long.
func (h *HTTPHandler) expire(s *session) {
	h.mu.Lock()
	idle := s.posts == 0
	if idle {
		h.forgetLocked(s)
	}
	h.mu.Unlock()
	if idle {
		s.conn.end(context.Background())
	}
}

// end ends a session and its running requests.
func (h *HTTPHandler) end(s *session) {
	h.mu.Lock()
	h.forgetLocked(s)
	h.mu.Unlock()
	s.conn.end(context.Background())
}

func (h *HTTPHandler) forgetLocked(s *session) {
	delete(h.sessions, s.id)
	delete(h.conns, s.conn)
	s.idle.Stop()
	if h.events != nil {
		h.events.close(s.id)
	}
}
