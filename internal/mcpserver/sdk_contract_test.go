package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// These tests are about the SDK alone. Each pins one behaviour that this
// package rests on, so that an upgrade that changes it is seen here first.

// sdkConn is a connection whose far side is the test.
type sdkConn struct {
	in  chan jsonrpc.Message // closed at the end of input
	out chan jsonrpc.Message
}

func (c *sdkConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }
func (c *sdkConn) SessionID() string                               { return "" }
func (c *sdkConn) Close() error                                    { return nil }
func (c *sdkConn) Write(_ context.Context, m jsonrpc.Message) error {
	c.out <- m
	return nil
}
func (c *sdkConn) Read(context.Context) (jsonrpc.Message, error) {
	m, ok := <-c.in
	if !ok {
		return nil, io.EOF
	}
	return m, nil
}

func (c *sdkConn) send(t *testing.T, raw string) {
	t.Helper()
	m, err := jsonrpc.DecodeMessage([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c.in <- m
}

func (c *sdkConn) response(t *testing.T) *jsonrpc.Response {
	t.Helper()
	r, ok := (<-c.out).(*jsonrpc.Response)
	if !ok {
		t.Fatal("the SDK sent something else than a response")
	}
	return r
}

type contextKey struct{}

// sdkServer connects a bare SDK server whose every method is answered by h.
func sdkServer(t *testing.T, o *mcp.ServerOptions, h func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error)) *sdkConn {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "n", Version: "v"}, o)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return h(ctx, method, req, next)
		}
	})
	c := &sdkConn{in: make(chan jsonrpc.Message), out: make(chan jsonrpc.Message, 100)}
	ss, err := s.Connect(context.WithValue(t.Context(), contextKey{}, "value"), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(c.in)
		_ = ss.Wait() // the end of input
	})
	return c
}

func pass(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	return next(ctx, method, req)
}

const (
	sdkInitialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	sdkInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	sdkListTools   = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	sdkCancel      = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
)

func TestSDKPinsRevisions(t *testing.T) {
	for _, want := range []string{"2024-11-05", "2025-03-26"} {
		c := sdkServer(t, &mcp.ServerOptions{SupportedProtocolVersions: []string{want}}, pass)
		c.send(t, sdkInitialize)
		var r mcp.InitializeResult
		if err := json.Unmarshal(c.response(t).Result, &r); err != nil || r.ProtocolVersion != want {
			t.Errorf("initialize on a server of %s = %q, %v", want, r.ProtocolVersion, err)
		}
	}
	known := mcp.SupportedProtocolVersions()
	for _, v := range []string{string(Cody), string(Pinned), unbatchedRevision, statelessRevision} {
		if !slices.Contains(known, v) {
			t.Errorf("the SDK does not know %s", v)
		}
	}
	if newest := slices.Max(known); newest != statelessRevision {
		t.Errorf("the SDK knows %s: check what it changes, then raise this", newest)
	}
}

// The values of the context that a session was connected with reach every
// handler; its end does not.
func TestSDKHandsContextValuesOn(t *testing.T) {
	values := make(chan any, 10)
	c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		values <- ctx.Value(contextKey{})
		return next(ctx, method, req)
	})
	for _, m := range []string{sdkInitialize, sdkInitialized, sdkListTools} {
		c.send(t, m)
	}
	for range 3 {
		if v := <-values; v != "value" {
			t.Errorf("the handler's context has %v, want the value of the session's", v)
		}
	}
}

// A peer's cancellation has a cause that is context.Canceled, and is answered.
func TestSDKCancelCause(t *testing.T) {
	started, cause := make(chan struct{}), make(chan error, 1)
	c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if method != methodListTools {
			return next(ctx, method, req)
		}
		close(started)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, fault.Cancelled()
	})
	c.send(t, sdkInitialize)
	c.response(t)
	c.send(t, sdkListTools)
	<-started
	c.send(t, sdkCancel)
	if err := <-cause; !errors.Is(err, context.Canceled) {
		t.Errorf("cause = %v, want context.Canceled", err)
	}
	if r := c.response(t); !wire.IsCancelled(r) {
		t.Errorf("answer = %v, want the error that the handler returned", r.Error)
	}
}

// The end of input cancels with another cause.
func TestSDKEndOfInputCause(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "n", Version: "v"}, nil)
	started, cause := make(chan struct{}), make(chan error, 1)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == methodPing {
				close(started)
				<-ctx.Done()
				cause <- context.Cause(ctx)
			}
			return next(ctx, method, req)
		}
	})
	c := &sdkConn{in: make(chan jsonrpc.Message), out: make(chan jsonrpc.Message, 100)}
	ss, err := s.Connect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	<-started
	close(c.in)
	if err := <-cause; errors.Is(err, context.Canceled) {
		t.Errorf("cause = %v, want one that is not context.Canceled", err)
	}
	_ = ss.Wait() // the end of input
	if len(c.out) != 0 {
		t.Error("the SDK answers after the end of input: the drain in Read is no longer needed")
	}
}

// A request that is cancelled before it is handled is answered with this text.
func TestSDKCancelledInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			if method == methodInitialize {
				<-release // which is handled alone, so the next waits
			}
			return next(ctx, method, req)
		})
		c.send(t, sdkInitialize)
		c.send(t, sdkListTools)
		c.send(t, sdkCancel)
		synctest.Wait()
		close(release)
		c.response(t)
		if r := c.response(t); !wire.IsCancelled(r) {
			t.Errorf("answer = %v, want one that is known as cancelled", r.Error)
		}
	})
}

