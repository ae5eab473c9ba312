package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/invoke"
	"knowhow/internal/skill/store"
)

const startHelp = `Usage: {cmd} --mcp-settings FILE [FLAGS]

Generates the skills, then serves POST /invoke on this machine alone, through
which they call the tools of the MCP servers. Servers are started when they are
first needed and ended when they have been idle.

Flags, of which --check ends with 1 before it serves if a skill is stale, and
--dry-run serves without changing a skill:
` + syncFlagsHelp + `  --port N               where to listen on 127.0.0.1 (3333)
  --idle-timeout DURATION  a server that was not used that long is ended (10m)
  --token TOKEN          asked of every caller (MCP_BRIDGE_TOKEN)

Examples:
  {cmd} --mcp-settings mcp_settings.json
  {cmd} --mcp-settings ~/.claude.json --port 4444 --log-level WARN
  curl -sS http://127.0.0.1:3333/servers
`

// defaultBridgePort is where the bridge listens.
const defaultBridgePort = 3333

// runStart generates the skills and serves the bridge until ctx ends.
func runStart(ctx context.Context, v *invocation, args []string) error {
	f := &syncFlags{port: defaultBridgePort, idleTimeout: 10 * time.Minute, token: v.get("MCP_BRIDGE_TOKEN")}
	set := v.newFlags()
	f.define(set)
	set.Var((*port)(&f.port), "port", "")
	set.Var((*positiveDuration)(&f.idleTimeout), "idle-timeout", "")
	set.StringVar(&f.token, "token", f.token, "")
	if err := v.parse(set, args, nil); err != nil {
		return err
	}
	if err := f.required(v); err != nil {
		return err
	}
	if _, ok := v.Lookup("GOGC"); !ok {
		// The bridge makes little garbage for each call, and is there all day.
		debug.SetGCPercent(50)
	}
	y, err := v.newSyncing(f)
	if err != nil {
		return err
	}
	// The port is taken before any server is started, so that a conflict shows
	// at once.
	l, err := listen(ctx, "127.0.0.1", f.port, "End the program that uses it, or choose another one with --port.")
	if err != nil {
		return err
	}
	err = errors.Join(y.serve(ctx, l), closeListener(l))
	if ctx.Err() != nil {
		y.endLine(ctx)
		y.log.Info("Ended, with all servers: " + context.Cause(ctx).Error())
	}
	return err
}

// closeListener closes a listener that its server may have closed before.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve generates the skills where they are not up to date, and serves the
// bridge. Skills follow the servers whose tools change meanwhile.
func (y *syncing) serve(ctx context.Context, l net.Listener) error {
	news := make(chan string, 2*len(y.settings.Servers))
	tell := func(server string) {
		select {
		case news <- server:
		default: // each server has been told of
		}
	}
	var generated atomic.Bool // until then the servers that are connected are asked anyway
	y.connect(func(server string) {
		if generated.Load() {
			tell(server)
		}
	}, tell)
	defer y.close(ctx)
	current, err := y.current()
	if err != nil {
		return err
	}
	if !current {
		_, err := y.generate(ctx)
		if ctx.Err() != nil {
			return nil // ended before it could serve, as it may be ended later
		}
		if err != nil {
			return err
		}
		y.f.force = false // that was for once
	}
	generated.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { y.follow(ctx, news) })

	port := l.Addr().(*net.TCPAddr).Port
	handler := invoke.New(invoke.Options{Servers: y.pool, Token: y.f.token, Version: version(), Port: port, Log: y.log})
	// Printed (FR-1.2) and logged (FR-7.1): who waits for it may look at either.
	ready := "Server listening on http://localhost:" + strconv.Itoa(port)
	fmt.Fprintln(y.stdout, ready)
	y.log.Info(ready)
	return invoke.Serve(ctx, l, handler, y.log)
}

// current reports whether the skills on disk are those of the settings, so that no
// server need be asked.
func (y *syncing) current() (bool, error) {
	if y.f.force || y.f.check || y.f.dryRun || y.f.strict {
		return false, nil
	}
	current, err := store.Current(y.storeOptions())
	if err != nil {
		return false, storeError(err)
	}
	if current {
		y.log.Info("Skills up to date, skipping regeneration")
		fmt.Fprintln(y.stdout, "Generated 0 skills from 0 servers (all are up to date, so no server was asked)")
	}
	return current, nil
}

// follow looks at the tools of the servers that are told of, because they were
// connected or their tools changed, until ctx ends.
func (y *syncing) follow(ctx context.Context, news <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case server := <-news:
			if err := y.writer().follow(ctx, server); err != nil && ctx.Err() == nil {
				y.log.Error("bringing the skills up to date", "error", errkind.Message(err))
			}
		}
	}
}

// A port is a flag.Value that takes a port number.
type port int

// String returns the port as Set takes it.
func (p *port) String() string { return strconv.Itoa(int(*p)) }

// Set sets the port.
func (p *port) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 65535 {
		return errors.New("want a port from 0 to 65535, where 0 means any free one")
	}
	*p = port(n)
	return nil
}
