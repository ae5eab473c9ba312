// Package mcpclient connects to MCP servers and calls them. A [Pool] keeps one
// connection to each server of the settings, over stdio, streamable HTTP or
// HTTP+SSE. It connects when a call needs the server, shares the connection
// between all callers, closes it after some time without use, and connects
// again if a server has died. Params and results are passed on unchanged, so
// that any method can be called.
//
// The package implements JSON-RPC itself, because results must stay as the
// server wrote them, and because it must know whether a request was sent: a
// tool call is never sent twice.
package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient/child"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// Options configure a Pool.
type Options struct {
	Servers []mcpsettings.Server
	Log     *slog.Logger // nil discards
	Version string       // of this program, for clientInfo

	// IdleTimeout is the time after which an unused connection is closed; 0
	// means 10 minutes, negative means never.
	IdleTimeout time.Duration

	// CallTimeout limits one request, since its last progress; 0 means 30 s. A
	// server's own Timeout takes precedence.
	CallTimeout time.Duration

	ConnectTimeout time.Duration // of start and handshake, retries included; 0 means 30 s

	// Connected is called after connecting, and ToolsChanged about 500 ms after
	// a server reported that its tools changed. Close waits for them. They may
	// be nil.
	Connected, ToolsChanged func(server string)
}

// Defaults of Options.
const (
	defaultIdle    = 10 * time.Minute
	defaultCall    = 30 * time.Second
	defaultConnect = 30 * time.Second
)

// A Status is a snapshot of the state of a server.
type Status struct {
	ID        string
	Disabled  bool
	Transport string // from the settings
	State     string // one of the states below
	Tools     int    // number of tools after Include and Exclude; -1 if unknown
	Error     string // the last failure of its connection; "" if there was none since it last worked
}

// States of a server.
const (
	stateIdle       = "idle" // not connected, because no call needs it
	stateConnecting = "connecting"
	stateReady      = "ready"
	stateFailed     = "failed" // the last attempt failed, or the connection broke
)

// A Pool manages the connections. It is safe for concurrent use.
type Pool struct {
	o       Options
	servers map[string]*server
	ids     []string // sorted
	client  clientInfo
	guard   child.Guard

	wg    sync.WaitGroup // all goroutines
	stop  chan struct{}  // closed when Close begins
	hurry chan struct{}  // closed when Close must finish quickly

	mu     sync.Mutex
	closed bool
}

// New returns a Pool. It does not connect to any server.
func New(o Options) *Pool {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdle)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultCall)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, defaultConnect)
	p := &Pool{
		o: o, servers: map[string]*server{}, client: clientInfo{"knowhow", cmp.Or(o.Version, "0")},
		stop: make(chan struct{}), hurry: make(chan struct{}),
	}
	for i := range o.Servers {
		s := newServer(p, o.Servers[i])
		p.servers[s.cfg.ID] = s
		p.ids = append(p.ids, s.cfg.ID)
	}
	slices.Sort(p.ids)
	p.ids = slices.Compact(p.ids)
	return p
}

// Call sends one request to a server and returns its result as the server wrote
// it. It connects first if necessary. params is a JSON object or nil.
//
// Errors are of kind errkind.NotFound for an unknown server; errkind.Denied for
// a disabled one and for a call of a tool that its Include and Exclude leave
// out; errkind.Invalid for params that are not a JSON object and for methods
// that belong to the connection; the Problem of the settings; a *RemoteError if
// the server answered with an error; a *ServerError if it could not be reached,
// died or did not answer in time. If ctx ends, Call returns at once, and the
// server is notified. A request that may have reached the server is never sent
// again.
func (p *Pool) Call(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	s, err := p.find(server)
	if err != nil {
		return nil, err
	}
	if method == "" || method == "initialize" || strings.HasPrefix(method, "notifications/") {
		return nil, &errkind.Argument{Name: "method", Value: method,
			Want: "a request of MCP such as tools/call; initialize and notifications belong to the connection"}
	}
	if err := s.permits(method, params); err != nil {
		return nil, err
	}
	return s.call(ctx, method, params)
}

// Catalog returns the tools of a server. It connects first if necessary. The
// catalog is cached until the server reports that its tools changed, or is
// connected again. The caller must not modify it. Errors are those of Call; a
// list without end is a *ServerError.
func (p *Pool) Catalog(ctx context.Context, server string) (*Catalog, error) {
	s, err := p.find(server)
	if err != nil {
		return nil, err
	}
	return s.tools(ctx)
}

// find returns a server that is known and enabled.
func (p *Pool) find(id string) (*server, error) {
	s, ok := p.servers[id]
	switch {
	case !ok:
		hint := ""
		if near := spell.Near(id, p.ids, 3); len(near) > 0 {
			hint = "; did you mean " + spell.List(near) + "?"
		} else if len(p.ids) > 0 {
			hint = "; name " + spell.List(p.ids[:min(len(p.ids), 10)])
		}
		return nil, fmt.Errorf("there is no server %s in the settings%s: %w", spell.Quote(id), hint, errkind.NotFound)
	case s.cfg.Disabled:
		return nil, fmt.Errorf("server %q is disabled in the settings: %w", id, errkind.Denied)
	case s.cfg.Problem != nil:
		return nil, s.cfg.Problem
	}
	return s, nil
}

// Status returns the state of every server, sorted by id.
func (p *Pool) Status() []Status {
	all := make([]Status, 0, len(p.ids))
	for _, id := range p.ids {
		all = append(all, p.servers[id].status())
	}
	return all
}

// Close ends all connections concurrently and waits for every process and
// goroutine of the pool. Calls in flight fail. A child gets a second to end by
// itself and another after SIGTERM. If ctx ends, the remaining children are
// killed at once, and the error is that of ctx. Otherwise it is nil.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if first {
		close(p.stop)
		for _, id := range p.ids {
			p.servers[id].shut()
		}
	}
	done := make(chan struct{})
	go func() { // ends with the goroutines of the pool, which are waited for below
		p.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("closing the connections to MCP servers: %w", ctx.Err())
		p.mu.Lock()
		if !isClosed(p.hurry) {
			close(p.hurry)
		}
		p.mu.Unlock()
		<-done
	}
	p.guard.Close()
	return err
}

// run starts a goroutine that Close waits for. It returns false if Close has
// begun.
func (p *Pool) run(work func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(work)
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
