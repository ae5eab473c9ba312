package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"knowhow/internal/errkind"
)

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10 // bytes
)

// ErrShutdown is the cause that the contexts of requests are cancelled with
// when the server ends.
var ErrShutdown = errors.New("the server is ending")

// Listen listens on a TCP port of host, a name or an address of this machine.
// Port 0 is any free one. An error is of kind Conflict if the port is taken.
func Listen(ctx context.Context, host string, port int) (net.Listener, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: the port is in use by another program: %w", addr, errkind.Conflict)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listening on %s: this machine has no such address; use 127.0.0.1, or 0.0.0.0 for all of its addresses", addr)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return l, nil
}

// Serve serves on l until ctx ends. It then calls the Shutdown functions of the
// routes, closes l, and lets the requests that still run finish, all within
// Drain. It cancels the contexts of the rest with [ErrShutdown], and after Grace
// closes their connections. A handler that ignores its context is left behind.
//
// Serve closes l. It returns nil if it was ended by ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Connections are counted, because an http.Server does not wait for their
	// goroutines. All are new before its Serve returns.
	var open sync.WaitGroup
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return work },
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
		DisableGeneralOptionsHandler: true, // it answers "OPTIONS *" without a check
	}
	var err, failed error
	stopped := make(chan struct{}) // closed when err is set
	go func() {
		defer close(stopped)
		err = server.Serve(l)
	}()
	select {
	case <-stopped:
		failed = fmt.Errorf("serving on %s: %w", l.Addr(), err)
	case <-ctx.Done():
		s.o.Log.Info("shutting down", "cause", context.Cause(ctx))
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-stopped
		open.Wait()
	}()
	s.end(context.WithoutCancel(ctx), server, cancel, closed)
	<-stopped
	return failed
}

// end ends the server: first the requests that finish by themselves, then those
// that are cancelled. It waits until closed says that all connections are closed,
// but no longer than Grace.
func (s *Server) end(ctx context.Context, server *http.Server, cancel context.CancelCauseFunc, closed <-chan struct{}) {
	drain, stop := context.WithTimeout(ctx, s.o.Drain)
	defer stop()
	for _, route := range s.o.Routes {
		if route.Shutdown == nil {
			continue
		}
		if err := route.Shutdown(drain); err != nil {
			s.o.Log.Warn("shutting down", "path", route.Path, "error", err)
		}
	}
	drained := server.Shutdown(drain)
	cancel(ErrShutdown)
	grace, stop := context.WithTimeout(ctx, s.o.Grace)
	defer stop()
	if drained != nil && server.Shutdown(grace) != nil {
		s.o.Log.Warn("cutting off the requests that are still running")
		server.Close()
	}
	select {
	case <-closed:
	case <-grace.Done():
	}
}
