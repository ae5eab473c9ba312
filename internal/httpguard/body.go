package httpguard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"knowhow/internal/errkind"
)

const (
	bodyTime        = 30 * time.Second // for the body of a request that has passed the checks
	refusedBodyTime = 5 * time.Second  // for the body of any other request

	maxRefused = 8 << 20 // maximum bytes of a body that are read before its request is refused

	maxBodies = 64 << 20        // maximum bytes of all bodies that [ReadBody] returned for running requests
	freeBody  = 16 << 10        // maximum bytes of a body that is not counted
	roomTime  = 5 * time.Second // in which there must be room for a body
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

// ErrBodies is the error of [ReadBody] for a body for which there is no room. It
// is of kind Busy. The response should be 503 with a header Retry-After.
var ErrBodies = fmt.Errorf("the server is receiving too much at the same time, try again in a few seconds: %w", errkind.Busy)

// ReadBody returns the body of a request of a [Server], which may have at most
// limit bytes. The bodies of all running requests together take at most 64 MiB:
// ReadBody waits up to 5 seconds for room, before it reads. Bodies of at most
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

// room is the room for the bodies of running requests.
type room struct {
	mu    sync.Mutex
	free  int64         // bytes
	freed chan struct{} // closed when free grows; nil if nothing waits for it
}

// heldKey is the key of a request's *held in its context.
type heldKey struct{}

// held is the room that a request has taken.
type held struct {
	room  *room
	bytes int64
}

// take takes n bytes. It waits for them up to roomTime, and returns false if
// there is no room.
func (h *held) take(ctx context.Context, n int64) bool {
	late := time.NewTimer(roomTime)
	defer late.Stop()
	for {
		freed := h.try(n)
		if freed == nil {
			return true
		}
		select {
		case <-freed:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// try takes n bytes and returns nil, or returns a channel that is closed when
// there is more room.
func (h *held) try(n int64) (freed <-chan struct{}) {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	if n <= h.room.free {
		h.room.free -= n
		h.bytes += n
		return nil
	}
	if h.room.freed == nil {
		h.room.freed = make(chan struct{})
	}
	return h.room.freed
}

// release returns n of the bytes.
func (h *held) release(n int64) {
	if n <= 0 {
		return
	}
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.room.free += n
	h.bytes -= n
	if h.room.freed != nil {
		close(h.room.freed)
		h.room.freed = nil
	}
}
