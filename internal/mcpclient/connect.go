package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// gaveUp returns the error of a caller that stops waiting for a connection.
func (s *server) gaveUp(op string, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &ServerError{Server: s.cfg.ID, Op: op, Kind: errkind.Timeout,
			Err: fmt.Errorf("connecting took too long: %w", cause)}
	}
	return fmt.Errorf("connecting to server %q: %w", s.cfg.ID, cause)
}

// beginLocked starts an attempt to connect. It continues if the caller gives
// up, because other callers may wait for it.
func (s *server) beginLocked(ctx context.Context) *attempt {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.pool.o.ConnectTimeout)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	s.attempt = a
	work := func() {
		defer cancel()
		s.finish(a, s.connect(ctx, a))
	}
	if !s.pool.run(work) {
		cancel()
		a.err = &ServerError{Server: s.cfg.ID, Op: "connecting", Err: errClosed}
		s.attempt = nil
		close(a.done)
	}
	return a
}

// finish publishes the result of an attempt.
func (s *server) finish(a *attempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = nil
	if a.err = err; err != nil {
		s.enterLocked(stateFailed, err)
	}
	close(a.done)
}

// connect connects, with up to three retries if they may succeed.
func (s *server) connect(ctx context.Context, a *attempt) error {
	s.mu.Lock()
	s.enterLocked(stateConnecting, nil)
	s.mu.Unlock()
	var err error // of the last try that did not exceed the time limit
	for try := 0; try <= maxRetries; try++ {
		limit, _ := ctx.Deadline()
		s.mu.Lock()
		early := s.tooEarlyLocked(time.Until(limit))
		s.mu.Unlock()
		if err != nil && early != nil {
			return err
		}
		s.awaitRestart(ctx)
		if ctx.Err() != nil {
			return s.connectError(ctx, ctx.Err(), err)
		}
		if try == 0 {
			s.log.InfoContext(ctx, "Connecting to server: "+s.cfg.ID)
		} else { // the caller reports the last failure
			s.log.DebugContext(ctx, "Connecting to server once more: "+s.cfg.ID, "err", err)
		}
		sess, intro, failure := s.open(ctx)
		if failure == nil {
			return s.install(a, sess, intro)
		}
		err = s.connectError(ctx, failure, err)
		if ctx.Err() != nil || asFault(failure).final {
			return err
		}
		s.mu.Lock()
		s.failures++
		s.notUntil = time.Now().Add(backoff(s.failures))
		s.mu.Unlock()
	}
	return err
}

// tooEarlyLocked returns an error if the server failed so often that it is not
// started again soon, or within the time limit.
func (s *server) tooEarlyLocked(limit time.Duration) error {
	wait := time.Until(s.notUntil)
	if wait <= 0 || wait <= waitBackoff && wait < limit {
		return nil
	}
	e := s.unconnected(s.failure)
	e.Err = fmt.Errorf("%w; it is tried again in %v", e.Err, max(wait.Round(time.Second), time.Second))
	return e
}

// awaitRestart waits until the last connection is cleaned up and the server may be
// started again.
func (s *server) awaitRestart(ctx context.Context) {
	s.mu.Lock()
	cleaned, wait := s.cleaned, time.Until(s.notUntil)
	s.mu.Unlock()
	if cleaned != nil {
		select {
		case <-cleaned:
		case <-ctx.Done():
		}
	}
	pause(ctx, max(wait, 0))
}

// connectError returns the reason why a connection failed. If the time limit
// was exceeded, earlier is the more specific error from before, or nil.
func (s *server) connectError(ctx context.Context, err, earlier error) error {
	e := s.unconnected(err)
	switch late := ctx.Err() != nil && errors.Is(err, ctx.Err()); {
	case isClosed(s.pool.stop):
		e.Err = errClosed
	case late && earlier != nil:
		return earlier
	case late:
		e.Err = fmt.Errorf("the server was not ready within %v; a longer timeout may help, if it has to be "+
			"downloaded first", s.pool.o.ConnectTimeout)
	}
	return e
}

// unconnected returns the ServerError of a failure to connect.
func (s *server) unconnected(err error) *ServerError {
	e := &ServerError{Server: s.cfg.ID, Op: "connecting", Err: err}
	if inner, ok := errors.AsType[*ServerError](err); ok {
		e.Stderr, e.Err = inner.Stderr, inner.Err
	}
	return e
}

// install makes a new session the server's connection.
func (s *server) install(a *attempt, sess *session, intro *introduction) error {
	s.mu.Lock()
	if isClosed(s.pool.stop) {
		s.mu.Unlock()
		sess.fail(errClosed)
		return &ServerError{Server: s.cfg.ID, Op: "connecting", Err: errClosed}
	}
	a.sess, s.sess, s.intro, s.catalog = sess, sess, intro, nil
	s.enterLocked(stateReady, nil)
	s.watchIdleLocked()
	s.mu.Unlock()
	if sess.reason() != nil {
		s.lost(sess) // the session ended before it was installed
	} else if tell := s.pool.o.Connected; tell != nil {
		s.pool.run(func() { tell(s.cfg.ID) })
	}
	return nil
}

// dial connects once, with the transport of the settings. A server that refuses
// streamable HTTP may be an old one with HTTP+SSE (MCP 2025-11-25, Transports,
// Backwards Compatibility).
func (s *server) dial(ctx context.Context) (*session, *introduction, error) {
	switch s.cfg.Transport {
	case mcpsettings.Stdio:
		return s.dialWith(ctx, func(sess *session) error { return startProcess(ctx, &s.cfg, sess, &s.pool.guard) })
	case mcpsettings.SSE:
		return s.dialOld(ctx)
	}
	sess, intro, err := s.dialWith(ctx, func(sess *session) error { newStreamable(&s.cfg, sess); return nil })
	if err == nil || !asFault(err).legacy {
		return sess, intro, err
	}
	if sess, intro, old := s.dialOld(ctx); old == nil {
		return sess, intro, nil
	}
	return nil, nil, err
}

func (s *server) dialOld(ctx context.Context) (*session, *introduction, error) {
	return s.dialWith(ctx, func(sess *session) error { return startOldSSE(ctx, &s.cfg, sess) })
}

// dialWith creates a session over a link and performs the handshake.
func (s *server) dialWith(ctx context.Context, start func(*session) error) (*session, *introduction, error) {
	sess := newSession(s.cfg.ID, s.log, s.redact, s.listChanged)
	if err := start(sess); err != nil {
		return nil, nil, err
	}
	limit := 2 * s.pool.o.ConnectTimeout // ctx ends first
	intro, err := sess.initialize(ctx, s.pool.client, limit)
	if errors.Is(err, errNoHandshake) {
		intro, err = sess.discover(ctx, s.pool.client, limit)
	}
	cleaned := make(chan struct{})
	s.mu.Lock()
	s.cleaned = cleaned
	s.mu.Unlock()
	s.pool.wg.Go(func() { s.lookAfter(sess, cleaned) }) // the attempt is a goroutine of the pool, so Close still waits
	if err != nil {
		sess.fail(err)
		// The stderr output may arrive after the answer.
		ending, stop := context.WithTimeout(ctx, grace)
		defer stop()
		select {
		case <-cleaned:
		case <-ending.Done():
		}
		return nil, nil, sess.failed("connecting", err)
	}
	return sess, intro, nil
}
