package httpguard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// length returns a handler that answers with the length of the body, which may
// have limit bytes.
func length(limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := httpguard.ReadBody(r, limit)
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case tooLarge:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case errors.Is(err, httpguard.ErrBodies) && errors.Is(err, errkind.Busy):
			w.WriteHeader(http.StatusServiceUnavailable)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			fmt.Fprint(w, len(data))
		}
	})
}

// Bodies that do not end take a limited amount of memory. Short requests are
// served meanwhile, and long ones as soon as others have ended.
func TestUnfinishedBodies(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
		const size = 4 << 20
		s := serve(t, way(httpguard.Options{Routes: everything(length(size))}))
		var unfinished []net.Conn
		for range 16 { // 64 MiB
			conn, err := s.dial()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			unfinished = append(unfinished, conn)
			if _, err := io.WriteString(conn, post("/", size)+"x"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		start := time.Now()
		want := func(sent string, status int, body string, after time.Duration) {
			t.Helper()
			if got, text := s.exchange(t, sent); got != status || text != body || time.Since(start) != after {
				t.Errorf("answered %d %q after %v, want %d %q after %v", got, text, time.Since(start), status, body,
					after)
			}
		}
		want(post("/", 16<<10)+strings.Repeat("x", 16<<10), 200, "16384", 0)
		want(post("/", size+1, "Expect: 100-continue\r\n"), 413, "", 0)
		want(post("/", 16<<10+1)+strings.Repeat("x", 16<<10+1), 503, "", 5*time.Second)
		want("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 503, "",
			10*time.Second)
		time.Sleep(16 * time.Second) // virtual: 26 s, when the unfinished bodies have 4 s left
		want(post("/", size)+strings.Repeat("x", size), 200, fmt.Sprint(size), 30*time.Second)
		want("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200, "1",
			30*time.Second)
		for _, conn := range unfinished {
			conn.Close()
		}
		time.Sleep(time.Second) // virtual: net/http waits before it closes the connections
	})
}

// A short body whose length was not announced takes no more of the budget than its length
// while its request runs.
func TestRoomOfUnannouncedBodies(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
		release := make(chan struct{})
		s := serve(t, way(httpguard.Options{Routes: everything(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			if _, err := httpguard.ReadBody(r, 4<<20); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			<-release
		}))}))
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				status, _ := s.exchange(t, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "+
					"chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
				if status != 200 {
					t.Errorf("a call beside 99 others = %d, want 200", status)
				}
			})
		}
		time.Sleep(time.Minute) // virtual
		close(release)
		clients.Wait()
	})
}

// A body is read without a Server too.
func TestReadBodyAlone(t *testing.T) {
	for body, want := range map[string]int{"": 200, "1234": 200, "12345": 413} {
		w := newRecorder(length(4), body)
		if w.Code != want {
			t.Errorf("a body of %d bytes = %d, want %d", len(body), w.Code, want)
		}
	}
}

// Refused requests are logged, also those that a handler refuses, but not
// endlessly, and not with what a client writes.
func TestRefusalsInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := httpguard.Options{Token: "s3cret",
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Routes: everything(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			}))}
		g := httpguard.New(o)
		send := func(method, path, token string) {
			r := newRequest(method, "/")
			r.URL.Path = path
			r.Header.Set("Authorization", "Bearer "+token)
			g.ServeHTTP(discard{}, r)
		}
		send("GET", "/", "s3cret")
		send("GET", "/.well-known/x", "")
		if log.Len() > 0 {
			t.Errorf("the log is %s, want nothing for an answer and for metadata that does not exist", &log)
		}
		send("GET", "/a\u202e\x1b[31m", "gu3ss")
		send("PUT", "/b", "s3cret")
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "level=WARN") ||
			!strings.Contains(got, "status=401") ||
			!strings.Contains(got, "status=405 method=PUT path=/b") || strings.ContainsAny(got, "\u202e\x1b") ||
			strings.Contains(got, "gu3ss") {
			t.Errorf("the log is %q, want a line for 401 and for 405", got)
		}
		for range 1000 {
			send("GET", "/", "gu3ss")
		}
		if got := strings.Count(log.String(), "\n"); got != 20 {
			t.Errorf("the log has %d lines, want 20", got)
		}
		time.Sleep(time.Minute) // virtual
		send("GET", "/", "gu3ss")
		if got := log.String(); strings.Count(got, "\n") != 21 || !strings.Contains(got, `"not logged before"=982`) {
			t.Errorf("the log is %s, want one more line with the number of the others", got)
		}
	})
}

// A client that looks for metadata of this server learns without a token that
// there is none.
func TestWellKnown(t *testing.T) {
	withUsers(t, httpguard.Options{Token: "s3cret", Routes: everything(named("page"))}, testWellKnown)
}

func testWellKnown(t *testing.T, o httpguard.Options) {
	for path, want := range map[string]int{
		"/.well-known/oauth-protected-resource": 404, "/.well-known/oauth-protected-resource/mcp": 404,
		"/.well-known":  404,
		"/.well-knownx": 401,
	} {
		if w := answer(o, newRequest("GET", path)); w.Code != want {
			t.Errorf("GET %s = %d, want %d", path, w.Code, want)
		}
	}
	r := newRequest("GET", "/.well-known/x")
	r.Header.Set("Origin", "https://evil.example")
	if w := answer(o, r); w.Code != 403 {
		t.Errorf("GET /.well-known/x of a foreign page = %d, want 403", w.Code)
	}
	o.Routes = append(o.Routes, httpguard.Route{Path: "/.well-known/x", Open: true, Handler: named("x")})
	if w := answer(o, newRequest("GET", "/.well-known/x")); w.Body.String() != "x" {
		t.Errorf("GET of a route there = %d %s, want x", w.Code, w.Body)
	}
}
