package httpguard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// A handler gets the context that Authenticate returned. Open routes are served
// without it.
func TestCaller(t *testing.T) {
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Context().Value(caller{})) })
	o := authenticate(httpguard.Options{Token: "s3cret", Routes: []httpguard.Route{
		{Path: "/closed", Handler: who}, {Path: "/open", Handler: who, Open: true}}})
	for path, want := range map[string]string{"/closed": "s3cret", "/open": "<nil>"} {
		r := newRequest("GET", path)
		r.Header.Set("Authorization", "Bearer s3cret")
		if w := answer(o, r); w.Code != 200 || w.Body.String() != want {
			t.Errorf("GET %s = %d %s, want 200 %s", path, w.Code, w.Body, want)
		}
	}
}

// A refusal of Authenticate is written as it is, with its header, by the function of
// the route.
func TestRefusalsOfAuthenticate(t *testing.T) {
	for _, want := range []httpguard.Refusal{
		{Reason: httpguard.NoToken, Status: 401, Message: "a"},
		{Reason: httpguard.NoToken, Status: 401, Message: "b", Header: http.Header{"Www-Authenticate": {challenge}}},
		{Reason: httpguard.NoRight, Status: 403, Message: "c",
			Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope"`}}},
		{Reason: httpguard.Overloaded, Status: 429, Message: "d", Header: http.Header{"Retry-After": {"7"}}},
		{Reason: httpguard.Unavailable, Status: 503, Message: "e", Header: http.Header{"Retry-After": {"1"}}},
	} {
		o := httpguard.Options{
			Authenticate: func(*http.Request) (context.Context, *httpguard.Refusal) { return nil, &want },
			Routes: []httpguard.Route{{Path: "/a", Handler: named("a"),
				Refuse: func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
					http.Error(w, fmt.Sprint(f.Reason, f.Message), f.Status)
				}}},
		}
		w := answer(o, newRequest("GET", "/a"))
		header := http.Header{"Www-Authenticate": {"Bearer"}}
		if want.Header != nil {
			header = want.Header
		}
		if got := strings.TrimSpace(w.Body.String()); w.Code != want.Status || got != fmt.Sprint(want.Reason, want.Message) {
			t.Errorf("the refusal %v is %d %s", want, w.Code, got)
		}
		for _, name := range []string{"Www-Authenticate", "Retry-After"} {
			if got := w.Header().Get(name); got != header.Get(name) {
				t.Errorf("the refusal %v has %s %q, want %q", want, name, got, header.Get(name))
			}
		}
	}
}

// A client without a token learns nothing: not which paths exist, and not whether its
// Host or Origin is allowed. One with a token is not told which paths exist.
func TestNothingWithoutToken(t *testing.T) {
	o := authenticate(httpguard.Options{Token: "s3cret", HostHint: "set hosts", OriginHint: "set origins",
		Routes: []httpguard.Route{{Path: "/a", Handler: named("a"), Methods: "GET"},
			{Path: "/b", Tree: true, Handler: named("b")}, {Path: "/c"}}})
	for _, path := range []string{"/", "/a", "/a/x", "/b/x", "/c", "/d", "*", "", "//a", "/healthz/x", "/.well-knownx"} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "TRACE"} {
			for _, header := range []string{"", "Host: evil.example", "Origin: https://evil.example",
				"Sec-Fetch-Site: cross-site"} {
				r := newRequest(method, "/")
				r.URL.Path = path
				name, value, _ := strings.Cut(header, ": ")
				if r.Header.Set(name, value); name == "Host" {
					r.Host = value
				}
				w := answer(o, r)
				if got := strings.TrimSpace(w.Body.String()); w.Code != 401 ||
					got != "a token is required, and this request has none or a wrong one" || len(w.Header()) != 3 {
					t.Errorf("%s %s with %q = %d %s with %v, want 401", method, path, header, w.Code, got, w.Header())
				}
			}
		}
		if path == "/a" || path == "/b/x" {
			continue
		}
		r := newRequest("GET", "/")
		r.URL.Path = path
		r.Header.Set("Authorization", "Bearer s3cret")
		if w := answer(o, r); w.Code != 404 || w.Body.String() != "nothing is served at this path\n" {
			t.Errorf("GET %s with the token = %d %s, want 404 without other paths", path, w.Code, w.Body)
		}
	}
}

