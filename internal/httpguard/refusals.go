package httpguard

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// Refused requests are logged at most maxLogged times in logTime.
const (
	maxLogged = 20
	logTime   = time.Minute
)

// noted has what is logged about requests that handlers answer with a status
// that means that the client is not set up for this server.
var noted = map[int]string{
	http.StatusMethodNotAllowed:      "this method is not allowed at this path",
	http.StatusNotAcceptable:         "the client does not accept what is served at this path",
	http.StatusRequestEntityTooLarge: "the body is too large",
	http.StatusUnsupportedMediaType:  "the body has another media type than this path takes",
	http.StatusServiceUnavailable:    "the server cannot serve this request now",
}

// refusals logs refused requests at a limited rate.
type refusals struct {
	mu      sync.Mutex
	since   time.Time // start of the period
	logged  int       // in the period
	omitted int       // since the last line
}

// log logs a refused request unless too many were.
func (f *refusals) log(log *slog.Logger, level slog.Level, r *http.Request, status int, reason string) {
	if !log.Enabled(r.Context(), level) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.since) >= logTime {
		f.since, f.logged = now, 0
	}
	if f.logged == maxLogged {
		f.omitted++
		return
	}
	f.logged++
	args := []any{"status", status, "method", sanitize.Short(r.Method, 20, 80), "path",
		sanitize.Short(r.URL.Path, 200, 800), "reason", reason}
	if f.omitted > 0 {
		args = append(args, "not logged before", f.omitted)
	}
	f.omitted = 0
	log.Log(context.WithoutCancel(r.Context()), level, "refused a request", args...)
}

// An answer is a response whose status is remembered.
type answer struct {
	http.ResponseWriter
	status int // 0 before the header is written, or for 200 that was not set
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
