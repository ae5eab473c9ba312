package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

const (
	// mcpPath is the path of MCP servers. That of serve has each source at a path
	// below it.
	mcpPath = "/mcp"

	// uploadPath is the path of whole files, for agents with a shell.
	uploadPath = "/upload"
)

// The time limits for the request of a client whose server cannot start.
const (
	clientTime = 30 * time.Second // on stdio: some clients take long until they send it
	strayTime  = time.Second      // over HTTP: there is probably no client
)

// A server runs one of the servers of the program: on standard input and output, or
// on a listener.
type server struct {
	*invocation
	log   *slog.Logger
	lines *terminal.Lines // stderr

	mcp  *mcpserver.Server // nil if the server is not one of MCP
	path string            // of MCP, or "" if the server is not one of MCP
	host string            // name or address of the listener
	port int               // 0 lets the system choose

	// guard configures access to the routes. The route of MCP, hints, time limits and
	// the log are added.
	guard httpguard.Options

	// background, if set, runs while the server serves. Its context ends then.
	background func(ctx context.Context)

	// ready, if set, is called once after the ready line, with the URL in that line.
	ready func(url string)

	// public is the warning if a server without a token can be reached from other
	// machines; "" for none.
	public string

	portHint string // advice if the port is in use; "" is that for the flag --addr

	listener net.Listener // nil before open
	team     *team        // nil if the server has no users
}

// splitAddress returns the host and the port of an address.
func splitAddress(addr string) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = net.LookupPort("tcp", service)
	}
	return host, port, err
}

// newServer returns a server that logs to stderr and, over HTTP, listens on an
// address.
func (v *invocation) newServer(transport, addr string, l level, token token, o httpFlags) (s *server, err error) {
	v.stdio = transport == "stdio"
	s = &server{invocation: v, lines: terminal.NewLines(v.stderr, nil)}
	v.stderr = s.lines // all output must clear a progress bar first
	s.log = slog.New(terminal.NewHandler(s.lines, l.level()))
	s.guard = httpguard.Options{Token: string(token), AllowedHosts: o.AllowHost, AllowedOrigins: o.AllowOrigin,
		Refuse: mcpserver.Refuse}
	if s.stdio {
		return s, nil
	}
	if s.host, s.port, err = splitAddress(addr); err != nil {
		return nil, v.usagef("--addr: got %q, want HOST:PORT, for example 127.0.0.1:8080", addr)
	}
	return s, nil
}

// requireToken refuses to listen beyond this machine without a token or users.
func (s *server) requireToken(addr string) error {
	if s.stdio || s.guard.Token != "" || s.team != nil && s.team.users || httpguard.Loopback(s.host) {
		return nil
	}
	hint := "Set --token or KNOWHOW_TOKEN, or listen on 127.0.0.1."
	if s.team != nil {
		hint = "Set --token or KNOWHOW_TOKEN, add users with \"knowhow access add\", or listen on 127.0.0.1."
	}
	return &hintError{fmt.Errorf("--addr %s listens beyond this machine, which requires a token", addr), hint}
}

// serve serves until ctx ends or, on stdio, the client disconnects. It returns nil if
// ctx ended it.
func (s *server) serve(ctx context.Context) error {
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	if s.background != nil {
		running.Go(func() { s.background(background) })
	}
	if s.stdio {
		s.served = true
		return s.mcp.ServeStdio(ctx, s.stdin, s.stdout)
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	wait, err := s.serveMetrics(background)
	if err != nil {
		return err
	}
	defer wait()
	defer stop()
	url := s.url() + s.path
	fmt.Fprintf(s.stderr, "listening on %s\n", url)
	s.log.Info("listening", "url", url)
	s.refuseStray(ctx, url)
	if s.public != "" && s.guard.Token == "" && (s.team == nil || !s.team.users) && !httpguard.Loopback(s.host) {
		s.warn(s.public)
		s.log.Warn(s.public)
	}
	if s.ready != nil {
		s.ready(url)
	}
	return s.serveOn(ctx, s.listener)
}

// open opens the listener if it is not open.
func (s *server) open(ctx context.Context) (err error) {
	if s.listener == nil {
		s.listener, err = s.listen(ctx)
	}
	return err
}

// url returns the URL of the listener, without a path. If it listens on all
// addresses because the host is empty, that is localhost.
func (s *server) url() string {
	scheme := "http://"
	if s.guard.TLS != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(cmp.Or(s.host, "localhost"), strconv.Itoa(s.listener.Addr().(*net.TCPAddr).Port))
}

// serveOn serves on a listener until ctx ends.
func (s *server) serveOn(ctx context.Context, l net.Listener) error {
	o := s.guard
	o.HostHint, o.OriginHint = "allow it with --allow-host", "allow it with --allow-origin"
	// An MCP server must end within a second.
	o.Drain, o.Grace, o.Log = cmp.Or(o.Drain, 800*time.Millisecond), cmp.Or(o.Grace, 100*time.Millisecond), s.log
	if s.mcp != nil && !slices.ContainsFunc(o.Routes, func(r httpguard.Route) bool { return r.Path == s.path }) {
		o.Routes = append(o.Routes, s.mcp.HTTP(mcpserver.HTTPOptions{}).Route(s.path))
	}
	if s.path != "" && !slices.ContainsFunc(o.Routes, func(r httpguard.Route) bool { return r.Path == "/" }) {
		o.Routes = append(o.Routes, httpguard.Route{Path: "/", Handler: s.about()})
	}
	return httpguard.New(o).Serve(ctx, l)
}

// about returns the page of an MCP server without a console, to which browsers
// are sent.
func (s *server) about() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprintf(w,
			"This is %s, a server for AI agents. It has no page to search on.\nConnect an MCP client to this address, with the path %s.\n", s.name, s.path)
	})
}

