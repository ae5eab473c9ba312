package mcpclient

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// An event is one server-sent event.
type event struct {
	name string // "" for a message event without a name
	id   string
	data []byte
}

// An eventReader reads a stream of server-sent events.
type eventReader struct {
	r      *bufio.Reader
	lastID string        // of the last event with an id
	retry  time.Duration // the delay that the server requests before a reconnection; 0 if there is none
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// next returns the next event with data, or with an id alone. An event that is
// cut off by the end of the stream is dropped, as the standard requires.
func (e *eventReader) next() (event, error) {
	var ev event
	seen, size, first := false, 0, true
	for {
		line, err := readLine(e.r)
		if err != nil {
			return event{}, err
		}
		if size += len(line); size > maxMessage {
			return event{}, errTooLong
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			line, first = bytes.TrimPrefix(line, []byte("\uFEFF")), false
		}
		if len(line) == 0 {
			if seen {
				ev.data = bytes.TrimSuffix(ev.data, []byte("\n"))
				return ev, nil
			}
			ev.name = ""
			continue
		}
		if e.field(&ev, line) {
			seen = true
		}
	}
}

// field reads one line of an event and reports whether the event must be
// returned because of it.
func (e *eventReader) field(ev *event, line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		ev.data = append(append(ev.data, value...), '\n')
		return true
	case "event":
		ev.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && len(value) <= 4<<10 {
			ev.id = string(value)
			e.lastID = ev.id
			return true
		}
	case "retry":
		if ms, err := strconv.ParseInt(string(value), 10, 32); err == nil && ms >= 0 {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return false
}
