package invoke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second // of header and body; calls may last longer
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10 // bytes

	// drainCalls is how long requests under way have when the bridge ends,
	// endCalls how long they then have to say that they were cancelled.
	drainCalls = 5 * time.Second
	endCalls   = time.Second
)

// Serve serves h, which is to come from [New], on l until ctx ends. It then
// closes l and lets the requests under way run for 5 seconds more; what is still
// running is cancelled. Serve returns when all its goroutines have, nil if it was
// ended by ctx. There is no limit to how long a call may take but the one that
// the servers behind have. A nil log discards.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Connections are counted, because Close of an http.Server does not wait
	// for the handlers. All are new before the server's Serve returns.
	var open sync.WaitGroup
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return work },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var failed error
	select {
	case err := <-served:
		failed = fmt.Errorf("serving on %s: %w", l.Addr(), err)
		served <- err
	case <-ctx.Done():
	}
	end(work, cancel, server)
	<-served
	open.Wait()
	return failed
}

// end ends the server: first the requests that finish by themselves, then those
// that are told to.
func end(work context.Context, cancel context.CancelCauseFunc, server *http.Server) {
	if shutdown(work, server, drainCalls) {
		return
	}
	cancel(errEnding)
	if !shutdown(context.WithoutCancel(work), server, endCalls) {
		_ = server.Close() // what it could say is of no use now
	}
}

// shutdown reports whether no request is left after at most limit.
func shutdown(ctx context.Context, server *http.Server, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return !errors.Is(server.Shutdown(ctx), context.DeadlineExceeded)
}
