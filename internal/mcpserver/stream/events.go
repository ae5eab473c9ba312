package stream

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// What an Events keeps at most, of all sessions together.
const (
	maxBytes  = 8 << 20
	maxEvents = 16 << 10
)

// ErrNotKept says that events were asked for that are no longer kept, or never
// were.
var ErrNotKept = errors.New("the events of this stream are not kept")

// An Events keeps the latest events of all streams, 8 MiB of them at most, so
// that a client whose connection broke gets what it missed. It is an EventStore
// of the MCP SDK. The SDK's own keeps a record of every request until its
// session ends, and walks over all of them to make room. The zero value is
// empty. Its methods may be called by many goroutines at once; none looks at
// its context.
type Events struct {
	mu      sync.Mutex // guards what follows
	bytes   int
	events  []event // oldest first
	streams map[string]map[string]*counter
}

// A counter counts the events of a stream. That of GET has the name "".
type counter struct {
	session, name string
	first, next   int // the numbers of the event with the index 0, and of the next one
}

type event struct {
	stream *counter
	number int
	data   []byte
}

// Open begins a stream. It returns nil.
func (e *Events) Open(_ context.Context, session, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams == nil {
		e.streams = map[string]map[string]*counter{}
	}
	if e.streams[session] == nil {
		e.streams[session] = map[string]*counter{}
	}
	e.streams[session][stream] = &counter{session: session, name: stream}
	return nil
}

// Append adds an event to a stream, and keeps data, which must not change. It
// fails with [ErrNotKept] for a stream that is not open: it was never opened,
// its session was closed, or all its events have been forgotten.
func (e *Events) Append(_ context.Context, session, stream string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.streams[session][stream]
	if c == nil {
		return ErrNotKept
	}
	e.events, e.bytes = append(e.events, event{c, c.next, data}), e.bytes+len(data)
	c.next++
	for len(e.events) > maxEvents || e.bytes > maxBytes {
		old := e.events[0]
		e.events[0] = event{} // for the garbage collector
		e.events, e.bytes = e.events[1:], e.bytes-len(old.data)
		if last := old.number+1 == old.stream.next; last && old.stream.name != "" {
			delete(e.streams[old.stream.session], old.stream.name)
		}
	}
	return nil
}

// After returns the events of a stream after the one with that index, or
// [ErrNotKept] if one of them is missing. With an index below 0 the stream
// begins anew, without events and counted from 0: the SDK asks for that when a
// GET resumes nothing.
func (e *Events) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.streams[session][stream]
	if c != nil && index < 0 {
		c.first, index = c.next, -1
	}
	var missed [][]byte
	for _, ev := range e.events {
		if ev.stream == c && ev.number > c.first+index {
			missed = append(missed, ev.data)
		}
	}
	complete := c != nil && len(missed) == c.next-c.first-index-1
	return func(yield func([]byte, error) bool) {
		if !complete {
			yield(nil, ErrNotKept)
			return
		}
		for _, data := range missed {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed forgets the streams of a session. Their events make room for
// others with time. It returns nil.
func (e *Events) SessionClosed(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, session)
	return nil
}