// Pages of all origins may read a public route, without credentials, but a name that
// was pointed to this machine is refused.
func TestPublic(t *testing.T) {
	o := authenticate(httpguard.Options{Token: "s3cret", Routes: []httpguard.Route{{
		Path: "/.well-known/metadata", Tree: true, Public: true, Handler: named("metadata")}}})
	for _, tc := range []struct {
		method, path, host, origin, fetch, wants string
		status                                   int
		allowed                                  string // Access-Control-Allow-Origin
	}{
		{"GET", "/.well-known/metadata", "localhost", "", "", "", 200, ""},
		{"GET", "/.well-known/metadata/mcp", "localhost", "https://app.example", "cross-site", "", 200, "*"},
		{"HEAD", "/.well-known/metadata", "localhost", "null", "cross-site", "", 200, "*"},
		{"GET", "/.well-known/metadata", "localhost", "", "cross-site", "", 200, ""},
		{"OPTIONS", "/.well-known/metadata", "localhost", "https://app.example", "cross-site", "GET", 204, "*"},
		{"OPTIONS", "/.well-known/metadata", "localhost", "https://app.example", "cross-site", "", 403, "*"},
		{"POST", "/.well-known/metadata", "localhost", "https://app.example", "cross-site", "", 403, "*"},
		{"POST", "/.well-known/metadata", "localhost", "", "cross-site", "", 403, ""},
		{"GET", "/.well-known/metadata", "evil.example", "https://app.example", "cross-site", "", 403, ""},
		{"OPTIONS", "/.well-known/metadata", "evil.example", "https://app.example", "cross-site", "GET", 403, ""},
		{"GET", "/.well-known/other", "localhost", "https://app.example", "cross-site", "", 403, ""},
		{"GET", "/.well-known/other", "localhost", "", "", "", 404, ""},
	} {
		r := newRequest(tc.method, tc.path)
		r.Host = tc.host
		for name, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.fetch,
			"Access-Control-Request-Method": tc.wants} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := answer(o, r)
		h := w.Header()
		if got := h.Get("Access-Control-Allow-Origin"); w.Code != tc.status || got != tc.allowed ||
			h.Get("Access-Control-Allow-Credentials") != "" ||
			(tc.status == 204) != (h.Get("Access-Control-Allow-Methods") == "GET, HEAD") {
			t.Errorf("%+v: got %d with %v", tc, w.Code, h)
		}
	}
}

// When the context that Authenticate returned ends, handlers end: those that wait,
// those that read a file, and those whose client does not read.
func TestRightsEnd(t *testing.T) {
	over := errors.New("the rights have ended")
	const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, tc := range []struct {
		name  string
		h     http.HandlerFunc
		sent  string
		more  string        // sent after the end of the rights
		after time.Duration // from the end of the rights to that of the handler
		want  error
	}{
		{"stream", func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(context.Cause(r.Context()))
		}, get, "", 0, over},
		{"call", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			panic(context.Cause(r.Context()))
		}, post("/", 1) + "x", "", 0, over},
		{"file", func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, httpguard.LongBody(w, r))
			panic(err)
		}, post("/", 1000) + strings.Repeat("x", 500), "x", 0, context.Canceled},
		{"client that does not read", func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					panic(err)
				}
			}
		}, get, "", 5 * time.Second, os.ErrDeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
				rights, end := context.WithCancelCause(t.Context())
				ended := make(chan any, 1)
				o := way(httpguard.Options{Routes: everything(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { ended <- recover() }()
					tc.h(w, r)
				}))})
				o.Authenticate = func(r *http.Request) (context.Context, *httpguard.Refusal) {
					ctx, cancel := context.WithCancelCause(r.Context())
					context.AfterFunc(rights, func() { cancel(context.Cause(rights)) })
					return ctx, nil
				}
				conn, err := serve(t, o).dial()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, tc.sent); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // virtual
				start := time.Now()
				end(over)
				synctest.Wait()
				if _, err := io.WriteString(conn, tc.more); err != nil {
					t.Fatal(err)
				}
				err, _ = (<-ended).(error)
				want := tc.after
				if o.TLS != nil {
					want *= 2 // the connection is closed with a message
				}
				if took := time.Since(start); !errors.Is(err, tc.want) || took != want {
					t.Errorf("the handler ended with %v after %v, want %v after %v", err, took, tc.want, want)
				}
			})
		})
	}
}

// A response that takes long after the end of the rights does not break the next one on
// its connection.
func TestConnectionAfterRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := httpguard.Options{Routes: everything(wait(time.Hour))}
		o.Authenticate = func(r *http.Request) (context.Context, *httpguard.Refusal) {
			ctx, cancel := context.WithCancelCause(r.Context())
			time.AfterFunc(time.Minute, func() { cancel(errors.New("over")) })
			return ctx, nil
		}
		conn, err := serve(t, o).dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for range 3 {
			start := time.Now()
			status, body := talk(conn, in, post("/", 1)+"x")
			if took := time.Since(start); status != 503 || body != "over\n" || took != time.Minute {
				t.Fatalf("answered %d %q after %v, want 503 after a minute", status, body, took)
			}
			time.Sleep(time.Minute) // virtual
		}
	})
}
