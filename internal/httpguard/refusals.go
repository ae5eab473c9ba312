package httpguard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// Refused requests are logged at most maxLogged times in logTime, and so are failed
// handshakes.
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

// refusals logs refused requests or handshakes at a limited rate.
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
	omitted, ok := f.allow()
	if !ok {
		return
	}
	args := []any{"status", status, "method", sanitize.Short(r.Method, 20, 80), "path",
		sanitize.Short(r.URL.Path, 200, 800), "reason", reason}
	log.Log(context.WithoutCancel(r.Context()), level, "refused a request", append(args, omitted...)...)
}

// allow reports whether a line may be logged. omitted has the number of lines that were
// not since the last one, as attributes.
func (f *refusals) allow() (omitted []any, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.since) >= logTime {
		f.since, f.logged = now, 0
	}
	if f.logged == maxLogged {
		f.omitted++
		return nil, false
	}
	f.logged++
	if f.omitted > 0 {
		omitted = []any{"not logged before", f.omitted}
	}
	f.omitted = 0
	return omitted, true
}

// A serverLog receives the messages of an [http.Server], and logs failed handshakes at
// a limited rate: scanners and balancers cause many.
type serverLog struct {
	log        *slog.Logger
	handshakes refusals
}

// handshakeError begins the messages about handshakes.
const handshakeError = "http: TLS handshake error from "

func (l *serverLog) Write(p []byte) (int, error) {
	message := strings.TrimSuffix(string(p), "\n")
	text, failed := strings.CutPrefix(message, handshakeError)
	if !failed {
		l.log.Warn(message)
		return len(p), nil
	}
	client, reason, _ := strings.Cut(text, ": ")
	level := slog.LevelInfo
	if strings.Contains(reason, "remote error") || strings.HasPrefix(reason, "client sent an HTTP request") {
		level = slog.LevelWarn // the client does not trust the certificate, or has a wrong URL
	}
	if !l.log.Enabled(context.Background(), level) {
		return len(p), nil
	}
	if omitted, ok := l.handshakes.allow(); ok {
		l.log.Log(context.Background(), level, "a TLS handshake failed", append([]any{"client",
			sanitize.Short(client, 100, 400), "reason", sanitize.Short(reason, 200, 800)}, omitted...)...)
	}
	return len(p), nil
}

// An Answer is a response whose status is remembered.
type Answer struct {
	http.ResponseWriter
	Status int // 0 before the header is written, or for 200 that was not set
}

// WriteHeader implements [http.ResponseWriter].
func (a *Answer) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
