package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
func sdkServer(t *testing.T, o *mcp.ServerOptions, h func(ctx context.Context, method string, req mcp.Request,
	next mcp.MethodHandler) (mcp.Result, error)) *sdkConn {
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
	c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request,
		next mcp.MethodHandler) (mcp.Result, error) {
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
		t.Error("the SDK answers after the end of input: waiting for answers at the end of input is no longer needed")
	}
}

// Notifications are handled before the requests that follow them.
func TestSDKKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		hold := make(chan struct{})
		c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request,
			next mcp.MethodHandler) (mcp.Result, error) {
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

// params._meta of resources/read reaches the handler, and so does what the transport
// puts into Extra, as it is.
func TestSDKKeepsMeta(t *testing.T) {
	got := make(chan map[string]any, 1)
	c := sdkServer(t, nil, func(ctx context.Context, method string, req mcp.Request,
		next mcp.MethodHandler) (mcp.Result, error) {
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

// What the SDK says in errors that sdkError knows by their text.
func TestSDKErrorTexts(t *testing.T) {
	c := sdkServer(t, nil, pass)
	c.send(t, sdkListTools)
	if r := c.response(t); r.Error == nil || !strings.Contains(r.Error.Error(), sdkUninitialized) {
		t.Errorf("a request before initialize = %v, want %q in it", r.Error, sdkUninitialized)
	}
	c.send(t, sdkInitialize)
	c.response(t)
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`)
	if r := c.response(t); r.Error == nil || !strings.Contains(r.Error.Error(), sdkTypeName) {
		t.Errorf("params of a wrong type = %v, want %q in it", r.Error, sdkTypeName)
	}
	c.send(t, `{"jsonrpc":"2.0","id":1,"method":"nope"}`)
	e, ok := errors.AsType[*jsonrpc.Error](c.response(t).Error)
	if !ok || e.Code != codeMethodNotFound {
		t.Errorf("an unknown method = %v, want %d", e, codeMethodNotFound)
	}
}
