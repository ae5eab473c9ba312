package httpguard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10 // bytes
)

// ErrShutdown is the cause of the cancellation of requests when the server
// ends.
var ErrShutdown = errors.New("the server is ending")

// Listen listens on a TCP port of host, a name or an address of this machine.
// Port 0 means any free port. The error is of kind Conflict if the port is in
// use, and of kind Denied if it is reserved.
func Listen(ctx context.Context, host string, port int) (net.Listener, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, listenError(addr, err)
	}
	return l, nil
}

// listenError returns the error of [Listen] for one of the system.
func listenError(addr string, err error) error {
	inUse, reserved, absent := syscall.EADDRINUSE, syscall.EACCES, syscall.EADDRNOTAVAIL
	if runtime.GOOS == "windows" {
		// WSAEADDRINUSE, WSAEACCES and WSAEADDRNOTAVAIL: package syscall has other
		// numbers for these constants.
		inUse, reserved, absent = 10048, 10013, 10049
	}
	switch {
	case errors.Is(err, inUse):
		return fmt.Errorf("listening on %s: the port is in use by another program: %w", addr, errkind.Conflict)
	case errors.Is(err, reserved):
		return fmt.Errorf("listening on %s: the system reserves this port for programs with more rights: %w",
			addr, errkind.Denied)
	case errors.Is(err, absent):
		return fmt.Errorf("listening on %s: this machine has no such address; "+
			"use 127.0.0.1, or 0.0.0.0 for all of its addresses", addr)
	}
	return fmt.Errorf("listening on %s: %w", addr, err)
}

// Serve serves on l until ctx ends. It then calls the Shutdown functions of the
// routes, closes l, and waits for running requests, all within Drain. It
// cancels the contexts of the remaining requests with [ErrShutdown] and closes
// their connections after Grace. It does not wait for a handler that ignores
// its context.
//
// Serve closes l. It returns nil if ctx ended it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if s.o.TLS != nil {
		// An http.Server ends a handshake after ReadHeaderTimeout, and answers plain HTTP.
		l = tls.NewListener(l, s.o.TLS.config())
	}
	// Connections are counted, because an http.Server does not wait for their
	// goroutines. Each is counted before the http.Server's Serve returns.
	var open sync.WaitGroup
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return work },
		ErrorLog:          log.New(&serverLog{log: s.o.Log}, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without the checks
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

// end ends the server: it waits for running requests and then cancels the
// others. It returns when closed is closed, which means that all connections
// are, or after Grace.
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
