package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// modern adds to params what a request of 2026-07-28 carries.
func modern(params map[string]any) map[string]any {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "t", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	return params
}

func modernHeader(method, name string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

func request(t testing.TB, method string, params map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// lastEvent returns the data of a response, which is a stream or JSON.
func lastEvent(body string) string {
	for _, l := range strings.Split(body, "\n") {
		if data, ok := strings.CutPrefix(l, "data: "); ok {
			body = data
		}
	}
	return strings.TrimSpace(body)
}

// A client of 2026-07-28 needs no handshake, beside others on one endpoint.
func TestModern(t *testing.T) {
	k := newKit(mcpserver.Options{})
	site := k.http(t, mcpserver.HTTPOptions{})
	s := k.stdio(t)
	for _, tc := range []struct {
		method, name string
		params       map[string]any
		want         []string
	}{
		{"server/discover", "", map[string]any{}, []string{`"2026-07-28"`, `"2024-11-05"`,
			`"experimental":{"domain":{"id":"finance"`, `"resources":{}`, `"tools":{}`, `"cacheScope":"private"`}},
		{"tools/list", "", map[string]any{}, []string{`"resultType":"complete"`, `"ttlMs":0`,
			`"cacheScope":"private"`}},
		{"tools/call", "echo", map[string]any{"name": "echo"},
			[]string{`"content":[{"type":"text","text":"{\"name\":\"\"}"}]`, `"resultType":"complete"`,
				`"domain":{"id":"finance"`}},
		{"resources/list", "", map[string]any{}, []string{`"nextCursor":"100"`, `"resultType":"complete"`}},
		{"resources/read", "fess://finance/doc/d1/content", map[string]any{"uri": "fess://finance/doc/d1/content",
			"cursor": "1"},
			[]string{`"text":"second"`, `"nextCursor":"2"`, `"isLast":false`, `"ttlMs":0`, `"resultType":"complete"`}},
		{"resources/templates/list", "", map[string]any{}, []string{`"uriTemplate"`}},
	} {
		body := request(t, tc.method, modern(tc.params))
		s.Send(body)
		onStdio := s.Next().Raw
		status, _, onHTTP := site.request(t, http.MethodPost, body, modernHeader(tc.method, tc.name))
		if status != 200 {
			t.Errorf("%s = %d %s, want 200", tc.method, status, onHTTP)
		}
		for where, got := range map[string]string{"stdio": onStdio, "http": lastEvent(onHTTP)} {
			for _, want := range append(tc.want, `"io.modelcontextprotocol/serverInfo":{"name":"knowhow"`) {
				if !strings.Contains(got, want) {
					t.Errorf("%s on %s = %s, want %s in it", tc.method, where, got, want)
				}
			}
		}
	}
	old := site.session(t)
	old.Initialize("2025-03-26")
	if _, err := old.Tool("echo", nil); err != nil {
		t.Errorf("an older session on the same endpoint = %v", err)
	}
}

// A client that probes a server on stdio may then choose an older revision.
func TestModernThenHandshake(t *testing.T) {
	s := newKit(mcpserver.Options{}).stdio(t)
	for _, method := range []string{"server/discover", "tools/list"} {
		if m := s.Call(method, modern(map[string]any{})); m.Error != nil {
			t.Fatalf("%s = %s", method, m.Raw)
		}
	}
	s.Initialize("2025-06-18")
	if _, err := s.Tool("echo", nil); err != nil {
		t.Errorf("a call after the handshake = %v", err)
	}
	if m := s.Call("tools/call", modern(map[string]any{"name": "echo"})); !strings.Contains(m.Raw, "resultType") {
		t.Errorf("a call that names 2026-07-28 = %s, want its result", m.Raw)
	}
	m := s.Call("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "t", "version": "1"}})
	if m.Error == nil || !strings.Contains(m.Error.Message, "duplicate") {
		t.Errorf("a second handshake = %s, want an error", m.Raw)
	}
}

func TestModernRefusals(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	for _, tc := range []struct {
		name, verb, method, mcpName string
		params                      map[string]any
		status                      int
		code                        string
	}{
		{"unknown method", "POST", "nope/x", "", map[string]any{}, 404, "-32601"},
		{"no prompts", "POST", "prompts/list", "", map[string]any{}, 404, "-32601"},
		{"no logging", "POST", "logging/setLevel", "", map[string]any{"level": "info"}, 404, "-32601"},
		{"no completions", "POST", "completion/complete", "", map[string]any{}, 404, "-32601"},
		{"no subscriptions", "POST", "resources/subscribe", "", map[string]any{"uri": "x:y"}, 404, "-32601"},
		{"initialize", "POST", "initialize", "", map[string]any{}, 404, "-32601"},
		{"wrong name", "POST", "tools/call", "other", map[string]any{"name": "echo"}, 400, "-32020"},
		{"unknown tool", "POST", "tools/call", "nosuch", map[string]any{"name": "nosuch"}, 400, "-32602"},
		{"unknown resource", "POST", "resources/read", "x:y", map[string]any{"uri": "x:y"}, 400, "-32602"},
		{"GET", "GET", "x", "", nil, 405, "-32600"},
		{"DELETE", "DELETE", "x", "", nil, 405, "-32600"},
	} {
		body := ""
		if tc.params != nil {
			body = request(t, tc.method, modern(tc.params))
		}
		status, header, got := site.request(t, tc.verb, body, modernHeader(tc.method, tc.mcpName))
		if status != tc.status || field(t, json.RawMessage(lastEvent(got)), "error", "code") != tc.code {
			t.Errorf("%s = %d %s, want %d with the code %s", tc.name, status, got, tc.status, tc.code)
		}
		if ct := header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("%s has the Content-Type %q, want application/json", tc.name, ct)
		}
	}
}

// A pinned server must look like one that has never heard of 2026-07-28.
func TestPinnedAgainstModern(t *testing.T) {
	for _, revision := range []mcpserver.Revision{mcpserver.Pinned, mcpserver.Cody} {
		k := newKit(mcpserver.Options{Revision: revision})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := k.stdio(t)
		for _, method := range []string{"server/discover", "tools/call", "resources/list"} {
			body := request(t, method, modern(map[string]any{"name": "echo"}))
			s.Send(body)
			if m := s.Next(); m.Error == nil || m.Error.Code != -32601 && m.Error.Code != -32600 {
				t.Errorf("%s: %s on stdio = %s, want -32601 or -32600", revision, method, m.Raw)
			}
			status, _, got := site.request(t, http.MethodPost, body, modernHeader(method, ""))
			if code := field(t, json.RawMessage(got), "error", "code"); status != 400 || code != "-32600" {
				t.Errorf("%s: %s on HTTP = %d %s, want 400 with -32600", revision, method, status, got)
			}
		}
		if got := field(t, s.Initialize("2026-07-28").Result, "protocolVersion"); got != `"`+string(revision)+`"` {
			t.Errorf("initialize after the probes = %s, want %s", got, revision)
		}
		s.Send(strings.ReplaceAll(request(t, "server/discover", modern(map[string]any{})), "/", `\/`))
		if m := s.Next(); m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("%s: a probe with escaped slashes = %s, want -32601", revision, m.Raw)
		}
		m := s.Call("tools/call", modern(map[string]any{"name": "echo"}))
		if m.Error != nil || strings.Contains(m.Raw, "resultType") {
			t.Errorf("a call that names 2026-07-28 = %s, want an older result", m.Raw)
		}
	}
}

// The client's end of a 2026-07-28 request is its cancellation.
func TestModernDisconnect(t *testing.T) {
	k := newKit(mcpserver.Options{})
	site := k.http(t, mcpserver.HTTPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, site.url, strings.NewReader(request(t, "tools/call",
		modern(hold("a")))))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range modernHeader("tools/call", "hold") {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	done := make(chan error)
	go func() {
		_, err := site.client.Do(req)
		done <- err
	}()
	<-k.started
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("request = %v, want context.Canceled", err)
	}
	<-k.causes // the handler's context has ended
}

// That of an older one is not: it continues.
func TestLegacyDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, site.url,
			strings.NewReader(request(t, "tools/call",
				hold("a"))))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", s.SessionID())
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := site.client.Do(req); err == nil {
				res.Body.Close() // never read
			}
		}()
		<-k.started
		cancel()
		<-done
		synctest.Wait()
		if n := len(k.causes); n != 0 {
			t.Errorf("the handler's context ended: %v", <-k.causes)
		}
		close(k.release)
	})
}
