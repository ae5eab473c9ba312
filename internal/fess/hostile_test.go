package fess_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// answers returns a handler that says the same to everything.
func answers(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// endless writes until the client has gone.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for _, err := w.Write([]byte(`{"data":"`)); err == nil; _, err = w.Write(bytes.Repeat([]byte("x"), 1<<16)) {
	}
}

// bomb is a small answer that unpacks to a large one.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 10<<20))
	_ = z.Close()
}

func TestHostileServers(t *testing.T) {
	const json = "application/json;charset=UTF-8"
	tests := []struct {
		name    string
		handler http.HandlerFunc
		kind    error
		status  int
		says    string
	}{
		{"endless", endless, errkind.Unavailable, 502, "too large"},
		{"gzip bomb", bomb, errkind.Unavailable, 502, "too large"},
		{"no type", answers(200, "", "{}"), errkind.Unavailable, 502, "other than JSON"},
		{"text", answers(200, "text/plain", "{}"), errkind.Unavailable, 502, "other than JSON"},
		{"html", answers(200, "text/html", "<html>secret.example</html>"), errkind.Unavailable, 502, "other than JSON"},
		{"script", answers(200, "application/javascript", "cb({})"), errkind.Unavailable, 502, "other than JSON"},
		{"html from a proxy", answers(502, "text/html", "<html>"), errkind.Unavailable, 502, "proxy"},
		{"proxy's limit", answers(504, "text/html", "<html>"), errkind.Timeout, 504, "proxy"},
		{"proxy's password", answers(401, "text/html", "<html>"), errkind.Unauthorized, 401, "credentials"},
		{"proxy's rule", answers(403, "text/html", "<html>"), errkind.Denied, 403, "forbids"},
		{"empty", answers(200, json, ""), errkind.Unavailable, 502, "not what its API sends"},
		{"cut", answers(200, json, `{"data":[`), errkind.Unavailable, 502, "not what its API sends"},
		{"two values", answers(200, json, `{} {}`), errkind.Unavailable, 502, "not what its API sends"},
		{"list", answers(200, json, `[]`), errkind.Unavailable, 502, "not what its API sends"},
		{"deep", answers(200, json, strings.Repeat("[", 100_000)), errkind.Unavailable, 502, "not what its API sends"},
		{"deep inside", answers(200, json, `{"record_count":`+strings.Repeat("[", 9_000)+strings.Repeat("]",
			9_000)+`,"data":5}`), errkind.Unavailable, 502, "not what its API sends"},
		{"rows that are none", answers(200, json, `{"record_count":1,"data":[1]}`), errkind.Unavailable, 502,
			"not what its API sends"},
		{"unexpected success", answers(202, json, `{}`), errkind.Unavailable, 502, "unexpected status (202)"},
		{"busy", answers(429, json, `{"error":"rate_limit_exceeded","message":"Too many requests."}`), errkind.Busy,
			429, "busy"},
		{"blocked", answers(403, json, `{"error":"ip_blocked","message":"Access denied."}`), errkind.Denied, 403,
			"forbids"},
		{"overloaded", answers(503, json, `{"response":{"status":9}}`), errkind.Unavailable, 503, "failed"},
		{"referer", answers(400, json, `{"message":"Referer is invalid."}`), errkind.Denied, 400,
			"api.search.accept.referers"},
		{"lying about its length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", json)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{}`))
		}, errkind.Unavailable, 502, "ended its answer early"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, test.handler, func(o *fess.Options) { o.MaxBody, o.AccessToken = 1<<20, "s3cret" })
			err := ask(t, c, "/api/v1/documents", nil)
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, test.kind) || r.Status != test.status || !strings.Contains(r.Message, test.says) {
				t.Errorf("Search() = %#v, want kind %v, status %d, saying %q", err, test.kind, test.status, test.says)
			}
			if err != nil && (strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "s3cret") ||
				strings.Contains(err.Error(), "secret.example")) {
				t.Errorf("error %q says too much", err)
			}
		})
	}
}

// TestBodyIsBounded checks that no more of an answer is read than the limit
// allows, give or take the buffers on the way.
func TestBodyIsBounded(t *testing.T) {
	written := make(chan int, 1)
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n, piece := 0, bytes.Repeat([]byte(" "), 1<<16)
		for n < 1<<30 {
			if _, err := w.Write(piece); err != nil {
				break
			}
			n += len(piece)
		}
		written <- n
	}, func(o *fess.Options) { o.MaxBody = 1 << 16 })
	if err := ask(t, c, "/api/v1/labels", nil); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Labels() = %v, want kind Unavailable", err)
	}
	if n := <-written; n > 64<<20 {
		t.Errorf("the server could write %d bytes, want about 65536", n)
	}
}

// TestRedirects checks that none is followed: it could lead anywhere.
func TestRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	for _, target := range []string{"", elsewhere.URL, "/error/notfound/"} {
		var requests atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			to := target
			if to == "" {
				to = r.URL.String() // for ever
			}
			http.Redirect(w, r, to, http.StatusFound)
		})
		err := ask(t, c, "/api/v1/labels", nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		if !ok || !strings.Contains(r.Message, "redirect (302)") || requests.Load() != 2 {
			t.Errorf("Labels() redirected to %q = %v after %d requests, want an error about the redirect after one request for each version", target, err, requests.Load())
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"60": time.Minute, "": 0, "-5": 0, "soon": 0, "99999999": time.Hour, "9999999999": time.Hour,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0, "99999999999999999999": 0,
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", header)
			answers(429, "application/json", "{}")(w, r)
		})
		r, ok := errors.AsType[*errkind.Remote](ask(t, c, "/api/v1/labels", nil))
		if !ok || r.Retry != want || !errkind.Retryable(r) {
			t.Errorf("Labels() with Retry-After %q = %+v, want a wait of %v", header, r, want)
		}
	}
}

// TestErrorCodes checks that only codes are passed on, not what else stands in
// their place.
func TestErrorCodes(t *testing.T) {
	for body, want := range map[string]string{
		`{"error_code:":"abc-1"}`:                           "abc-1",
		`{"error_code":"abc-2"}`:                            "abc-2",
		`{"error_code:":"http://db.internal/?pw=x"}`:        "",
		`{"error_code":["a"]}`:                              "",
		`{"error_code":"` + strings.Repeat("a", 100) + `"}`: "",
		`nonsense`: "",
	} {
		c := serve(t, answers(400, "application/json", body))
		r, ok := errors.AsType[*errkind.Remote](ask(t, c, "/api/v1/labels", nil))
		if !ok || r.Code != want {
			t.Errorf("Labels() answered with %s = %+v, want code %q", body, r, want)
		}
	}
}

// hold returns a handler that answers when the client has gone, after the start
// of an answer if begin is set.
func hold(begin bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if begin {
			answers(200, "application/json", `{"data":`)(w, r)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

func TestTimeout(t *testing.T) {
	for _, begin := range []bool{false, true} {
		c := serve(t, hold(begin), func(o *fess.Options) { o.Timeout = 20 * time.Millisecond })
		err := ask(t, c, "/api/v1/documents", nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		if !ok || !errors.Is(err, errkind.Timeout) || r.Status != 504 || !errkind.Retryable(err) {
			t.Errorf("Search() of a slow server (body begun: %v) = %v, want kind Timeout, status 504", begin, err)
		}
	}
}

// TestCallerGivesUp checks that the caller's context decides, and gets its own
// error back.
func TestCallerGivesUp(t *testing.T) {
	for _, begin := range []bool{false, true} {
		asked := make(chan struct{}, 1)
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			hold(begin)(w, r)
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		if _, err := c.Search(ctx, search.Query{Num: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("Search() cancelled in flight (body begun: %v) = %v, want context.Canceled", begin, err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := c.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Health() past its deadline (body begun: %v) = %v, want context.DeadlineExceeded", begin, err)
		}
		cancel()
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"http://" + address, "https://" + address, "http://nosuch.invalid"} {
		c, err := fess.New(fess.Options{BaseURL: base, AccessToken: "s3cret"})
		if err != nil {
			t.Fatal(err)
		}
		err = ask(t, c, "/api/v1/documents", nil)
		r, ok := errors.AsType[*errkind.Remote](err)
		if !ok || r.Status != 502 || !errors.Is(err, errkind.Unavailable) || r.Endpoint != "/api/v1/documents" {
			t.Errorf("Search() of %s = %v, want status 502", base, err)
		}
		for _, secret := range []string{"127.0.0.1", "nosuch.invalid", "s3cret"} {
			if strings.Contains(fmt.Sprintf("%v %#v", err, r), secret) {
				t.Errorf("error %q gives away %q", err, secret)
			}
		}
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(fesstest.NewHandler(searchtest.Corpus(), fesstest.Options{}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	tests := []struct {
		name string
		o    fess.Options
		says string // "" where it works
	}{
		{"unknown authority", fess.Options{BaseURL: server.URL}, "certificate is not trusted"},
		{"known authority", fess.Options{BaseURL: server.URL, CAFile: ca}, ""},
		{"any", fess.Options{BaseURL: server.URL, InsecureSkipVerify: true}, ""},
		{"no TLS there", fess.Options{BaseURL: strings.Replace(plain.URL, "http:", "https:", 1)},
			"scheme of its address"},
	}
	for _, test := range tests {
		c, err := fess.New(test.o)
		if err != nil {
			t.Fatalf("%s: New() = %v", test.name, err)
		}
		err = ask(t, c, "/api/v1/labels", nil)
		if test.says == "" && err != nil || test.says != "" &&
			(err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: Labels() = %v, want %q", test.name, err, test.says)
		}
		c.Close()
	}
}

// TestConnectionsAreReused counts connections under a run of calls, failed ones
// among them.
func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(fesstest.NewHandler(searchtest.Corpus(), fesstest.Options{}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := fess.New(fess.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 20 {
		if _, err := c.Search(t.Context(), search.Query{Text: query.MustParse("budget"), Num: 100}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Search(t.Context(), search.Query{Text: query.MustParse("budget"), Num: 100,
			Facets: &search.Facets{Queries: []string{"(("}}}); !errors.Is(err, errkind.Invalid) {
			t.Fatalf("Search() of half a group = %v, want kind Invalid", err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("40 calls one after the other took %d connections, want 1", n)
	}
}

// TestForeignDocument checks that a server cannot pass one document off as
// another.
func TestForeignDocument(t *testing.T) {
	c := serve(t, answers(200, "application/json",
		`{"record_count":1,"query_time":5,"data":[{"doc_id":"other","content":"x"}]}`))
	if h, err := c.Find(t.Context(), "mine", nil); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Find() = %+v, %v, want kind NotFound", h, err)
	}
	if x, err := c.ReadText(t.Context(), "mine", nil, 0, 10); !errors.Is(err, errkind.NotFound) {
		t.Errorf("ReadText() = %+v, %v, want kind NotFound", x, err)
	}
}

// TestLogSaysNoSecrets reads a whole log at the finest level.
func TestLogSaysNoSecrets(t *testing.T) {
	var log bytes.Buffer
	server := fesstest.New(t, searchtest.Corpus(), fesstest.Options{Token: "s3cret", MaxPageSize: 10})
	c, err := fess.New(fess.Options{BaseURL: server.URL, AccessToken: "s3cret",
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Search(t.Context(), search.Query{Num: 30}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/api/v1/documents", "fewer hits on a page"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q does not say %q", &log, want)
		}
	}
	for _, secret := range []string{"s3cret", "127.0.0.1"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("log %q gives away %q", &log, secret)
		}
	}
}
