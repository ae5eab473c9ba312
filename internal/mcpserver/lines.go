package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds one message on stdio, in bytes.
const maxLine = 16 << 20

var errLineTooLong = errors.New("line too long")

// A line is one line of input that is not blank, or why there is none.
type line struct {
	data []byte
	err  error // errLineTooLong is followed by more lines, others are not
}

// readLines sends the lines of r until r ends or done is closed.
func readLines(r io.Reader, lines chan<- line, done <-chan struct{}) {
	br := bufio.NewReaderSize(r, 64<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\uFEFF" {
		_, _ = br.Discard(3) // what PowerShell puts before piped text
	}
	for {
		data, err := readLine(br, maxLine)
		if err == nil && len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		select {
		case lines <- line{data, err}:
		case <-done:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
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
			return nil, errLineTooLong
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) > 0:
			return data, nil // a last line without its newline; the end comes next
		case err != nil:
			return nil, err
		default:
			return data, nil
		}
	}
}
