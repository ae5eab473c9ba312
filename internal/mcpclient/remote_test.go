package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

func TestStreamable(t *testing.T) {
	for _, f := range []*fakeHTTP{{}, {sse: true}, {sessions: true}, {sse: true, sessions: true},
		{sse: true, sessions: true, resume: true}} {
		t.Run(fmt.Sprintf("sse=%v sessions=%v resume=%v", f.sse, f.sessions, f.resume), func(t *testing.T) {
			s := f.start(t)
			p := newPool(t, Options{}, remoteSettings("web", mcpsettings.HTTP, s.URL+"/mcp"))
			for i := range 3 {
				want := fmt.Sprintf(`{"n":%d.0}`, i)
				if got := mustCall(t, p, "web", "echo", want); got != want {
					t.Errorf("echo gave %s, want %s", got, want)
				}
			}
			c, err := p.Catalog(t.Context(), "web")
			if err != nil || p.servers["web"].intro.Protocol != revisionLatest || len(c.Tools) != 1 {
				t.Errorf("Catalog() = %+v, %v", c, err)
			}
			if f.sse {
				refused := `{"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"this client offers no ` +
					`such method"}}`
				until(t, func() bool {
					f.mu.Lock()
					defer f.mu.Unlock()
					return strings.Contains(strings.Join(f.posts, ""), refused)
				})
			}
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v", err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			want := []string{"POST initialize", "POST notifications/initialized", "POST tools/call", "POST tools/list"}
			if f.sessions {
				want = append(want, "DELETE")
			}
			if !inOrder(f.seen, want...) {
				t.Errorf("the server saw %q, want %q in this order", f.seen, want)
			}
			for i, h := range f.headers {
				if h.Get("X-Key") != "sesame-open" {
					t.Errorf("%s came without the header of the settings", f.seen[i])
				}
				first := f.seen[i] == "POST initialize"
				if f.sessions != (h.Get("Mcp-Session-Id") == "session-1") && !first {
					t.Errorf("%s came with session %q", f.seen[i], h.Get("Mcp-Session-Id"))
				}
				early := f.seen[i] == "POST" // an answer during the handshake
				if got := h.Get("Mcp-Protocol-Version"); (got == revisionLatest) == first && !early {
					t.Errorf("%s came with revision %q", f.seen[i], got)
				}
			}
		})
	}
}

// TestSessionLoss has the server forget its sessions: calls that it refused are
// made again, once.
func TestSessionLoss(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		f := &fakeHTTP{sessions: true, lost: status}
		s := f.start(t)
		p := newPool(t, Options{}, remoteSettings("web", mcpsettings.HTTP, s.URL))
		mustCall(t, p, "web", "echo", "1")
		for range 3 {
			f.forget()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if got, err := p.Call(t.Context(), "web", "tools/call", toolCall("echo", "2")); err != nil ||
						string(got) != "2" {
						t.Errorf("after the loss of the session (status %d) echo gave %s, %v", status, got, err)
					}
				})
			}
			wg.Wait()
		}
		if got := f.count("POST initialize"); got != 4 {
			t.Errorf("the server was connected %d times, want 4", got)
		}
	}
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	statuses := map[string]int{"401": 401, "403": 403, "404": 404, "405": 405, "500": 500, "418": 418}
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		path := strings.TrimPrefix(r.URL.Path, "/")
		switch {
		case path == "html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>a portal")
		case path == "away":
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		case statuses[path] != 0:
			w.WriteHeader(statuses[path])
			fmt.Fprint(w, "no\x1b[31m, because key is sesame-open ", strings.Repeat("x", 1000))
		}
	}))
	defer s.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	refused := "connection refused"
	if runtime.GOOS == "windows" {
		refused = "connectex: "
	}
	tests := []struct {
		id, url, text string
		hits          int32
	}{
		{"401", s.URL + "/401", "401 Unauthorized; check the credentials", 1},
		{"403", s.URL + "/403", "403 Forbidden", 1},
		{"404", s.URL + "/404", "404 Not Found; check the URL", 2},
		{"405", s.URL + "/405", "405 Method Not Allowed", 2},
		{"418", s.URL + "/418", "418", 1},
		{"500", s.URL + "/500", "500", 1 + maxRetries},
		{"html", s.URL + "/html", `"text/html"`, 1},
		{"away", s.URL + "/away", `has moved to "http://127.0.0.1:1"`, 1},
		{"gone", gone.URL + "/?token=sesame-token", refused, 0},
	}
	var servers []mcpsettings.Server
	for _, tt := range tests {
		servers = append(servers, remoteSettings(tt.id, mcpsettings.HTTP, tt.url))
	}
	p := newPool(t, Options{}, servers...)
	for _, tt := range tests {
		hits.Store(0)
		_, err := p.Call(t.Context(), tt.id, "tools/call", toolCall("echo", "1"))
		if !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s gave %v, want %q", tt.id, err, tt.text)
		}
		if got := hits.Load(); got != tt.hits {
			t.Errorf("%s was asked %d times, want %d", tt.id, got, tt.hits)
		}
		if err != nil && (strings.Contains(err.Error(), "sesame") || strings.ContainsRune(err.Error(), '\x1b') ||
			len(err.Error()) > 1000) {
			t.Errorf("%s: the error contains a secret, a control character or too much: %v", tt.id, err)
		}
	}
}

