package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

const initializeBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

const frontToken = "s3cret"

type refusalCase struct {
	name, method, body string
	header             map[string]string
	status             int
	code               int // of the JSON-RPC error; 0 where the request is served
}

// refusalCases is what the front refuses, in its order, and what it lets pass.
func refusalCases() []refusalCase {
	auth := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": "Bearer " + frontToken}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	big := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", 1000) + `"}}`
	return []refusalCase{
		{"token before path", "POST", initializeBody, map[string]string{"Path": "/other"}, 401, -32600},
		{"other path", "POST", initializeBody, auth("Path", "/other"), 404, -32600},
		{"path below", "POST", initializeBody, auth("Path", "/mcp/x"), 404, -32600},
		{"no token", "POST", initializeBody, nil, 401, -32600},
		{"no token, garbage", "POST", "{bad", map[string]string{"Content-Type": "x/y"}, 401, -32600},
		{"no token before Host", "POST", initializeBody, map[string]string{"Host": "evil.example"}, 401, -32600},
		{"wrong token", "POST", initializeBody, map[string]string{"Authorization": "Bearer nope"}, 401, -32600},
		{"prefix of the token", "POST", initializeBody, map[string]string{"Authorization": "Bearer s3cre"}, 401,
			-32600},
		{"other scheme", "POST", initializeBody, map[string]string{"Authorization": "Basic " + frontToken}, 401,
			-32600},
		{"GET without token", "GET", "", nil, 401, -32600},
		{"DELETE without token", "DELETE", "", nil, 401, -32600},
		{"scheme in lower case", "POST", initializeBody, map[string]string{"Authorization": "bearer " + frontToken},
			200, 0},
		{"Host evil", "POST", initializeBody, auth("Host", "evil.example"), 403, -32600},
		{"Host evil with our port", "POST", initializeBody, auth("Host", "evil.example:7411"), 403, -32600},
		{"Host localhost", "POST", initializeBody, auth("Host", "localhost:7411"), 200, 0},
		{"Host IPv6", "POST", initializeBody, auth("Host", "[::1]:7411"), 200, 0},
		{"Host allowed", "POST", initializeBody, auth("Host", "knowhow.local:7411"), 200, 0},
		{"Origin evil", "POST", initializeBody, auth("Origin", "http://evil.example"), 403, -32600},
		{"Origin null", "POST", initializeBody, auth("Origin", "null"), 403, -32600},
		{"Origin like localhost", "POST", initializeBody, auth("Origin", "http://localhost.evil.example"), 403, -32600},
		{"Origin of the rebound Host", "POST", initializeBody,
			auth("Origin", "http://evil.example", "Host", "evil.example"),
			403, -32600},
		{"Origin of another port", "POST", initializeBody, auth("Origin", "http://localhost:6274"), 403, -32600},
		{"own Origin", "POST", initializeBody, auth("Origin", "http://localhost:6274", "Host", "127.0.0.1:6274"), 200,
			0},
		{"Origin allowed", "POST", initializeBody, auth("Origin", "https://app.example"), 200, 0},
		{"Origin before method", "PUT", initializeBody, auth("Origin", "http://evil.example"), 403, -32600},
		{"PUT", "PUT", initializeBody, auth(), 405, -32600},
		{"OPTIONS", "OPTIONS", "", auth(), 405, -32600},
		{"too large", "POST", big, auth(), 413, -32600},
		{"too large before type", "POST", big, auth("Content-Type", "text/plain"), 413, -32600},
		{"no type", "POST", initializeBody, auth("Content-Type", ""), 415, -32600},
		{"text", "POST", initializeBody, auth("Content-Type", "text/plain"), 415, -32600},
		{"with a charset", "POST", initializeBody, auth("Content-Type", "application/json; charset=utf-8"), 200, 0},
		{"Accept JSON alone", "POST", initializeBody, auth("Accept", "application/json"), 200, 0},
		{"Accept streams alone", "POST", initializeBody, auth("Accept", "text/event-stream"), 200, 0},
		{"Accept neither", "POST", initializeBody, auth("Accept", "text/html"), 400, -32600},
		{"GET for JSON", "GET", "", auth("Accept", "application/json"), 400, -32600},
		{"Accept anything", "POST", initializeBody, auth("Accept", "*/*"), 200, 0},
		{"no Accept", "POST", initializeBody, auth("Accept", ""), 200, 0},
		{"malformed", "POST", "{bad", auth(), 400, -32700},
		{"empty", "POST", "", auth(), 400, -32700},
		{"no JSON-RPC", "POST", `{"a":1}`, auth(), 400, -32600},
		{"id null", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, auth(), 400, -32600},
		{"id fraction", "POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, auth(), 400, -32600},
		{"empty batch", "POST", `[]`, auth(), 400, -32600},
		{"GET without session", "GET", "", auth(), 400, -32600},
		{"GET unknown session", "GET", "", auth("Mcp-Session-Id", "x"), 404, -32600},
		{"POST unknown session", "POST", ping, auth("Mcp-Session-Id", "x"), 404, -32600},
		{"DELETE without session", "DELETE", "", auth(), 400, -32600},
		{"DELETE unknown session", "DELETE", "", auth("Mcp-Session-Id", "x"), 404, -32600},
	}
}

