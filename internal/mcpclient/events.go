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
	name string // "" where the server gave none: a message
	id   string
	data []byte
}

// An eventReader reads a stream of server-sent events.
type eventReader struct {
	r      *bufio.Reader
	lastID string        // of the last event that had one
	retry  time.Duration // how long the server wants us to wait before we come back; 0 if it did not say
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// next returns the next event with data, or with an id alone. An event that the
// stream's end cuts off is lost, as the standard wants it.
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

// field takes in one line of an event and reports whether it makes the event one
// that counts.
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
