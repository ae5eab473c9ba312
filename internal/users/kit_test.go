package users_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// A team is a server for several users, in memory: an MCP server at /mcp, one at
// /mcp/LABEL for each label that the caller may read, and /fess. Each answers with the
// labels that the caller may read.
type team struct {
	table   *users.Table
	path    string // of the access file
	client  *http.Client
	started chan string   // the name of a user whose call of hold, or request with ?hold, began
	release chan struct{} // these continue when it is closed
	closed  chan string   // the name of a user whose work that outlasts calls was ended
	end     func()        // ends the server and waits for its end

	mu      sync.Mutex // guards what follows
	calls   []string   // that were recorded: USER PATH TOOL STATUS FAILURE
	failing error      // of Check and Record
	unready bool       // only Record fails
}

// user returns a user of an access file whose token is token-NAME.
func user(name string, read, write []string) access.User {
	return access.User{Name: name, SHA256: hash("token-" + name), Read: read, Write: write}
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// set makes the users those of the access file.
func (m *team) set(t testing.TB, list ...access.User) {
	t.Helper()
	if _, err := access.Read(m.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is damaged
		if err := os.Remove(m.path); err != nil {
			t.Fatal(err)
		}
	}
	m.edit(t, func(c *access.Content) { c.Users = list })
}

// edit changes the access file.
func (m *team) edit(t testing.TB, change func(*access.Content)) {
	t.Helper()
	err := access.Edit(t.Context(), m.path, func(c *access.Content) error {
		change(c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// labels returns what a caller may read.
func labels(c *access.Caller) string {
	if c == nil {
		return "everything"
	}
	return strings.Join(slices.Sorted(slices.Values(c.Read)), ",")
}

// A view is the part of a team that a caller sees.
type view struct {
	m      *team
	caller *access.Caller
}

type nothing struct{}

// MCP implements [users.View].
func (v view) MCP(name string) *users.MCP {
	if name != "" && !v.caller.MayRead(name) {
		return nil
	}
	path := strings.TrimSuffix("/mcp/"+name, "/")
	return &users.MCP{Path: path,
		Options: mcpserver.Options{Name: "team", Instructions: "Labels: " + labels(v.caller)},
		Add: func(s *mcpserver.Server) {
			mcpserver.AddTool(s, mcpserver.Tool{Name: "read", Description: labels(v.caller)},
				func(ctx context.Context, _ nothing) (any, error) {
					audit.From(ctx).AddDocuments(labels(v.caller))
					return labels(v.caller) + " " + labels(access.From(ctx)), nil
				})
			mcpserver.AddTool(s, mcpserver.Tool{Name: "hold"}, func(ctx context.Context, _ nothing) (any, error) {
				return v.m.hold(ctx, labels(v.caller))
			})
			mcpserver.AddTool(s, mcpserver.Tool{Name: "stuck"}, func(context.Context, nothing) (any, error) {
				return v.m.hold(context.Background(), labels(v.caller)) // ignores the end of the call
			})
			if v.caller.Writes() {
				mcpserver.AddTool(s, mcpserver.Tool{Name: "write"},
					func(context.Context, nothing) (any, error) { return "written", nil })
			}
		},
		Close: func(context.Context) error {
			v.m.closed <- v.caller.Name
			return nil
		},
	}
}

// hold waits for the release and returns an answer.
func (m *team) hold(ctx context.Context, answer string) (string, error) {
	name := ""
	if c := access.From(ctx); c != nil {
		name = c.Name
	}
	m.started <- name
	select {
	case <-m.release:
		return "held " + answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// record is the Record of the calls.
func (m *team) record(c *audit.Call, failure string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, strings.TrimSuffix(fmt.Sprint(c.User, " ", c.Path, " ", c.Tool, " ", c.Status, " ", failure), " "))
	return m.failing
}

// fail makes recording fail, from the beginning of a call on or not before its end.
func (m *team) fail(err error, end bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing, m.unready = err, end
}

// recorded returns the calls since the last time, sorted.
func (m *team) recorded() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	slices.Sort(calls)
	return calls
}

// newTeam starts a server whose access file lists users.
func newTeam(t testing.TB, o users.Options, list ...access.User) *team {
	t.Helper()
	m := &team{path: filepath.Join(t.TempDir(), access.FileName), started: make(chan string, 1000),
		release: make(chan struct{}), closed: make(chan string, 1000)}
	m.set(t, list...)
	o.File = access.Open(m.path, nil)
	o.View = func(c *access.Caller) users.View { return view{m, c} }
	o.Calls = users.Calls{Record: m.record, Check: func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.unready {
			return nil
		}
		return m.failing
	}}
	m.table = users.New(o)
	all := m.table.Route("/mcp", func(w http.ResponseWriter, r *http.Request) { m.table.ServeMCP(w, r, "") })
	one := all
	one.Tree, one.Shutdown, one.Handler = true, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !m.table.ServeMCP(w, r, strings.TrimPrefix(r.URL.Path, "/mcp/")) {
			http.NotFound(w, r)
		}
	})
	fess := m.table.Limited(httpguard.Route{Path: "/fess", Refuse: mcpserver.Refuse, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			answer, err := labels(m.table.User(r.Context()).View().(view).caller), error(nil)
			if r.URL.Query().Has("hold") {
				answer, err = m.hold(r.Context(), answer)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, answer)
		})})
	listener := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	guard := httpguard.New(httpguard.Options{Routes: []httpguard.Route{all, one, fess, {Path: "/", Tree: true}},
		Authenticate: m.table.Authenticate, Refused: m.table.Refused, Refuse: mcpserver.Refuse,
		Drain: time.Second, Grace: 500 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.table.Run(ctx) })
	running.Go(func() {
		if err := guard.Serve(ctx, listener); err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	transport := &http.Transport{DialContext: listener.dial}
	m.client = &http.Client{Transport: transport}
	m.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(m.end)
	return m
}

// memory is a listener that is reached without a network.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memory) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

func (l *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- memoryConn{theirs}:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memoryConn says that it was reached on loopback.
type memoryConn struct{ net.Conn }

func (memoryConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

const host = "http://127.0.0.1:7411"

// session returns a client of a user at a path, without a session.
func (m *team) session(t testing.TB, name, path string) *mcptest.Session {
	t.Helper()
	return mcptest.HTTPClient(t, m.client, host+path, http.Header{"Authorization": {"Bearer token-" + name}})
}

// open returns a client of a user with a session at /mcp.
func (m *team) open(t testing.TB, name string) *mcptest.Session {
	t.Helper()
	s := m.session(t, name, "/mcp")
	s.Initialize("2025-11-25")
	return s
}

// start sends a request. The body of the response is open.
func (m *team) start(t testing.TB, token, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := m.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// send sends a request and returns the status and the body of the answer.
func (m *team) send(t testing.TB, token, method, path, body string, header ...string) string {
	t.Helper()
	res := m.start(t, token, method, path, body, header...)
	defer res.Body.Close() // read to its end
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(data))
}

// tool is a call of a tool.
func tool(id int, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, name)
}

// inSession are the headers of a request in a session.
func inSession(s *mcptest.Session) []string {
	return []string{"Mcp-Session-Id: " + s.SessionID(), "Mcp-Protocol-Version: 2025-11-25"}
}

// call starts a call of hold on a stream and returns the response and the ID of its
// first event.
func (m *team) call(t testing.TB, token string, s *mcptest.Session, id int) (*http.Response, string) {
	t.Helper()
	res := m.start(t, token, "POST", "/mcp", tool(id, "hold"), inSession(s)...)
	<-m.started
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		if event, ok := strings.CutPrefix(sc.Text(), "id: "); ok {
			return res, event
		}
	}
	t.Fatal("the stream has no event")
	return nil, ""
}

// read returns the rest of a response.
func read(t testing.TB, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return string(data)
}

// toolNames returns the names of the tools that a session is offered.
func toolNames(t testing.TB, s *mcptest.Session) string {
	t.Helper()
	var list struct {
		Tools []struct{ Name, Description string }
	}
	m := s.Call("tools/list", nil)
	m.Decode(t, &list)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// instructions returns those of a new session of a user.
func (m *team) instructions(t testing.TB, name string) string {
	t.Helper()
	var r struct{ Instructions string }
	s := m.session(t, name, "/mcp")
	s.Handshake("2025-11-25").Decode(t, &r)
	return r.Instructions
}

// text returns the text of a result of a tool, or its error.
func text(t testing.TB, s *mcptest.Session, name string) string {
	t.Helper()
	out, err := s.Tool(name, nil)
	if err != nil {
		return "error: " + err.Message
	}
	var v string
	if json.Unmarshal([]byte(out), &v) == nil {
		return v
	}
	return out
}