// The front refuses what it must, in its order, with JSON-RPC errors.
func TestHTTPRefusals(t *testing.T) {
	k := newKit(mcpserver.Options{Revision: mcpserver.Pinned})
	site := k.guarded(t, mcpserver.HTTPOptions{MaxBody: 1000},
		httpguard.Options{Token: frontToken, AllowedOrigins: []string{"https://app.example"},
			AllowedHosts: []string{"knowhow.local"}})
	for _, tc := range refusalCases() {
		t.Run(tc.name, func(t *testing.T) {
			status, header, body := site.request(t, tc.method, tc.body, tc.header)
			if status != tc.status {
				t.Errorf("status = %d %s, want %d", status, body, tc.status)
			}
			if (status == 401) != (header.Get("WWW-Authenticate") == `Bearer realm="mcp"`) {
				t.Errorf("status %d has WWW-Authenticate %q", status, header.Get("WWW-Authenticate"))
			}
			if (status == 405) != (header.Get("Allow") == "GET, POST, DELETE") {
				t.Errorf("status %d has Allow %q", status, header.Get("Allow"))
			}
			if tc.code == 0 {
				return
			}
			if ct := header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("Content-Type = %q, want application/json", ct)
			}
			if code := field(t, json.RawMessage(body), "error", "code"); code != fmt.Sprint(tc.code) {
				t.Errorf("body = %s, want the code %d", body, tc.code)
			}
		})
	}
}

func TestHTTPWithoutStreams(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{DisableSSE: true})
	status, header, _ := site.request(t, "GET", "", nil)
	if allow := header.Get("Allow"); status != 405 || allow != "POST, DELETE" {
		t.Errorf("GET = %d with Allow %q, want 405 with POST, DELETE", status, allow)
	}
	status, header, body := site.request(t, "POST", initializeBody, map[string]string{"Accept": "application/json"})
	if ct := header.Get("Content-Type"); status != 200 || ct != "application/json" || !json.Valid([]byte(body)) {
		t.Errorf("initialize = %d %s %s, want JSON", status, ct, body)
	}
}

func TestHTTPBatches(t *testing.T) {
	const echo = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
	for _, revision := range []mcpserver.Revision{mcpserver.Pinned, mcpserver.Cody, mcpserver.Latest} {
		site := newKit(mcpserver.Options{Revision: revision}).http(t, mcpserver.HTTPOptions{DisableSSE: true})
		s := site.session(t)
		s.Initialize("2025-03-26")
		header := map[string]string{"Mcp-Session-Id": s.SessionID()}
		status, _, body := site.request(t, "POST", "["+echo+","+ping+"]", header)
		var answers []mcptest.Message
		if err := json.Unmarshal([]byte(body), &answers); err != nil || status != 200 || len(answers) != 2 ||
			answers[0].Error != nil || answers[1].Error != nil {
			t.Errorf("%s: batch = %d %s, want two results", revision, status, body)
		}
		status, _, body = site.request(t, "POST", `[{"jsonrpc":"2.0","method":"notifications/cancelled"}]`, header)
		if status != 202 || body != "" {
			t.Errorf("%s: batch of notifications = %d %q, want 202", revision, status, body)
		}
		if revision == mcpserver.Latest {
			header["Mcp-Protocol-Version"] = "2025-06-18"
			if status, _, body = site.request(t, "POST", "["+ping+"]", header); status != 400 {
				t.Errorf("batch in 2025-06-18 = %d %s, want 400", status, body)
			}
		}
	}
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	s := site.session(t)
	s.Initialize("2025-03-26")
	_, _, body := site.request(t, "POST", "["+echo+","+ping+"]", map[string]string{"Mcp-Session-Id": s.SessionID()})
	if n := strings.Count(body, `"result"`); n != 2 {
		t.Errorf("batch on a stream = %s, want two results", body)
	}
}

