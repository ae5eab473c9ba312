package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxLine is the maximum length of a line on stdio without its newline, in bytes.
const maxLine = 16 << 20

// drainTime is how long the end of stdio waits for the answers to running
// requests. Together with closeTime it is less than a second.
const drainTime = 800 * time.Millisecond

// ServeStdio serves one client. It reads requests from in and writes answers to
// out, one JSON-RPC message on each line. It returns nil within a second after
// in or ctx ends. Requests that were read before are answered if the answers
// are ready in that time. Then the contexts of running handlers are cancelled.
//
// A read of in cannot be interrupted: after the end of ctx, one goroutine reads
// until in ends. Handlers that ignore their context may also outlive the call.
// Their results are not written.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newConn(s, "", 0) // lines are in order, so no request precedes notifications/initialized
	to := &lineWriter{out: out, conn: c, turn: make(chan struct{}, 1)}
	c.alone = to
	lines := make(chan line)
	go readLines(in, maxLine, lines, c.closed)
	for reading := true; reading; {
		select {
		case <-ctx.Done():
			reading = false
		case <-c.closed: // output is no longer read
			reading = false
		case l := <-lines:
			switch {
			case errors.Is(l.err, errTooLong):
				to.send(lineTooLong(), 0, true)
			case l.err != nil: // clients disconnect by closing the input
				reading = false
			default:
				c.receiveLine(ctx, l.data, to)
			}
		}
	}
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	c.drain(drain)
	c.end(context.Background())
	return nil
}

// lineTooLong returns the answer to a line of more than maxLine bytes.
func lineTooLong() json.RawMessage {
	return errorLine(codeInvalidRequest, fmt.Sprintf("invalid request: a message must not exceed %d bytes", maxLine))
}

// receiveLine handles the messages of a line.
func (c *conn) receiveLine(ctx context.Context, data []byte, to sink) {
	p := parse(data, c.server.opts.Revision.pinned())
	if p.batch && (p.modern || c.revisionInUse() >= unbatchedRevision) {
		p = payload{bad: []json.RawMessage{errorLine(codeInvalidRequest, "invalid request: "+noBatches)}}
	}
	c.deliver(ctx, c.take(p, nil, to, p.batch))
}

// A lineWriter is a sink that writes one message on each line.
type lineWriter struct {
	out  io.Writer
	conn *conn
	turn chan struct{} // contains a value while a goroutine writes
}

// send implements sink.
func (l *lineWriter) send(data []byte, _ int64, _ bool) { l.notify(data) }

// end implements sink.
func (l *lineWriter) end() {}

// notify implements sink. After the end of the connection it drops messages,
// including those that wait for their turn.
func (l *lineWriter) notify(data []byte) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.conn.closed:
		return
	}
	select {
	case <-l.conn.closed:
		return
	default:
	}
	if _, err := l.out.Write(append(data, '\n')); err != nil {
		_ = l.conn.Close() // returns nil
	}
}

// errTooLong reports that a line was skipped because of its length.
var errTooLong = errors.New("line too long")

// A line is one line of input that is not blank, or the reason why there is
// none.
type line struct {
	data []byte // including its newline, if it has one
	err  error  // errTooLong is followed by more lines, other errors are not
}

// readLines sends the lines of r, of at most limit bytes without the newline, until r ends, which
// is the error of the last line, or done is closed. It skips a byte order mark
// at the start.
func readLines(r io.Reader, limit int, lines chan<- line, done <-chan struct{}) {
	br := bufio.NewReaderSize(r, 64<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\uFEFF" {
		_, _ = br.Discard(3) // PowerShell adds it to piped text
	}
	for {
		data, err := readLine(br, limit)
		if err == nil && len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		select {
		case lines <- line{data, err}:
		case <-done:
			return
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return
		}
	}
}

// readLine returns the next line. A line of more than limit bytes before its newline
// is skipped and not stored.
func readLine(br *bufio.Reader, limit int) ([]byte, error) {
	var data []byte
	tooLong := false
	for {
		part, err := br.ReadSlice('\n')
		length := len(data) + len(bytes.TrimSuffix(part, []byte("\n")))
		if tooLong = tooLong || length > limit; tooLong {
			data = nil
		} else {
			data = append(data, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil && tooLong, errors.Is(err, io.EOF) && tooLong:
			return nil, errTooLong
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) > 0:
			return data, nil // a last line without a newline; the next call reports the end
		case err != nil:
			return nil, err
		default:
			return data, nil
		}
	}
}
