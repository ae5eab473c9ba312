package cli

import (
	"context"
	"errors"
	"io"
	"time"
)

// clientEndTime is how long a server that starts waits for others after its client
// has closed standard input. A server has a second to end.
const clientEndTime = 600 * time.Millisecond

// errClientGone is the error of a stdio server whose client closed standard input while
// the server started.
var errClientGone = errors.New("the client has gone")

// whileClient returns a context for waiting for others while the server starts. On
// stdio, it ends with the cause errClientGone soon after the end of standard input.
// What the client has sent until then is read later. stop must be called.
// The input is read as long as ctx lasts, which is the context of the server.
func (v *invocation) whileClient(ctx context.Context) (waiting context.Context, stop func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	stop = func() { cancel(nil) }
	if !v.stdio || v.stdinIsTerminal() {
		return waiting, stop
	}
	in := readAhead(ctx, v.stdin)
	v.stdin = in
	go func() { // ends with waiting
		select {
		case <-in.ended:
		case <-waiting.Done():
			return
		}
		select {
		case <-time.After(clientEndTime):
			cancel(errClientGone)
		case <-waiting.Done():
		}
	}()
	return waiting, stop
}

// An earlyReader reads from a reader before it is asked, to notice its end.
type earlyReader struct {
	pieces chan []byte
	ended  chan struct{} // closed at the end of the reader
	err    error         // with which it ended
	rest   []byte        // of the last piece
}

// maxPieces is how many pieces an earlyReader reads ahead, of at most 4 KiB each.
const maxPieces = 256

// readAhead returns a reader of what r contains. It reads until r or ctx ends.
func readAhead(ctx context.Context, r io.Reader) *earlyReader {
	e := &earlyReader{pieces: make(chan []byte, maxPieces), ended: make(chan struct{})}
	go func() { // a read of r cannot be interrupted
		defer close(e.pieces)
		defer close(e.ended)
		for {
			piece := make([]byte, 4<<10)
			n, err := r.Read(piece)
			if n > 0 {
				select {
				case e.pieces <- piece[:n]:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				e.err = err
				return
			}
		}
	}()
	return e
}

// Read implements [io.Reader].
func (e *earlyReader) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		var ok bool
		if e.rest, ok = <-e.pieces; !ok {
			return 0, e.err
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