func TestHTTPDuplicateID(t *testing.T) {
	k := newKit(mcpserver.Options{})
	site := k.http(t, mcpserver.HTTPOptions{})
	s := site.session(t)
	s.Initialize("2025-03-26")
	id := s.Start("tools/call", hold("a"))
	<-k.started
	status, _, body := site.request(t, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id),
		map[string]string{"Mcp-Session-Id": s.SessionID()})
	if status != 400 || field(t, json.RawMessage(body), "error", "code") != "-32600" {
		t.Errorf("a second request with the id = %d %s, want 400 with -32600", status, body)
	}
	close(k.release)
	if _, err := s.ToolText(s.Wait(id)); err != nil {
		t.Errorf("the first request = %v", err)
	}
}

func TestSessions(t *testing.T) {
	k := newKit(mcpserver.Options{})
	site := k.http(t, mcpserver.HTTPOptions{MaxSessions: 2})
	a, b, c := site.session(t), site.session(t), site.session(t)
	a.Initialize("2025-03-26")
	b.Initialize("2025-03-26")
	for _, s := range []*mcptest.Session{a, b} {
		s.Listen()
	}
	wantError(t, c.Handshake("2025-03-26"), -31429, "retryable", "true")
	if got := c.Statuses(); got[0] != 503 {
		t.Errorf("a third session = %d, want 503", got[0])
	}
	id := a.SessionID()
	held := a.Start("tools/call", hold("a"))
	<-k.started
	if err := a.Close(); err != nil { // with a request running, which ends
		t.Errorf("DELETE = %v", err)
	}
	<-k.causes
	_ = held
	for _, method := range []string{"DELETE", "POST", "GET"} {
		if status, _, _ := site.request(t, method, ping, map[string]string{"Mcp-Session-Id": id}); status != 404 {
			t.Errorf("%s after DELETE = %d, want 404", method, status)
		}
	}
	c.Initialize("2025-03-26")
}

// A new client takes the place of the session that has been idle for the longest
// time. Sessions with a stream or a running request keep theirs.
func TestSessionsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{MaxSessions: 4})
		open := func() *mcptest.Session {
			time.Sleep(time.Second) // virtual: so that they differ in age
			s := site.session(t)
			s.Initialize("2025-03-26")
			return s
		}
		lives := func(s *mcptest.Session) bool {
			status, _, _ := site.request(t, "POST", ping, map[string]string{"Mcp-Session-Id": s.SessionID()})
			return status == 200
		}
		running, listening, first, second := open(), open(), open(), open()
		id := running.Start("tools/call", hold("a"))
		<-k.started
		listening.Listen()
		time.Sleep(time.Second)
		if _, err := first.Tool("echo", nil); err != nil { // now the other is the oldest
			t.Fatal(err)
		}
		third := open()
		if lives(second) {
			t.Error("the session that was idle for the longest time lives, want a new one in its place")
		}
		for name, s := range map[string]*mcptest.Session{"first": first, "third": third} {
			if !lives(s) {
				t.Errorf("the %s session is gone, want another in its place", name)
			}
		}
		first.Listen()
		third.Listen()
		if m := site.session(t).Handshake("2025-03-26"); m.Error == nil || m.Error.Code != -31429 {
			t.Errorf("initialize while all sessions are in use = %s, want the error -31429", m.Raw)
		}
		close(k.release)
		if _, err := running.ToolText(running.Wait(id)); err != nil {
			t.Errorf("the running request = %v", err)
		}
		open()
		if lives(running) {
			t.Error("the session whose request has ended lives, want a new one in its place")
		}
	})
}

