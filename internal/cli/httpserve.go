package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// healthPath answers without a token, for supervisors.
	healthPath = "/healthz"

	// shutdownTime is how long requests under way have when a server ends.
	shutdownTime = 800 * time.Millisecond

	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// An httpService says what one listener serves.
type httpService struct {
	host string // name or address to listen on
	port int    // 0 lets the system choose
	path string // that the ready line names, with its leading slash

	// handlers are mounted by their patterns, as http.ServeMux reads
	// them. GET /healthz is added.
	handlers map[string]http.Handler

	// shutdown is called, in order, when the server ends, before the
	// listener closes: to end what would keep connections busy.
	shutdown []func(context.Context) error

	// ready, if set, is called once after the ready line, with the URL
	// that the line names.
	ready func(url string)

	// portHint says what to do where the port is taken.
	portHint string

	log *slog.Logger
}

// serveHTTP listens, says so on stderr, and serves until ctx ends, then for at
// most shutdownTime more. It returns nil if it was ended by ctx.
func (v *invocation) serveHTTP(ctx context.Context, s httpService) error {
	listener, err := listen(ctx, s.host, s.port, s.portHint)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"ok"}`+"\n")
	})
	for pattern, h := range s.handlers {
		mux.Handle(pattern, h)
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	url := "http://" + net.JoinHostPort(s.host, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)) + s.path
	fmt.Fprintf(v.stderr, "listening on %s\n", url)
	s.log.Info("listening", "url", url)
	if s.ready != nil {
		s.ready(url)
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving %s: %w", url, err)
	case <-ctx.Done():
	}
	s.log.Info("shutting down", "cause", context.Cause(ctx))
	s.stop(context.WithoutCancel(ctx), server)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", url, err)
	}
	return nil
}

// stop ends the server within shutdownTime.
func (s *httpService) stop(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	for _, shutdown := range s.shutdown {
		if err := shutdown(ctx); err != nil {
			s.log.Warn("shutting down", "error", err)
		}
	}
	if err := server.Shutdown(ctx); err != nil {
		s.log.Warn("cutting off the requests that are still running", "error", err)
		server.Close()
	}
}

// listen listens on an address, port 0 being any free one. If the port is taken,
// the error carries portHint.
func listen(ctx context.Context, host string, port int, portHint string) (net.Listener, error) {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &hintError{fmt.Errorf("listening on %s: the port is in use by another program", addr), portHint}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listening on %s: this machine has no such address; use 127.0.0.1, or 0.0.0.0 for all of its addresses", addr)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return l, nil
}

// isLoopback reports whether what listens on host can be reached from this
// machine only.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// warn tells the user on stderr and in the log.
func (v *invocation) warn(log *slog.Logger, message string) {
	fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, message)
	log.Warn(message)
}
