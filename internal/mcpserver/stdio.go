package mcpserver

import (
	"context"
	"fmt"
	"io"
	"time"

	"knowhow/internal/mcpserver/stream"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine bounds one message on stdio, in bytes.
const maxLine = 16 << 20

// How a stdio server ends: it has a second in all.
const (
	drainTime = 800 * time.Millisecond // for running requests to be answered
	closeTime = 100 * time.Millisecond // for handlers to return after that
)

// ServeStdio serves one client that writes requests to in and reads answers
// from out, one JSON-RPC message a line. It returns nil within a second of the
// end of in or of ctx. Requests that were read before get their answers if
// these are ready in that time; then the contexts of the handlers that still
// run end.
//
// A read of in cannot be interrupted: after ctx's end one goroutine stays in it
// until in ends. Handlers that ignore their context may also outlive the call;
// nothing they return is written.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ss := newSession(0) // lines come in order: nothing overtakes notifications/initialized
	t := &stdioTransport{in: in, out: out, handle: s.handle, end: ctx.Done(), pinned: s.opts.Revision.pinned()}
	sdk, err := s.sdk.Connect(withSession(context.WithoutCancel(ctx), ss), t, nil)
	if err != nil {
		return fmt.Errorf("serving stdio: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sdk.Wait() // the end of in or out: both are how clients leave
		ss.directs.Wait()
	}()
	select {
	case <-ended:
	case <-t.conn.drained:
		ss.stop()
		waitFor(ended, closeTime)
	}
	ss.stop()
	return t.conn.Close()
}

// waitFor waits for done to be closed, for d at most.
func waitFor(done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// stdioTransport connects the SDK to a pair of streams, once.
type stdioTransport struct {
	in     io.Reader
	out    io.Writer
	handle mcp.MethodHandler
	end    <-chan struct{} // closed when nothing more shall be read
	pinned bool
	conn   *stdioConn
}

// Connect implements [mcp.Transport].
func (t *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	t.conn = newStdioConn(t)
	t.conn.session = sessionFrom(ctx)
	go stream.ReadLines(t.in, maxLine, t.conn.lines, t.conn.closed)
	return t.conn, nil
}