// A thousand idle sessions do not prevent a new one.
func TestIdleSessionsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{MaxSessions: 50})
		for i := range 60 {
			if status, _, body := site.request(t, "POST", initializeBody, nil); status != 200 {
				t.Fatalf("initialize %d = %d %s, want 200", i, status, body)
			}
		}
	})
}

func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{MaxSessions: 1})
		s := site.session(t)
		s.Initialize("2025-03-26")
		time.Sleep(29 * time.Minute) // virtual, as are the others
		id := s.Start("tools/call", hold("a"))
		<-k.started
		time.Sleep(2 * time.Hour) // a request that runs keeps it
		close(k.release)
		if _, err := s.ToolText(s.Wait(id)); err != nil {
			t.Errorf("a long call = %v", err)
		}
		time.Sleep(31 * time.Minute)
		if m := s.Call("ping", nil); m.Error == nil {
			t.Error("a session idle for 31 minutes lives")
		}
		if got := s.Statuses(); got[len(got)-1] != 404 {
			t.Errorf("status = %d, want 404", got[len(got)-1])
		}
		other := site.session(t)
		other.Initialize("2025-03-26") // the place is free
		time.Sleep(31 * time.Minute)
		site.session(t).Initialize("2025-03-26") // also if the dead one was not used
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(mcpserver.Options{})
		site := k.http(t, mcpserver.HTTPOptions{})
		s := site.session(t)
		s.Initialize("2025-03-26")
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			req, err := http.NewRequestWithContext(t.Context(), method, site.url,
				strings.NewReader(request(t, "tools/call",
					hold("a"))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Mcp-Session-Id", s.SessionID())
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			start := time.Now()
			res, err := site.client.Do(req) // a POST has no header before the first comment
			if err != nil {
				t.Fatal(err)
			}
			comments := 0
			for sc := bufio.NewScanner(res.Body); comments < 3 && sc.Scan(); {
				if sc.Text() == ": keep-alive" {
					comments++
				}
			}
			if took := time.Since(start); took != 45*time.Second {
				t.Errorf("%s: 3 comments in %v, want 45s", method, took)
			}
			if method == http.MethodPost {
				close(k.release)
				rest := bufio.NewScanner(res.Body)
				answered := false
				for rest.Scan() {
					answered = answered || strings.Contains(rest.Text(), "held")
				}
				if !answered {
					t.Error("the answer did not follow the comments")
				}
			}
			res.Body.Close() // given up
		}
	})
}

func TestShutdown(t *testing.T) {
	for _, tc := range []struct {
		name, tool string
		release    time.Duration // 0 is never
		want       string        // in the answer
		within     time.Duration
	}{
		{"idle", "", 0, "", 0},
		{"answered in time", "hold", 300 * time.Millisecond, `"held`, 300 * time.Millisecond},
		{"cancelled", "hold", 0, "shutting down", 500 * time.Millisecond},
		{"stuck", "stuck", 5 * time.Second, "", 800 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(mcpserver.Options{})
				site := k.http(t, mcpserver.HTTPOptions{})
				s := site.session(t)
				s.Initialize("2025-03-26")
				s.Listen()
				var got chan string
				if tc.tool != "" {
					got = make(chan string, 1)
					go func() {
						_, _, body := site.request(t, "POST", request(t, "tools/call", map[string]any{"name": tc.tool}),
							map[string]string{"Mcp-Session-Id": s.SessionID()})
						got <- body
					}()
					<-k.started
				}
				if tc.release > 0 {
					time.AfterFunc(tc.release, func() { close(k.release) })
				}
				start := time.Now()
				if err := site.handler.Shutdown(context.Background()); err != nil {
					t.Errorf("Shutdown() = %v, want nil", err)
				}
				if took := time.Since(start); took != tc.within {
					t.Errorf("took %v, want %v", took, tc.within)
				}
				if tc.tool != "" {
					if body := <-got; !strings.Contains(body, tc.want) {
						t.Errorf("the running request got %q, want %q in it", body, tc.want)
					}
				}
				if status, _, _ := site.request(t, "POST",
					ping, map[string]string{"Mcp-Session-Id": s.SessionID()}); status != 503 {
					t.Errorf("a request after Shutdown = %d, want 503", status)
				}
				time.Sleep(10 * time.Second) // virtual: the stuck handler returns
			})
		})
	}
}

