package httpguard

import (
	"io"
	"net/http"
	"time"
)

const (
	bodyTime        = 30 * time.Second // for the body of a request that has passed the checks
	refusedBodyTime = 5 * time.Second  // for the body of any other request

	maxRefused = 8 << 20 // maximum bytes of a body that are read before its request is refused
)

// limitBody limits the time in which the body of a request must arrive,
// beginning now. It sets the read deadline of the connection, which net/http
// removes when it has read the body to its end
// (connReader.startBackgroundRead), as it does with its own ReadTimeout. So the
// limit interrupts neither a long call nor a stream. It also applies if the
// handler does not read the body and net/http reads it before the response.
// limitBody reports whether there is a body and a connection.
func limitBody(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	return r.ContentLength != 0 && http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) == nil
}

// Drain reads the rest of the body of a request that will be refused, at most
// limit bytes and for at most 5 seconds. Many clients read the response only
// after they have sent the whole body. If the connection is closed before that,
// they report a broken connection and not the status. Clients that send the
// header Expect wait for the response first, so their bodies are not read.
func Drain(w http.ResponseWriter, r *http.Request, limit int64) {
	if r.Header.Get("Expect") == "" && limitBody(w, r, refusedBodyTime) {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // the request is refused in any case
	}
}
