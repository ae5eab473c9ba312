package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/httpguard"
)

// Time limits for the end of an MCP server over HTTP, which must end within a
// second.
const (
	drainTime = 800 * time.Millisecond // for finishing requests
	graceTime = 100 * time.Millisecond // for answering cancelled requests
)

// An httpService configures one listener.
type httpService struct {
	host string // name or address of the listener
	port int    // 0 lets the system choose
	path string // path in the ready line, with its leading slash

	// guard configures access to the routes. Hints, time limits and the log are
	// added.
	guard httpguard.Options

	// ready, if not nil, is called once after the ready line, with the URL in
	// that line.
	ready func(url string)

	// portHint is advice for the case that the port is in use; "" is that for the
	// flag --addr.
	portHint string

	log *slog.Logger
}

// serveHTTP listens, prints the ready line on stderr, and serves until ctx
// ends. It returns nil if ctx ended it.
func (v *invocation) serveHTTP(ctx context.Context, s httpService) error {
	listener, err := listen(ctx, s.host, s.port, cmp.Or(s.portHint, "Choose a port with --addr 127.0.0.1:PORT (0: any free one)."))
	if err != nil {
		return err
	}
	o := s.guard
	o.HostHint, o.OriginHint = "allow it with --allow-host", "allow it with --allow-origin"
	o.Drain, o.Grace, o.Log = drainTime, graceTime, s.log
	if s.path != "" && !slices.ContainsFunc(o.Routes, func(r httpguard.Route) bool { return r.Path == "/" }) {
		o.Routes = append(o.Routes, httpguard.Route{Path: "/", Handler: v.about(s.path)})
	}
	url := "http://" + net.JoinHostPort(s.host, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)) + s.path
	fmt.Fprintf(v.stderr, "listening on %s\n", url)
	s.log.Info("listening", "url", url)
	v.refuseStray(ctx, url)
	if s.ready != nil {
		s.ready(url)
	}
	return httpguard.New(o).Serve(ctx, listener)
}

// about returns the page of an MCP server without a console, to which browsers
// are sent.
func (v *invocation) about(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprintf(w, "This is %s, a server for AI agents. It has no page to search on.\nConnect an MCP client to this address, with the path %s.\n", v.name, path)
	})
}

// listen listens on an address; port 0 means any free port. If the port is in
// use, the error contains portHint.
func listen(ctx context.Context, host string, port int, portHint string) (net.Listener, error) {
	l, err := httpguard.Listen(ctx, host, port)
	switch {
	case errors.Is(err, errkind.Conflict):
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		if isKnowhow(ctx, addr) {
			return nil, &hintError{fmt.Errorf("listening on %s: a server of knowhow listens there already", addr), "Connect to it, or end it. " + portHint}
		}
		return nil, &hintError{err, "End the program that uses it. " + portHint}
	case errors.Is(err, errkind.Denied):
		return nil, &hintError{err, "Ports from 1024 on are not reserved. " + portHint}
	}
	return l, err
}

// isKnowhow reports whether a server of this program answers at an address.
func isKnowhow(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+httpguard.HealthPath, nil)
	if err != nil {
		return false
	}
	req.Host = "localhost"                                                 // the address may be 0.0.0.0
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) // without a proxy
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	return err == nil && string(body) == httpguard.Health
}

// warn prints a warning on stderr and logs it.
func (v *invocation) warn(log *slog.Logger, message string) {
	fmt.Fprintf(v.stderr, "%s: warning: %s\n", v.name, message)
	log.Warn(message)
}
