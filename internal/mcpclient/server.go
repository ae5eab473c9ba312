package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient/redact"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

const (
	firstBackoff = 100 * time.Millisecond // before a start after a failure; doubled after each further failure
	maxBackoff   = 30 * time.Second
	waitBackoff  = 2 * time.Second  // if the wait is longer, the last error is returned instead
	maxRetries   = 3                // of one attempt to connect
	healthyAfter = 10 * time.Second // a connection is healthy if it has lived that long or has answered
)

// A server is one server of the settings and its connection, if it has one.
type server struct {
	pool    *Pool
	cfg     mcpsettings.Server
	log     *slog.Logger
	redact  *redact.Redactor
	open    func(ctx context.Context) (*session, *introduction, error) // connects once; replaced in tests
	listing chan struct{}                                              // limits the listing of tools to one goroutine

	include, exclude []*regexp.Regexp // of the settings

	mu        sync.Mutex
	sess      *session // nil if there is no connection
	intro     *introduction
	attempt   *attempt // nil if there is no attempt
	cleaned   chan struct{}
	inflight  int
	idle      *time.Timer
	failures  int // starts since the last healthy connection
	notUntil  time.Time
	state     string
	since     time.Time
	failure   error // the last failure; nil after connecting
	catalog   *Catalog
	count     int  // number of tools in the last catalog; -1 before the first
	changes   int  // how often the tools have changed
	reporting bool // a goroutine is about to report the change
}

// An attempt is an attempt to connect, shared by all callers that wait for it.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when sess or err is set
	sess   *session
	err    error
}

func newServer(p *Pool, cfg mcpsettings.Server) *server {
	s := &server{
		pool: p, cfg: cfg, log: p.o.Log, redact: redact.New(secrets(&cfg)),
		listing: make(chan struct{}, 1), state: stateIdle, since: time.Now(), count: -1,
		include: patterns(cfg.Include), exclude: patterns(cfg.Exclude),
	}
	s.open = s.dial
	return s
}

// secrets returns the sources of the secrets of a server in the settings.
func secrets(cfg *mcpsettings.Server) redact.Sources {
	return redact.Sources{Env: cfg.Env, Headers: cfg.Headers, Args: cfg.Args, URL: cfg.URL, Variables: cfg.Expanded}
}

func (s *server) status() Status {
	s.mu.Lock()
	sess := s.sess
	s.mu.Unlock()
	if sess != nil && sess.reason() != nil {
		s.lost(sess) // lookAfter is about to record it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		ID: s.cfg.ID, Disabled: s.cfg.Disabled, Transport: s.cfg.Transport,
		State: s.state, Tools: s.count,
	}
	if s.failure != nil {
		st.Error = s.failure.Error()
	}
	if s.cfg.Problem != nil && !s.cfg.Disabled {
		st.State, st.Error = stateFailed, s.cfg.Problem.Error()
	}
	return st
}

func (s *server) enterLocked(state string, err error) {
	s.state, s.since = state, time.Now()
	if err != nil {
		s.failure = err
	} else if state == stateReady {
		s.failure = nil
	}
}

// timeout returns the time limit of one call.
func (s *server) timeout() time.Duration {
	if s.cfg.Timeout > 0 {
		return s.cfg.Timeout
	}
	return s.pool.o.CallTimeout
}

// call sends a request.
func (s *server) call(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, err error) {
	err = s.use(ctx, method, func(sess *session) (unsent bool, err error) {
		result, unsent, err = sess.call(ctx, method, params, s.timeout())
		return unsent, err
	})
	return result, err
}

// use performs the operation op over the connection. If the connection ends
// before the server received any of it, it is performed once more over a new
// connection.
func (s *server) use(ctx context.Context, op string, do func(*session) (unsent bool, err error)) error {
	for again := true; ; again = false {
		sess, err := s.acquire(ctx, op)
		if err != nil {
			return err
		}
		unsent, err := do(sess)
		s.release()
		if !unsent || !again || sess.reason() == nil || isClosed(s.pool.stop) {
			return err
		}
	}
}

// acquire returns the connection and connects if there is none. The connection
// is not closed as idle until release is called.
func (s *server) acquire(ctx context.Context, op string) (*session, error) {
	s.mu.Lock()
	if s.sess != nil && s.sess.reason() == nil {
		defer s.mu.Unlock()
		s.holdLocked()
		return s.sess, nil
	}
	a := s.attempt
	if a == nil {
		if err := s.tooEarlyLocked(s.pool.o.ConnectTimeout); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		a = s.beginLocked(ctx)
	}
	// Count the caller now, so that the connection is not idle before it is
	// used.
	s.holdLocked()
	s.mu.Unlock()
	select {
	case <-a.done:
		if a.err == nil {
			return a.sess, nil
		}
		s.release()
		if e, ok := errors.AsType[*ServerError](a.err); ok {
			return nil, e
		}
		return nil, &ServerError{Server: s.cfg.ID, Op: op, Err: a.err}
	case <-ctx.Done():
		s.release()
		return nil, s.gaveUp(op, context.Cause(ctx))
	}
}

func (s *server) holdLocked() {
	s.inflight++
	if s.idle != nil {
		s.idle.Stop()
	}
}

// release ends the use of a connection from acquire.
func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight--
	s.watchIdleLocked()
}

// watchIdleLocked starts the timer that closes an unused connection.
func (s *server) watchIdleLocked() {
	after := s.pool.o.IdleTimeout
	if s.inflight > 0 || s.sess == nil || after < 0 {
		return
	}
	if s.idle != nil {
		s.idle.Reset(after)
		return
	}
	s.idle = time.AfterFunc(after, s.closeIdle)
}

// closeIdle ends the connection if it is still unused. The goroutine of
// lookAfter does the rest.
func (s *server) closeIdle() {
	s.mu.Lock()
	sess := s.sess
	if s.inflight > 0 {
		sess = nil
	}
	if sess != nil {
		s.sess, s.failures = nil, 0
		s.enterLocked(stateIdle, nil)
	}
	s.mu.Unlock()
	if sess != nil {
		sess.fail(errIdle)
	}
}

// shut ends the connection and any attempt to connect.
func (s *server) shut() {
	s.mu.Lock()
	sess, a := s.sess, s.attempt
	s.sess = nil
	if s.idle != nil {
		s.idle.Stop()
	}
	if sess != nil {
		s.enterLocked(stateIdle, nil)
	}
	s.mu.Unlock()
	if a != nil {
		a.cancel()
	}
	if sess != nil {
		sess.fail(errClosed)
	}
}

// lookAfter waits for the end of a session and cleans up.
func (s *server) lookAfter(sess *session, cleaned chan struct{}) {
	<-sess.over
	s.lost(sess)
	sess.link.close(s.pool.hurry)
	close(cleaned)
}

// lost records that a connection ended unexpectedly.
func (s *server) lost(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sess != sess {
		return
	}
	s.sess = nil
	s.failures++
	if sess.answers.Load() > 1 || time.Since(s.since) > healthyAfter {
		s.failures = 0 // more than the handshake was answered
	}
	s.notUntil = time.Now().Add(backoff(max(s.failures-1, 0))) // the first start after a crash is not delayed
	s.enterLocked(stateFailed, sess.failed("running", sess.reason()))
}

// backoff returns the delay after the n-th failure in a row.
func backoff(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(firstBackoff<<min(n-1, 10), maxBackoff)
}
