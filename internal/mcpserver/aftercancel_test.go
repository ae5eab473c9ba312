package mcpserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

// A ledger counts by name what was cancelled after its answer.
type ledger struct {
	mu    sync.Mutex
	count map[string]int
}

func (l *ledger) of(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[name]
}

// withLater adds a tool whose calls want to know of a cancellation after their
// answer. With hold set it answers only when its context has ended.
func withLater(k *kit) *ledger {
	l := &ledger{count: map[string]int{}}
	mcpserver.AddTool(k.server, mcpserver.Tool{Name: "later"},
		func(ctx context.Context, in struct {
			Name string `json:"name,omitempty"`
			Hold bool   `json:"hold,omitempty"`
		}) (any, error) {
			if in.Hold {
				k.started <- in.Name
				<-ctx.Done()
			}
			mcpserver.AfterCancel(context.WithoutCancel(ctx), func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.count[in.Name]++
			})
			return "going on", nil
		})
	return l
}

func later(name string, hold bool) map[string]any {
	return map[string]any{"name": "later", "arguments": map[string]any{"name": name, "hold": hold},
		"_meta": map[string]any{
			"knowhow/requestId": 9999}} // what a client says there counts for nothing
}

// over runs a test on both transports, in bubbles.
func over(t *testing.T, test func(t *testing.T, k *kit, open func() *mcptest.Session)) {
	for _, transport := range []string{"stdio", "http", "json"} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(mcpserver.Options{Revision: mcpserver.Pinned})
				var site *site
				if transport != "stdio" {
					site = k.http(t, mcpserver.HTTPOptions{DisableSSE: transport == "json"})
				}
				test(t, k, func() *mcptest.Session {
					s := (*mcptest.Session)(nil)
					if site == nil {
						s = k.stdio(t)
					} else {
						s = site.session(t)
					}
					s.Initialize("2025-03-26")
					return s
				})
			})
		})
	}
}

// Cancelling a request that was answered long since is reported once, to that
// request alone.
func TestAfterCancel(t *testing.T) {
	over(t, func(t *testing.T, k *kit, open func() *mcptest.Session) {
		l := withLater(k)
		s, other := open(), open()
		ids := map[string]int{}
		for _, name := range []string{"a", "b"} {
			ids[name] = s.Start("tools/call", later(name, false))
			if text, err := s.ToolText(s.Wait(ids[name])); err != nil || text != `"going on"` {
				t.Fatalf("later = %q, %v", text, err)
			}
		}
		other.Cancel(ids["a"])
		s.Cancel(12345)
		s.Notify("notifications/cancelled", map[string]any{"requestId": float64(ids["a"]) + 0.5})
		synctest.Wait()
		if n := l.of("a"); n != 0 {
			t.Errorf("cancelling other requests was reported %d times", n)
		}
		for range 2 {
			s.Cancel(ids["a"])
		}
		synctest.Wait()
		if a, b := l.of("a"), l.of("b"); a != 1 || b != 0 {
			t.Errorf("reported %d and %d times, want once for the first", a, b)
		}
		if n := s.Pending(); n != 0 {
			t.Errorf("%d answers to cancellations", n)
		}
		if _, err := s.Tool("echo", nil); err != nil {
			t.Errorf("afterwards = %v", err)
		}
	})
}

// A request that is cancelled before it is answered is reported as well, even if
// AfterCancel is called only then.
func TestAfterCancelBeforeTheAnswer(t *testing.T) {
	over(t, func(t *testing.T, k *kit, open func() *mcptest.Session) {
		l := withLater(k)
		s := open()
		id := s.Start("tools/call", later("a", true))
		<-k.started
		s.Cancel(id)
		synctest.Wait()
		if n := l.of("a"); n != 1 || s.Pending() != 0 {
			t.Errorf("reported %d times with %d answers, want once and none", n, s.Pending())
		}
	})
}

// A session remembers so many requests, and the ids of the newest ones.
func TestAfterCancelBound(t *testing.T) {
	over(t, func(t *testing.T, k *kit, open func() *mcptest.Session) {
		l := withLater(k)
		s := open()
		for i := range 300 {
			s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"tools/call","params":{"name":"later","arguments":{"name":"n%d"}}}`, i, i))
			s.Next()
		}
		for i := range 300 {
			s.Notify("notifications/cancelled", map[string]any{"requestId": fmt.Sprintf("r%d", i)})
		}
		synctest.Wait()
		total := 0
		for i := range 300 {
			total += l.of(fmt.Sprintf("n%d", i))
		}
		if total != 256 || l.of("n299") != 1 || l.of("n0") != 0 {
			t.Errorf("%d of 300 requests were reported, the first %d times, want 256 without the first", total,
				l.of("n0"))
		}
	})
}

func TestAfterCancelOutsideARequest(t *testing.T) {
	mcpserver.AfterCancel(context.Background(), func() { t.Error("called") })
}
