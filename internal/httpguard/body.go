package httpguard

import (
	"io"
	"net/http"
	"time"
)

const (
	bodyTime        = 30 * time.Second // for the body of a request that passed the checks
	refusedBodyTime = 5 * time.Second  // for the body of one that has not, or not yet

	maxRefused = 8 << 20 // bytes that are read of a body before its request is refused
)

// limitBody bounds the time that the body of a request may take, from now on.
// The deadline is that of the connection; when net/http has read the body to its
// end it lifts it (connReader.startBackgroundRead), as it does with its own
// ReadTimeout. So it cuts off neither a long call nor a stream. It also holds
// where the handler leaves the body alone, which net/http then reads itself
// before the response. It reports whether there is a body and a connection.
func limitBody(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	return r.ContentLength != 0 && http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) == nil
}

// Drain reads the rest of a body whose request will be refused, limit bytes of
// it at most and for 5 seconds at most. Many clients look for a response only
// when they have sent the whole body; to them a connection that is closed before
// is broken, and the status is lost. Requests with the header Expect wait for
// the response first, so their bodies are not read.
func Drain(w http.ResponseWriter, r *http.Request, limit int64) {
	if r.Header.Get("Expect") == "" && limitBody(w, r, refusedBodyTime) {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // the refusal follows in any case
	}
}
