package httpguard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	bodyTime        = 30 * time.Second // for the body of a request that has passed the checks
	refusedBodyTime = 5 * time.Second  // for the body of any other request
	pauseTime       = 30 * time.Second // for each part of a [LongBody]
	longBodyTime    = time.Hour        // for all of a LongBody
	endTime         = 5 * time.Second  // for the response when the context that Authenticate returned has ended

	maxBodies  = 64 << 20        // maximum bytes of all bodies that [ReadBody] returned for running requests
	freeBody   = 16 << 10        // maximum bytes of a body that is not counted
	budgetTime = 5 * time.Second // how long a request waits for a part of maxBodies
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

// MaxDrained is how much of the body of a refused request is usually read with [Drain],
// in bytes.
const MaxDrained = 8 << 20

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

// LongBody returns the body of a request that may take longer than others, such
// as a file: up to an hour, with pauses of at most 30 seconds. When the context of
// the request has ended, the next read fails.
func LongBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return &longBody{ReadCloser: r.Body, conn: http.NewResponseController(w), end: time.Now().Add(longBodyTime),
		check: r.Context().Err}
}

// A longBody is a body whose deadline moves while it arrives.
type longBody struct {
	io.ReadCloser
	conn *http.ResponseController
	set  time.Time // when the deadline was set
	end  time.Time

	check func() error // returns an error if the request has ended
}

func (b *longBody) Read(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	if now := time.Now(); now.Sub(b.set) > time.Second {
		b.set = now
		deadline := now.Add(pauseTime)
		if deadline.After(b.end) {
			deadline = b.end
		}
		_ = b.conn.SetReadDeadline(deadline) // without a connection, there is nothing to wait for
	}
	return b.ReadCloser.Read(p)
}

// ErrBodies is the error of [ReadBody] for a body that exceeds the budget for all
// bodies. It is of kind Busy. The response should be 503 with a header Retry-After.
var ErrBodies = fmt.Errorf("the server is receiving too much at the same time, try again in a few seconds: %w",
	errkind.Busy)

// ReadBody returns the body of a request of a [Server], which may have at most
// limit bytes. The bodies of all running requests together take at most 64 MiB.
// Before it reads, ReadBody waits up to 5 seconds for others to end. Bodies of at most
// 16 KiB are not counted, so short requests are always read. The error is an
// [http.MaxBytesError], [ErrBodies], or that of reading.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	size := r.ContentLength // -1 if it is not known
	if size > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	counted := size < 0 || size > freeBody
	if size < 0 {
		size = limit
	}
	held, guarded := r.Context().Value(heldKey{}).(*held)
	if counted && guarded && !held.take(r.Context(), size) {
		return nil, ErrBodies
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if counted && guarded {
		held.release(size - int64(len(data)))
	}
	return data, err
}

// heldKey is the key of a request's *held in its context.
type heldKey struct{}

// held is the part of the budget for bodies that a request has taken.
type held struct {
	budget *semaphore.Weighted // of bytes
	bytes  int64
}

// take takes n bytes. It waits for them up to budgetTime, and returns false if they
// are not free by then.
func (h *held) take(ctx context.Context, n int64) bool {
	ctx, cancel := context.WithTimeout(ctx, budgetTime)
	defer cancel()
	if h.budget.Acquire(ctx, n) != nil {
		return false
	}
	h.bytes += n
	return true
}

// release returns n of the bytes.
func (h *held) release(n int64) {
	h.budget.Release(n)
	h.bytes -= n
}