// TestServerComesBack stops a server and starts it again at the same place. A
// call that finds nobody is not lost.
func TestServerComesBack(t *testing.T) {
	f := &fakeHTTP{sessions: true}
	s := f.start(t)
	p := newPool(t, Options{}, remoteSettings("web", mcpsettings.HTTP, s.URL))
	mustCall(t, p, "web", "echo", "1")
	address := s.Listener.Addr().String()
	s.CloseClientConnections()
	s.Close()
	_, err := p.Call(t.Context(), "web", "tools/call", toolCall("echo", "2"))
	if !errors.Is(err, errkind.Unavailable) {
		t.Errorf("a call of a server that is gone gave %v", err)
	}
	again := httptest.NewUnstartedServer(f)
	again.Listener.Close()
	if again.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address); err != nil {
		t.Skipf("the address is taken: %v", err)
	}
	again.Start()
	defer func() {
		again.CloseClientConnections()
		again.Close()
	}()
	if got := mustCall(t, p, "web", "echo", "3"); got != "3" {
		t.Errorf("echo gave %s", got)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHTTPCancelAndTimeout(t *testing.T) {
	t.Parallel()
	f := &fakeHTTP{}
	s := f.start(t)
	limited := remoteSettings("limited", mcpsettings.HTTP, s.URL)
	limited.Timeout = 3 * time.Second // enough to send a request on a busy machine
	p := newPool(t, Options{}, remoteSettings("web", mcpsettings.HTTP, s.URL), limited)
	mustCall(t, p, "web", "echo", "1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		until(t, func() bool { return f.count("POST tools/call") == 2 })
		cancel()
	}()
	if _, err := p.Call(ctx, "web", "tools/call", toolCall("slow", "{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gave %v, want context.Canceled", err)
	}
	if _, err := p.Call(t.Context(), "limited", "tools/call", toolCall("slow", "{}")); !errors.Is(err,
		errkind.Timeout) {
		t.Errorf("a call beyond its limit gave %v, want Timeout", err)
	}
	until(t, func() bool { return f.count("POST notifications/cancelled") == 2 })
	if got := f.count("POST tools/call"); got != 3 {
		t.Errorf("the server saw %d calls, want 3: none twice", got)
	}
}

// TestOwnStream has the server say by its own stream that its tools changed.
func TestOwnStream(t *testing.T) {
	t.Parallel()
	f := &fakeHTTP{sessions: true}
	s := f.start(t)
	changed := make(chan string, 1)
	p := newPool(t, Options{ToolsChanged: func(id string) { changed <- id }},
		remoteSettings("web", mcpsettings.HTTP, s.URL))
	first, err := p.Catalog(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	f.own <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	if got := <-changed; got != "web" {
		t.Errorf("ToolsChanged was called with %q", got)
	}
	if second, err := p.Catalog(t.Context(), "web"); err != nil || second == first {
		t.Errorf("after a change Catalog() = %p, %v, want another than %p", second, err, first)
	}
}

func TestModernHTTP(t *testing.T) {
	f := &fakeHTTP{modern: true, sse: true}
	s := f.start(t)
	p := newPool(t, Options{}, remoteSettings("web", mcpsettings.HTTP, s.URL))
	if got := mustCall(t, p, "web", "echö", `{"x":1}`); got != `{"x":1}` {
		t.Errorf("echo gave %s", got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, what := range f.seen {
		if what != "POST tools/call" {
			continue
		}
		h := f.headers[i]
		if h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "=?base64?ZWNow7Y=?=" ||
			h.Get("Mcp-Protocol-Version") != revisionModern {
			t.Errorf("the call came with headers %v", h)
		}
		if !strings.Contains(f.posts[i], `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
			t.Errorf("the call was %s, want the revision in _meta", f.posts[i])
		}
		return
	}
	t.Errorf("the server saw no call: %q", f.seen)
}

func TestOldSSE(t *testing.T) {
	for _, transport := range []string{mcpsettings.SSE, mcpsettings.HTTP} {
		s := fakeOldSSE(t, "/messages?session=7")
		p := newPool(t, Options{}, remoteSettings("old", transport, s.URL+"/sse"))
		params := `{"name":"echo","arguments":{"n":1.0}}`
		got, err := p.Call(t.Context(), "old", "tools/call", json.RawMessage(params))
		if err != nil || string(got) != params {
			t.Errorf("by %q echo gave %s, %v, want %s", transport, got, err, params)
		}
		_, err = p.Call(t.Context(), "old", "tools/call", json.RawMessage(`{"name":"bye"}`))
		if !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "ended the stream") {
			t.Errorf("a stream that ends gave %v", err)
		}
		if _, err := p.Call(t.Context(), "old", "tools/call", json.RawMessage(params)); err != nil {
			t.Errorf("after the stream's end echo gave %v", err)
		}
	}
	s := fakeOldSSE(t, "http://192.0.2.1/messages?session=7")
	p := newPool(t, Options{}, remoteSettings("old", mcpsettings.SSE, s.URL+"/sse"))
	if _, err := p.Call(t.Context(), "old", "ping", nil); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("an address on another host gave %v", err)
	}
}

// TestOldSSEHangs has a server that never says where to POST.
func TestOldSSEHangs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	p := newPool(t, Options{ConnectTimeout: 200 * time.Millisecond}, remoteSettings("old", mcpsettings.SSE, s.URL))
	if _, err := p.Call(t.Context(), "old", "ping", nil); err == nil ||
		!strings.Contains(err.Error(), "not ready within 200ms") {
		t.Errorf("a server without an address gave %v, want the limit", err)
	}
}

func TestEvents(t *testing.T) {
	text := "\uFEFFretry: 20\n: comment\n\nid: 1\nevent: message\ndata: a\ndata:b\n\nevent: lost\n\ndata\n\nid: 2\n\n" +
		"data: " + strings.Repeat("z", 40_000) + "\r\n\r\ndata: cut off"
	r := newEventReader(strings.NewReader(text))
	var got []string
	for {
		ev, err := r.next()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%s|%s|%.10s|%d", ev.name, ev.id, ev.data, len(ev.data)))
	}
	want := []string{"message|1|a\nb|3", "|||0", "|2||0", "||zzzzzzzzzz|40000"}
	if fmt.Sprint(got) != fmt.Sprint(want) || r.lastID != "2" || r.retry != 20*time.Millisecond {
		t.Errorf("events = %q (last id %q, retry %v), want %q", got, r.lastID, r.retry, want)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\nid: 1\r\nretry: 5\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := newEventReader(strings.NewReader(text))
		size := 0
		for {
			ev, err := r.next()
			if err != nil {
				break
			}
			size += len(ev.data)
		}
		if size > len(text) {
			t.Errorf("%d bytes of data came out of %d", size, len(text))
		}
	})
}
