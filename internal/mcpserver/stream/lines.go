// Package stream is what the transports of the MCP server need of plain
// streams, whatever they carry: lines of bounded length in, and events kept for
// clients that lose their connection.
package stream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong says that a line was skipped because of its length.
var ErrTooLong = errors.New("line too long")

// A Line is one line of input that is not blank, or why there is none.
type Line struct {
	Data []byte // with its newline, if it has one
	Err  error  // ErrTooLong is followed by more lines, others are not
}

// ReadLines sends the lines of r, of limit bytes at most, until r ends, which is
// sent as the last Line's error, or done is closed. A byte order mark at the
// start is left out.
func ReadLines(r io.Reader, limit int, lines chan<- Line, done <-chan struct{}) {
	br := bufio.NewReaderSize(r, 64<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\uFEFF" {
		_, _ = br.Discard(3) // what PowerShell puts before piped text
	}
	for {
		data, err := readLine(br, limit)
		if err == nil && len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		select {
		case lines <- Line{data, err}:
		case <-done:
			return
		}
		if err != nil && !errors.Is(err, ErrTooLong) {
			return
		}
	}
}

// readLine returns the next line. One of more than limit bytes is skipped to
// its end without being kept.
func readLine(br *bufio.Reader, limit int) ([]byte, error) {
	var data []byte
	tooLong := false
	for {
		part, err := br.ReadSlice('\n')
		if tooLong = tooLong || len(data)+len(part) > limit; tooLong {
			data = nil
		} else {
			data = append(data, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil && tooLong, errors.Is(err, io.EOF) && tooLong:
			return nil, ErrTooLong
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) > 0:
			return data, nil // a last line without its newline; the end comes next
		case err != nil:
			return nil, err
		default:
			return data, nil
		}
	}
}