// Notifications are handled before the requests that follow them.
func TestSDKKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		hold := make(chan struct{})
		c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			if method == notifyInitialized {
				<-hold
			}
			mu.Lock()
			order = append(order, method)
			mu.Unlock()
			return next(ctx, method, req)
		})
		c.send(t, sdkInitialize)
		c.send(t, sdkInitialized)
		c.send(t, sdkListTools)
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if want := []string{methodInitialize, notifyInitialized, methodListTools}; !slices.Equal(order, want) {
			t.Errorf("order = %q, want %q", order, want)
		}
	})
}

// params._meta of resources/read reaches the handler; other unknown members of
// params do not.
func TestSDKKeepsMeta(t *testing.T) {
	got := make(chan map[string]any, 1)
	c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if method == methodReadResource {
			got <- requestMeta(req)
		}
		return next(ctx, method, req)
	})
	c.send(t, sdkInitialize)
	c.response(t)
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:y","cursor":"lost","_meta":{"cursor":5}}}`)
	if m := <-got; m["cursor"] != 5.0 {
		t.Errorf("_meta = %v, want the cursor 5", m)
	}
}

// What the SDK says in errors that mendError knows by their text.
func TestSDKErrorTexts(t *testing.T) {
	c := sdkServer(t, nil, pass)
	c.send(t, sdkListTools)
	if r := c.response(t); r.Error == nil || !strings.Contains(r.Error.Error(), wire.SDKUninitialized) {
		t.Errorf("a request before initialize = %v, want %q in it", r.Error, wire.SDKUninitialized)
	}
	c.send(t, sdkInitialize)
	c.response(t)
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`)
	if r := c.response(t); r.Error == nil || !strings.Contains(r.Error.Error(), wire.SDKTypeName) {
		t.Errorf("params of a wrong type = %v, want %q in it", r.Error, wire.SDKTypeName)
	}
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"nope"}`)
	e, ok := errors.AsType[*jsonrpc.Error](c.response(t).Error)
	if !ok || e.Code != fault.CodeMethodNotFound {
		t.Errorf("an unknown method = %v, want %d", e, fault.CodeMethodNotFound)
	}
}

// recorder notes the writes of a response one by one.
type recorder struct {
	*httptest.ResponseRecorder
	mu     sync.Mutex
	writes [][]byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, bytes.Clone(b))
	return r.ResponseRecorder.Write(b)
}

func sdkPost(h http.Handler, body string, header ...string) *recorder {
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

// Over HTTP an event is one Write, errors start with their code, refusals are
// plain text, and a stateless handler may stand beside a stateful one.
func TestSDKOverHTTP(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "n", Version: "v"}, nil)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == methodCallTool {
				return nil, fault.Cancelled()
			}
			return next(ctx, method, req)
		}
	})
	get := func(*http.Request) *mcp.Server { return s }
	stateful := mcp.NewStreamableHTTPHandler(get, nil)
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})

	w := sdkPost(stateful, sdkInitialize)
	id := w.Header().Get(headerSession)
	if id == "" {
		t.Fatalf("initialize gave no %s", headerSession)
	}
	sdkPost(stateful, sdkInitialized, headerSession, id)
	w = sdkPost(stateful, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, headerSession, id)
	if len(w.writes) != 1 || !bytes.HasSuffix(w.writes[0], []byte("\n\n")) || !bytes.Contains(w.writes[0], suspects[0]) {
		t.Errorf("an answer on a stream was written as %q, want one event with %s", w.writes, suspects[0])
	}
	if ct := w.Header().Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("a stream has the Content-Type %q", ct)
	}
	w = sdkPost(stateful, sdkListTools, headerSession, "x")
	if ct := w.Header().Get("Content-Type"); w.Code != 404 || !strings.HasPrefix(ct, "text/plain") {
		t.Errorf("an unknown session = %d %s, want 404 as plain text", w.Code, ct)
	}
	w = sdkPost(stateless, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		headerRevision, statelessRevision, "Mcp-Method", "server/discover")
	if !strings.Contains(w.Body.String(), statelessRevision) {
		t.Errorf("server/discover = %s, want %s in it", w.Body, statelessRevision)
	}
	w = sdkPost(stateful, sdkListTools, headerSession, id)
	if !strings.Contains(w.Body.String(), `"tools"`) {
		t.Errorf("the session after a stateless request = %s", w.Body)
	}
	for ss := range s.Sessions() {
		_ = ss.Close() // nothing runs in it
	}
}

// A notification with a context of its own goes to the GET stream; one with
// the context of an answered request is refused.
func TestSDKRoutesByContext(t *testing.T) {
	synctest.Test(t, testSDKRoutesByContext)
}

func testSDKRoutesByContext(t *testing.T) {
	var session *mcp.ServerSession
	var requestContext context.Context
	s := mcp.NewServer(&mcp.Implementation{Name: "n", Version: "v"}, nil)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == methodPing {
				session, _ = req.GetSession().(*mcp.ServerSession)
				requestContext = context.WithoutCancel(ctx)
			}
			return next(ctx, method, req)
		}
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	id := sdkPost(h, sdkInitialize).Header().Get(headerSession)
	sdkPost(h, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headerSession, id)
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set(headerSession, id)
	done := make(chan struct{})
	go func() { defer close(done); h.ServeHTTP(w, r) }()
	synctest.Wait()
	p := &mcp.ProgressNotificationParams{ProgressToken: "t", Progress: 1}
	if err := session.NotifyProgress(requestContext, p); err == nil {
		t.Error("the context of an answered request is accepted: Progress need not replace it")
	}
	if err := session.NotifyProgress(context.Background(), p); err != nil {
		t.Errorf("a fresh context = %v", err)
	}
	cancel()
	<-done
	if n := strings.Count(w.Body.String(), "notifications/progress"); n != 1 {
		t.Errorf("the stream has %d notifications, want 1:\n%s", n, w.Body)
	}
	_ = session.Close() // nothing runs in it
}
