package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

func hold(name string) map[string]any {
	return map[string]any{"name": "hold", "arguments": map[string]any{"name": name}}
}

// A cancelled request gets no answer, and its handler learns of it at once.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, transport := range []string{"stdio", "sse", "json"} {
			k := newKit(mcpserver.Options{Revision: mcpserver.Pinned})
			var s *mcptest.Session
			if transport == "stdio" {
				s = k.stdio(t)
			} else {
				s = k.http(t, mcpserver.HTTPOptions{DisableSSE: transport == "json"}).session(t)
			}
			s.Initialize("2025-03-26")
			id := s.Start("tools/call", hold("a"))
			<-k.started
			s.Cancel(id)
			if cause := <-k.causes; !errors.Is(cause, context.Canceled) {
				t.Errorf("%s: the handler's context ended because of %v, want context.Canceled", transport, cause)
			}
			synctest.Wait()
			if n := s.Pending(); n != 0 {
				t.Errorf("%s: %d answers after a cancellation, first %s", transport, n, s.Next().Raw)
			}
			if _, err := s.Tool("echo", nil); err != nil {
				t.Errorf("%s: afterwards = %v", transport, err)
			}
			// The id is free again.
			s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
			if m := s.Next(); string(m.ID) != fmt.Sprint(id) || m.Error != nil {
				t.Errorf("%s: ping with the id of the cancelled request = %s", transport, m.Raw)
			}
		}
	})
}

// The response of a cancelled POST ends without an event, or has no body.
func TestCancelledPost(t *testing.T) {
	for _, tc := range []struct {
		off    bool
		status int
	}{{false, 200}, {true, 202}} {
		k := newKit(mcpserver.Options{Revision: mcpserver.Pinned})
		site := k.http(t, mcpserver.HTTPOptions{DisableSSE: tc.off})
		s := site.session(t)
		s.Initialize("2025-03-26")
		type answer struct {
			status int
			body   string
		}
		got := make(chan answer)
		go func() {
			status, _, body := site.request(t, "POST",
				`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"hold"}}`,
				map[string]string{"Mcp-Session-Id": s.SessionID()})
			got <- answer{status, body}
		}()
		<-k.started
		s.Cancel(77)
		if a := <-got; a.status != tc.status || a.body != "" {
			t.Errorf("cancelled POST, streams off %t = %d %q, want %d and nothing", tc.off, a.status, a.body, tc.status)
		}
	}
}

// An answer in JSON cannot be resumed. So a client that ends the request before
// it is answered cancels its calls. A stream continues; see TestResume.
func TestDroppedJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, off := range []bool{true, false} { // without streams, or for a client that accepts only JSON
			k := newKit(mcpserver.Options{})
			site := k.http(t, mcpserver.HTTPOptions{DisableSSE: off})
			s := site.session(t)
			s.Initialize("2025-11-25")
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, site.url,
				strings.NewReader(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"hold","arguments":{"name":"a"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Mcp-Session-Id": s.SessionID(),
				"Mcp-Protocol-Version": "2025-11-25",
				"Content-Type":         "application/json", "Accept": "application/json"} {
				req.Header.Set(name, value)
			}
			time.AfterFunc(time.Second, cancel) // virtual
			if res, err := site.client.Do(req); err == nil {
				res.Body.Close()
				t.Fatalf("the call was answered with %s", res.Status)
			}
			synctest.Wait()
			select {
			case cause := <-k.causes:
				if !errors.Is(cause, context.Canceled) {
					t.Errorf("streams off %t: the handler's context ended because of %v, want context.Canceled", off,
						cause)
				}
			default:
				t.Errorf("streams off %t: the handler still runs", off)
				close(k.release)
			}
			if _, err := s.Tool("echo", nil); err != nil {
				t.Errorf("streams off %t: afterwards = %v", off, err)
			}
		}
	})
}

// In one write with the request, before it can have been dispatched.
func TestCancelInOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		s := k.stdio(t)
		s.Initialize("2025-03-26")
		call := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"hold"}}`
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`
		s.Send(call + "\n" + cancel)
		synctest.Wait()
		s.Send("[" + call + "," + cancel + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
		synctest.Wait()
		if n := s.Pending(); n != 1 {
			t.Fatalf("%d answers, want the batch's", n)
		}
		if got, want := s.Next().Raw, `[{"jsonrpc":"2.0","id":2,"result":{}}]`; got != want {
			t.Errorf("batch = %s, want %s", got, want)
		}
	})
}

// initialize cannot be cancelled, and neither can what does not exist.
func TestCancelNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKit(mcpserver.Options{}).stdio(t)
		s.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		if m := s.Next(); m.Error != nil || string(m.ID) != "0" {
			t.Errorf("initialize = %s, want a result", m.Raw)
		}
		s.Notify("notifications/initialized", nil)
		for _, params := range []string{`{"requestId":999}`, `{}`, `{"requestId":null}`, `{"requestId":{"a":1}}`,
			`{"requestId":1.5}`, `[1]`, `"x"`} {
			s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)
		}
		s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		synctest.Wait()
		if n := s.Pending(); n != 0 {
			t.Errorf("%d answers to cancellations of nothing", n)
		}
		if _, err := s.Tool("echo", nil); err != nil {
			t.Errorf("afterwards = %v", err)
		}
	})
}

// A request's id belongs to its session: another cannot cancel it.
func TestCancelFromAnotherSession(t *testing.T) {
	k := newKit(mcpserver.Options{})
	site := k.http(t, mcpserver.HTTPOptions{})
	a, b := site.session(t), site.session(t)
	a.Initialize("2025-03-26")
	b.Initialize("2025-03-26")
	id := a.Start("tools/call", hold("a"))
	<-k.started
	b.Cancel(id)
	close(k.release)
	if text, err := a.ToolText(a.Wait(id)); err != nil || !strings.Contains(text, "held") {
		t.Errorf("hold = %q, %v", text, err)
	}
}
