package audit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

var errRecord = fmt.Errorf("the call cannot be recorded: %w", errkind.Unavailable)

// handler returns next with records in *calls. If fail is true, they cannot be made.
func handler(next http.HandlerFunc, fail *bool, calls *[]string) http.Handler {
	return audit.Handler(next, audit.HandlerOptions{
		Begin: func(r *http.Request) *audit.Call {
			return &audit.Call{User: "ann", Path: r.URL.Path, Tool: r.Method}
		},
		Check: func() error { return nil },
		Record: func(c *audit.Call) error {
			if *fail {
				return errRecord
			}
			*calls = append(*calls, fmt.Sprint(c.User, " ", c.Tool, " ", c.Path, " ", c.Documents(), " ", c.Status))
			return nil
		},
		Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, errkind.Message(err))
		},
	})
}

func TestHandler(t *testing.T) {
	found := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/secret")
		audit.From(r.Context()).AddDocuments("d1", "d2")
	}
	for name, tt := range map[string]struct {
		next http.HandlerFunc
		call string
		body string
	}{
		"body": {func(w http.ResponseWriter, r *http.Request) {
			found(w, r)
			io.WriteString(w, "secret")
			io.WriteString(w, " text")
		}, "ann GET /fess 2 200", "secret text"},
		"status": {func(w http.ResponseWriter, r *http.Request) {
			found(w, r)
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "secret")
		}, "ann GET /fess 2 418", "secret"},
		"nothing": {func(w http.ResponseWriter, r *http.Request) { found(w, r) }, "ann GET /fess 2 200", ""},
		"early hints": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			found(w, r)
			w.WriteHeader(http.StatusNotFound)
		}, "ann GET /fess 2 404", ""},
		"flush": {func(w http.ResponseWriter, r *http.Request) {
			found(w, r)
			if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, errRecord) {
				t.Error(err)
			}
			audit.From(r.Context()).AddDocuments("too late")
			io.WriteString(w, "secret")
		}, "ann GET /fess 2 200", "secret"},
		"flusher": {func(w http.ResponseWriter, r *http.Request) {
			found(w, r)
			w.(http.Flusher).Flush()
			_, err := io.Copy(w, strings.NewReader("secret"))
			if err != nil && !errors.Is(err, errRecord) {
				t.Error(err)
			}
		}, "ann GET /fess 2 200", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			fail := false
			h := handler(tt.next, &fail, &calls)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Before", "kept")
				h.ServeHTTP(w, r)
			}))
			defer server.Close()
			get := func() (*http.Response, string) {
				resp, err := http.Get(server.URL + "/fess")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, string(body)
			}
			if _, body := get(); body != tt.body {
				t.Errorf("body = %q, want %q", body, tt.body)
			}
			if diff := cmp.Diff([]string{tt.call}, calls); diff != "" {
				t.Errorf("calls differ (-want +got):\n%s", diff)
			}
			fail = true
			resp, body := get()
			if resp.StatusCode != 503 || body != "the call cannot be recorded" ||
				strings.Contains(fmt.Sprint(resp.Header), "secret") || resp.Header.Get("X-Before") != "kept" {
				t.Errorf("the answer without a record is %d %v %q", resp.StatusCode, resp.Header, body)
			}
		})
	}
}

// A request is not handled while calls cannot be recorded.
func TestHandlerChecks(t *testing.T) {
	h := audit.Handler(http.NotFoundHandler(), audit.HandlerOptions{
		Check:  func() error { return errRecord },
		Refuse: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(503) },
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/kb/notes", nil))
	if w.Code != 503 {
		t.Errorf("status = %d, want 503", w.Code)
	}
}

// A handler that panics is recorded, once.
func TestHandlerPanics(t *testing.T) {
	for status, next := range map[int]http.HandlerFunc{
		500: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		202: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(202)
			panic(http.ErrAbortHandler)
		},
	} {
		var calls []string
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the panic was kept back")
				}
			}()
			handler(next, new(bool), &calls).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
		if diff := cmp.Diff([]string{fmt.Sprintf("ann GET / 0 %d", status)}, calls); diff != "" {
			t.Errorf("calls differ (-want +got):\n%s", diff)
		}
	}
}
