package mcpserver

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"
)

// A session is a connection over HTTP that lasts longer than a request. It has an
// id, which is that of the stream in the older transport.
type session struct {
	conn   *conn
	id     string
	get    *stream     // what the server sends by itself; nil where there are no streams
	old    bool        // it is one of the older transport
	header http.Header // of the GET that opened it in the older transport

	posts   int         // requests that are being answered; guarded by HTTPHandler.mu, as the others
	streams int         // GET requests that carry its stream, or resume one
	used    time.Time   // when the last of them ended
	idle    *time.Timer // ends the session
}

// open starts a session, which is in use until it is released. If there are too
// many, the one that has been idle for the longest time is ended; open returns nil
// if all are in use.
func (h *HTTPHandler) open(old bool) *session {
	s := &session{id: rand.Text(), old: old}
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
		s.idle.Stop() // until it is released
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

// makeRoomLocked forgets the session that has been idle for the longest time if
// there is no room for another. It returns nil if there is room, or all are in use.
func (h *HTTPHandler) makeRoomLocked() *session {
	var oldest *session
	if len(h.sessions) >= h.opts.MaxSessions {
		for _, s := range h.sessions {
			if s.posts == 0 && s.streams == 0 && (oldest == nil || s.used.Before(oldest.used)) && !s.conn.isBusy() {
				oldest = s
			}
		}
	}
	if oldest != nil {
		h.forgetLocked(oldest)
	}
	return oldest
}

// use returns the session of that id, which is in use until it is released, for a
// POST or to carry a stream. It returns nil if there is none.
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

// release ends what use or open began.
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

// expire ends a session that has not been used for so long.
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

// end ends a session and the requests that run in it.
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