func TestRefuse(t *testing.T) {
	w := httptest.NewRecorder()
	mcpserver.Refuse(w, httptest.NewRequest("GET", "/", nil), httpguard.Refusal{Status: http.StatusForbidden,
		Message: `not "here" <b>`})
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not \"here\" <b>"}}`
	if got := w.Body.String(); w.Code != 403 || got != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("Refuse() wrote %d %s, want 403 %s", w.Code, got, want)
	}
}

// A refusal keeps the challenge that it brings, and one that may be retried has its own code.
func TestRefuseUsers(t *testing.T) {
	const challenge = `Bearer resource_metadata="https://knowhow.example/x"`
	for _, tc := range []struct {
		refusal         httpguard.Refusal
		challenge, code string
	}{
		{httpguard.Refusal{Reason: httpguard.NoToken, Status: 401}, `Bearer realm="mcp"`, "-32600"},
		{httpguard.Refusal{Reason: httpguard.NoToken, Status: 401,
			Header: http.Header{"Www-Authenticate": {challenge}}}, challenge, "-32600"},
		{httpguard.Refusal{Reason: httpguard.NoRight, Status: 403,
			Header: http.Header{"Www-Authenticate": {challenge}}}, challenge, "-32600"},
		{httpguard.Refusal{Reason: httpguard.Overloaded, Status: 429}, "", "-31429"},
		{httpguard.Refusal{Reason: httpguard.Unavailable, Status: 503}, "", "-31503"},
	} {
		tc.refusal.Message = "not now"
		g := httpguard.New(httpguard.Options{Refuse: mcpserver.Refuse, Routes: []httpguard.Route{{Path: "/"}},
			Authenticate: func(*http.Request) (context.Context, *httpguard.Refusal) { return nil, &tc.refusal }})
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
		want := `{"jsonrpc":"2.0","id":null,"error":{"code":` + tc.code + `,"message":"not now"}}`
		if got := w.Header().Get("WWW-Authenticate"); w.Code != tc.refusal.Status || got != tc.challenge ||
			w.Body.String() != want {
			t.Errorf("the refusal %v is %d %s with %q, want %s with %q", tc.refusal, w.Code, w.Body, got, want,
				tc.challenge)
		}
	}
}

// Streams and calls end when the rights of their caller end, which cancels the context
// of their requests.
func TestRightsEnd(t *testing.T) {
	for name, tc := range map[string]struct{ method, body, accept string }{
		"stream":                   {"GET", "", "text/event-stream"},
		"stream of a call":         {"POST", "", "application/json, text/event-stream"},
		"call answered in JSON":    {"POST", "", "application/json"},
		"stream of older revision": {"GET", "old", "text/event-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rights, end := context.WithCancel(context.Background())
				k := newKit(mcpserver.Options{})
				site := k.guarded(t, mcpserver.HTTPOptions{}, httpguard.Options{
					Authenticate: func(r *http.Request) (context.Context, *httpguard.Refusal) {
						ctx, cancel := context.WithCancel(r.Context())
						context.AfterFunc(rights, cancel)
						return ctx, nil
					}})
				header := map[string]string{"Accept": tc.accept}
				if tc.body == "" {
					_, h, _ := site.request(t, "POST", initializeBody, nil)
					header["Mcp-Session-Id"] = h.Get("Mcp-Session-Id")
				}
				body := ""
				if tc.method == "POST" {
					site.request(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header)
					body = request(t, "tools/call", hold("a"))
				}
				answered := make(chan string, 1)
				go func() {
					status, _, got := site.request(t, tc.method, body, header)
					answered <- fmt.Sprint(status, " ", got)
				}()
				time.Sleep(time.Second) // virtual
				start := time.Now()
				select {
				case got := <-answered:
					t.Fatalf("answered %s before the end of the rights", got)
				default:
				}
				end()
				got := <-answered
				if took := time.Since(start); took != 0 || strings.Contains(got, "result") {
					t.Errorf("answered %s after %v, want the end at once", got, took)
				}
			})
		})
	}
}
