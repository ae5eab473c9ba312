package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/httpguard"
)

// How a server that serves MCP over HTTP ends: within a second.
const (
	drainTime = 800 * time.Millisecond // for requests to finish
	graceTime = 100 * time.Millisecond // for cancelled ones to be answered
)

// An httpService says what one listener serves.
type httpService struct {
	host string // name or address to listen on
	port int    // 0 lets the system choose
	path string // that the ready line names, with its leading slash

	// guard says who may use which route. Hints, times and the log are added.
	guard httpguard.Options

	// ready, if set, is called once after the ready line, with the URL
	// that the line names.
	ready func(url string)

	// portHint says what to do where the port is taken.
	portHint string

	log *slog.Logger
}

// serveHTTP listens, says so on stderr, and serves until ctx ends. It returns nil
// if it was ended by ctx.
func (v *invocation) serveHTTP(ctx context.Context, s httpService) error {
	listener, err := listen(ctx, s.host, s.port, s.portHint)
	if err != nil {
		return err
	}
	o := s.guard
	o.HostHint, o.OriginHint = "allow it with --allow-host", "allow it with --allow-origin"
	o.Drain, o.Grace, o.Log = drainTime, graceTime, s.log
	url := "http://" + net.JoinHostPort(s.host, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)) + s.path
	fmt.Fprintf(v.stderr, "listening on %s\n", url)
	s.log.Info("listening", "url", url)
	if s.ready != nil {
		s.ready(url)
	}
	return httpguard.New(o).Serve(ctx, listener)
}

// listen listens on an address, port 0 being any free one. If the port is taken,
// the error carries portHint.
func listen(ctx context.Context, host string, port int, portHint string) (net.Listener, error) {
	l, err := httpguard.Listen(ctx, host, port)
	if errors.Is(err, errkind.Conflict) {
		return nil, &hintError{err, portHint}
	}
	return l, err
}

// warn tells the user on stderr and in the log.
func (v *invocation) warn(log *slog.Logger, message string) {
	fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, message)
	log.Warn(message)
}
