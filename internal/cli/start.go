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
	"knowhow/internal/httpguard"
	"knowhow/internal/invoke"
	"knowhow/internal/skill/store"
)

const startHelp = `Usage: {cmd} --mcp-settings FILE [FLAGS]

Generates the skills, then serves POST /invoke on this machine only. Through it
the skills call the tools of the MCP servers. A server is started when it is
first needed and ended when it has been idle. With --check the command exits with
status 1 before it serves if a skill is stale. With --dry-run it serves without
changing a skill.

{flags}

Examples:
  {cmd} --mcp-settings mcp_settings.json
  {cmd} --mcp-settings ~/.claude.json --port 4444 --log-level WARN
  curl -sS http://127.0.0.1:3333/servers
`

const (
	// defaultBridgePort is where the bridge listens.
	defaultBridgePort = "3333"

	// drainCalls is how long calls have to finish when the bridge ends, endCalls
	// how long they then have to be answered that they were cancelled.
	drainCalls = 5 * time.Second
	endCalls   = time.Second
)

// startCommand generates the skills and serves the bridge until ctx ends.
func startCommand(v *invocation, f *flagSet) func(context.Context) error {
	o := &syncFlags{}
	o.define(f)
	f.Func(flag{Name: "port", Value: "PORT", Default: defaultBridgePort, Help: "port to listen on, on 127.0.0.1; 0 is any free one"}, func(s string) (err error) {
		if o.port, err = strconv.Atoi(s); err != nil || o.port < 0 || o.port > 65535 {
			return errors.New("want a port from 0 to 65535, where 0 means any free one")
		}
		return nil
	})
	f.Duration(&o.idleTimeout, flag{Name: "idle-timeout", Value: "DURATION", Default: "10m", Help: "end a server that was not used for this long"})
	f.Token(&o.token, flag{Name: "token", Value: "TOKEN", Env: "MCP_BRIDGE_TOKEN", Help: "token that every caller must send"})
	return func(ctx context.Context) error { return v.runStart(ctx, o) }
}

// runStart generates the skills and serves the bridge until ctx ends.
func (v *invocation) runStart(ctx context.Context, f *syncFlags) error {
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
	bridge := invoke.New(invoke.Options{Servers: y.pool, NeedsToken: y.f.token != "", Version: version(), Port: port, Log: y.log})
	server := httpguard.New(httpguard.Options{Token: y.f.token, Routes: invoke.Routes(bridge), Refuse: invoke.Refuse,
		Drain: drainCalls, Grace: endCalls, Log: y.log})
	// Printed (FR-1.2) and logged (FR-7.1): who waits for it may look at either.
	ready := "Server listening on http://localhost:" + strconv.Itoa(port)
	fmt.Fprintln(y.stdout, ready)
	y.log.Info(ready)
	return server.Serve(ctx, l)
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
			if err := y.generator().Follow(ctx, server); err != nil && ctx.Err() == nil {
				y.log.Error("bringing the skills up to date", "error", errkind.Message(err))
			}
		}
	}
}
