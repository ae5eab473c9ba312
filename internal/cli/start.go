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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/invoke"
	"github.com/knowhow-mcp/knowhow/internal/skill/store"
)

const startHelp = `Usage: {cmd} --mcp-settings FILE [FLAGS]

Generates the skills, then serves POST /invoke on this machine only. The skills
use it to call the tools of the MCP servers. A server is started when it is first
needed, and ended after some time without use. With --check, the command exits
with status 1 before it serves if a skill is stale. With --dry-run, it serves
without changing a skill.

{flags}

Examples:
  {cmd} --mcp-settings mcp_settings.json
  {cmd} --mcp-settings ~/.claude.json --port 4444 --log-level warn
  curl -sS http://127.0.0.1:3333/servers
`

const (
	// defaultBridgePort is the default port of the bridge.
	defaultBridgePort = "3333"

	// When the bridge ends, drainCalls is the time limit for finishing calls.
	// endCalls is the time limit for the answers to calls that were then
	// cancelled.
	drainCalls = 5 * time.Second
	endCalls   = time.Second
)

// A startCommand generates the skills and serves the bridge until its context ends.
type startCommand struct {
	syncFlags
	Port        int           `flag:"port" value:"PORT" default:"3333" range:"0-65535" help:"port to listen on, on 127.0.0.1; 0 is any free one"`
	IdleTimeout time.Duration `flag:"idle-timeout" value:"DURATION" default:"10m" help:"end a server that was not used for this long"`
	tokenFlag   `variable:"MCP_BRIDGE_TOKEN,"`
}

func (o *startCommand) run(ctx context.Context, v *invocation) error {
	if _, ok := v.Lookup("GOGC"); !ok {
		// The bridge produces little garbage for each call and runs for a long
		// time.
		debug.SetGCPercent(50)
	}
	y, err := v.newSyncing(&o.syncFlags)
	if err != nil {
		return err
	}
	y.idleTimeout = o.IdleTimeout
	// Listen before any server is started, so that a port in use is reported at
	// once.
	s := &server{
		invocation: v, log: y.log, host: defaultHost, port: o.Port,
		portHint: "Choose a port with --port (0: any free one).",
		guard:    httpguard.Options{Token: string(o.Token), Refuse: invoke.Refuse, Drain: drainCalls, Grace: endCalls},
	}
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(y.serve(ctx, s, l), closeListener(l))
	if ctx.Err() != nil {
		y.endLine(ctx)
		y.log.Info("Ended, with all servers: " + context.Cause(ctx).Error())
	}
	return err
}

// closeListener closes a listener that its server may have closed already.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve generates the skills if they are not up to date, and serves the bridge.
// It updates the skills when the tools of a server change.
func (y *syncing) serve(ctx context.Context, s *server, l net.Listener) error {
	changed := make(chan string, 2*len(y.settings.Servers))
	report := func(server string) {
		select {
		case changed <- server:
		default: // every server was reported
		}
	}
	var generated atomic.Bool // until then connected servers are asked anyway
	y.connect(func(server string) {
		if generated.Load() {
			report(server)
		}
	}, report)
	defer y.close(ctx)
	current, err := y.current()
	if err != nil {
		return err
	}
	if !current {
		_, err := y.generate(ctx)
		if ctx.Err() != nil {
			return nil // ended before it could serve
		}
		if err != nil {
			return err
		}
		y.f.Force = false // only for the first generation
	}
	generated.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { y.follow(ctx, changed) })

	port := l.Addr().(*net.TCPAddr).Port
	bridge := invoke.New(invoke.Options{Servers: y.pool, NeedsToken: s.guard.Token != "", Version: version(),
		Port: port, Log: y.log})
	s.guard.Routes = invoke.Routes(bridge)
	fmt.Fprintln(y.stdout, "Server listening on http://localhost:"+strconv.Itoa(port))
	return s.serveOn(ctx, l)
}

// current reports whether the skills on disk match the settings, so that no
// server must be asked.
func (y *syncing) current() (bool, error) {
	if y.f.Force || y.f.Check || y.f.DryRun {
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

// follow updates the skills of servers that were connected or whose tools
// changed, until ctx ends.
func (y *syncing) follow(ctx context.Context, changed <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case server := <-changed:
			if err := y.generator().Follow(ctx, server); err != nil && ctx.Err() == nil {
				y.log.Error("bringing the skills up to date", "error", errkind.Message(err))
			}
		}
	}
}