// listen listens on the address of the server. If the port is in use, the error says
// what to do.
func (s *server) listen(ctx context.Context) (net.Listener, error) {
	l, err := httpguard.Listen(ctx, s.host, s.port)
	hint := cmp.Or(s.portHint, "Choose a port with --addr 127.0.0.1:PORT (0: any free one).")
	switch {
	case errors.Is(err, errkind.Conflict):
		addr := net.JoinHostPort(s.host, strconv.Itoa(s.port))
		asking, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if httpguard.SchemeAt(asking, addr) != "" {
			return nil, &hintError{fmt.Errorf("listening on %s: a server of knowhow listens there already", addr),
				"Connect to it, or end it. " + hint}
		}
		return nil, &hintError{err, "End the program that uses it. " + hint}
	case errors.Is(err, errkind.Denied):
		return nil, &hintError{err, "Ports from 1024 on are not reserved. " + hint}
	}
	return l, err
}

// transport returns the transport of a server whose command line may be invalid.
func (f *flagSet) transport(args []string) string {
	d := f.find("transport")
	switch {
	case d == nil:
		return "http"
	case d.Value == "stdio":
		return "stdio" // mcp
	}
	transport := d.Default
	if value := f.get(d.Env); value != "" {
		transport = value
	}
	for i, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case name != d.Name || !strings.HasPrefix(arg, "-"):
		case hasValue:
			transport = value
		case i+1 < len(args):
			transport = args[i+1]
		}
	}
	return transport
}

// refuseClient tells the client that started a server why it cannot start. err
// was printed before, but clients show only the answer to their request.
func (v *invocation) refuseClient(ctx context.Context, f *flagSet, args []string, err error) {
	if err == nil || errors.Is(err, errHelp) || v.served || ctx.Err() != nil || !isServer(v.command) {
		return
	}
	limit := clientTime
	if f.transport(args) != "stdio" {
		if limit = strayTime; !v.stdinIsPipe() {
			return
		}
	}
	if v.stdinIsTerminal() {
		return
	}
	text := v.name + " cannot start: " + boundLines(message(err))
	if hint := v.advice(err); hint != "" {
		text += ". " + hint
	}
	if limit == strayTime {
		text = strings.TrimSuffix(text, ".") + ". " + stdioAdvice
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mcpserver.RefuseStdio(ctx, v.stdin, v.stdout, text, limit == strayTime)
}

// stdioAdvice is for clients that start a server over HTTP and send requests to
// its standard input.
const stdioAdvice = `To let a client start the program, configure "knowhow mcp" in place of "knowhow serve"; for other servers, set KNOWHOW_TRANSPORT=stdio`

// refuseStray tells a client that started an HTTP server what to do instead, if
// it sends a request to stdin. Nothing but a pipe is read, and it only to the
// first line that is no message. The server continues to run.
func (v *invocation) refuseStray(ctx context.Context, url string) {
	if v.served || !v.stdinIsPipe() {
		return
	}
	v.served = true
	text := fmt.Sprintf("%s listens on %s and not on standard input. %s. Or connect to that address", v.name, url,
		stdioAdvice)
	go mcpserver.RefuseStdio(ctx, v.stdin, v.stdout, text, true) // ends with ctx, except for a pending read
}

// stdinIsTerminal reports whether stdin is a terminal, and not the output of a client.
func (v *invocation) stdinIsTerminal() bool {
	in, ok := v.stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

// stdinIsPipe reports whether stdin is a pipe, or the socket that some programs
// use in its place.
func (v *invocation) stdinIsPipe() bool {
	in, ok := v.stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := in.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}
