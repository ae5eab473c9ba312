package mcpserver

import (
	"maps"
	"sync"
)

// Limits of an events, for all sessions together.
const (
	maxEventBytes = 8 << 20
	maxEvents     = 16 << 10
)

// An events keeps the latest events of all streams, so that a client whose
// connection broke can receive the events that it missed. The zero value is
// empty.
type events struct {
	mu      sync.Mutex // guards what follows
	bytes   int
	kept    []event // oldest first
	streams map[streamName]*stream
}

// A streamName is unique. The stream of GET has the name "" in its session.
type streamName struct{ session, name string }

type event struct {
	stream *stream
	number int
	data   []byte
}

// open registers a stream under its name.
func (e *events) open(s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams == nil {
		e.streams = map[streamName]*stream{}
	}
	e.streams[s.name] = s
}

// stream returns the stream with that name, or nil if there is none: it was
// never opened, its session was closed, or all its events were dropped.
func (e *events) stream(name streamName) *stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams[name]
}

// add adds the next event of a stream, and returns its index. data must not be
// modified afterwards.
func (e *events) add(s *stream, data []byte) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	number := s.next
	s.next++
	e.kept, e.bytes = append(e.kept, event{s, number, data}), e.bytes+len(data)
	for len(e.kept) > maxEvents || e.bytes > maxEventBytes {
		old := e.kept[0]
		e.kept[0] = event{} // for the garbage collector
		e.kept, e.bytes = e.kept[1:], e.bytes-len(old.data)
		if old.number+1 == old.stream.next && old.stream.name.name != "" {
			delete(e.streams, old.stream.name)
		}
	}
	return number - s.first
}

// restart drops the events of a stream and counts from 0.
func (e *events) restart(s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.first = s.next
}

// after returns the events of a stream after the one with that index. It
// returns false if one of them is missing.
func (e *events) after(s *stream, index int) ([][]byte, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var missed [][]byte
	for _, ev := range e.kept {
		if ev.stream == s && ev.number > s.first+index {
			missed = append(missed, ev.data)
		}
	}
	return missed, len(missed) == s.next-s.first-index-1
}

// close removes the streams of a session. Their events are dropped later, like
// old events.
func (e *events) close(session string) {
	e.remove(func(name streamName) bool { return name.session == session })
}

// closeAnswers removes all streams but those of GET, so that no answer is sent again.
func (e *events) closeAnswers() { e.remove(func(name streamName) bool { return name.name != "" }) }

// remove removes the streams with some names.
func (e *events) remove(named func(streamName) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.streams, func(name streamName, _ *stream) bool { return named(name) })
}
