package cli_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// misdeeds are answers that no server should give, by name. Those that go on
// for long end when their client has gone. contentType is what a good answer
// would have.
var misdeeds = map[string]func(w http.ResponseWriter, r *http.Request, contentType string){
	// More than anybody wants.
	"endless": func(w http.ResponseWriter, _ *http.Request, contentType string) {
		pour(w, contentType, 1<<40)
	},
	"huge": func(w http.ResponseWriter, _ *http.Request, contentType string) {
		w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		pour(w, contentType, 100<<20)
	},
	"bomb": func(w http.ResponseWriter, _ *http.Request, contentType string) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for piece, n := make([]byte, 1<<20), 0; n < 1<<30; n += len(piece) {
			if _, err := z.Write(piece); err != nil {
				return
			}
			if z.Flush() != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
		_ = z.Close() // an error means that the client has gone
	},
	"deep": func(w http.ResponseWriter, _ *http.Request, contentType string) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprintf(w, `{"record_count":1,"data":%s`, strings.Repeat("[", 1<<20))
	},
	"headers": func(w http.ResponseWriter, _ *http.Request, _ string) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
		}
	},

	// Less, or too slowly.
	"drip": func(w http.ResponseWriter, r *http.Request, contentType string) {
		w.Header().Set("Content-Type", contentType)
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			_ = http.NewResponseController(w).Flush() // an error means that the client has gone
			select {
			case <-time.After(10 * time.Millisecond): // a pause is what this is about
			case <-r.Context().Done():
			}
		}
	},
	"hang": func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() },
	"cut": func(w http.ResponseWriter, _ *http.Request, contentType string) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"data":[`)
	},
	"reset": func(w http.ResponseWriter, _ *http.Request, _ string) { hijack(w, "") },
	"garbage": func(w http.ResponseWriter, _ *http.Request, _ string) {
		hijack(w, "SSH-2.0-OpenSSH_9.6 secret7.corp.example\r\n")
	},

	// Something else.
	"login": say(http.StatusOK, "text/html; charset=utf-8",
		`<html><form action="https://sso.secret7.corp.example/">hunter2 password</form></html>`),
	"image": say(http.StatusOK, "image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
	"list":  say(http.StatusOK, "application/json", `[{"doc_id":"x"}]`),
	"shape": say(http.StatusOK, "application/json", `{"record_count":{"secret7":1},"data":{"doc_id":["x"]}}`),
	"rows":  say(http.StatusOK, "application/json", `{"record_count":2,"data":["a",5]}`),
	"trace": say(http.StatusInternalServerError, "application/json",
		`{"message":"java.lang.IllegalStateException: secret7.corp.example\n\tat org.codelibs.fess.Api.run(Api.java:5)","error_code":"x y"}`),
	"denied": say(http.StatusForbidden, "text/html", "<h1>403 secret7.corp.example</h1>"),
	"wants":  say(http.StatusUnauthorized, "text/html", "<h1>401 secret7.corp.example</h1>"),
	"limit": func(w http.ResponseWriter, r *http.Request, contentType string) {
		w.Header().Set("Retry-After", "7")
		say(http.StatusTooManyRequests, contentType, `{"message":"secret7"}`)(w, r, "")
	},

	// Elsewhere.
	"loop":  to("?again"),
	"away":  to("http://secret7.corp.example/admin"),
	"cloud": to("http://169.254.169.254/latest/meta-data/"),
	"file":  to("file:///etc/passwd"),
	"other": to("http://127.0.0.2/admin"),
}

// pour writes n bytes, or as many as the client takes.
func pour(w http.ResponseWriter, contentType string, n int64) {
	w.Header().Set("Content-Type", contentType)
	piece := bytes.Repeat([]byte(" "), 1<<18)
	for ; n > 0; n -= int64(len(piece)) {
		if _, err := w.Write(piece[:min(n, int64(len(piece)))]); err != nil {
			return
		}
	}
}

// hijack ends a connection after a text that is not HTTP.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text) // an error means that the client has gone
	conn.Close()
}

func say(status int, contentType, body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func to(target string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusFound)
	}
}

// orMisdeed gives the answer of misdeeds to those who search for "evilNAME" or
// want the stored copy of the document of that id, and that of next to all others.
func orMisdeed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contentType, asked := "application/json;charset=UTF-8", r.URL.Query().Get("q")
		if id := r.URL.Query().Get("docId"); id != "" {
			contentType, asked = "text/html; charset=utf-8", id
		}
		name, ok := strings.CutPrefix(asked, "evil")
		if misdeed := misdeeds[name]; ok && misdeed != nil {
			misdeed(w, r, contentType)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveMisdeeds serves each of misdeeds at its name on a loopback port until
// the script ends, and sets EVIL_URL.
func serveMisdeeds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: evilweb")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if misdeed := misdeeds[strings.TrimPrefix(r.URL.Path, "/")]; misdeed != nil {
			misdeed(w, r, "text/html; charset=utf-8")
			return
		}
		fmt.Fprint(w, "A page that is well.")
	}))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("EVIL_URL", server.URL)
}
