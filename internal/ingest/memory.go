package ingest

import (
	"io/fs"

	"knowhow/internal/document"
)

// A memory is what an Ingester knows of a label's files beyond what the index
// does, by path.
type memory map[string]seen

type outcome int

const (
	unread    outcome = iota // is skipped: not tried again while it looks the same
	noText                   // holds no text: likewise
	unsettled                // is in the index, but may have changed unseen: to be read again
)

// A seen is a file as it was when it was last looked at.
type seen struct {
	outcome outcome
	stamp   document.Stamp
	mode    fs.FileMode
	reason  Reason // for unread
	err     error  // for unread
	hash    string // of the text, for unsettled
}

func (g *Ingester) memory(label string) memory {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[label]
}

func (g *Ingester) remember(label string, m memory) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[label] = m
}

// forget drops the memory of all labels but those given.
func (g *Ingester) forget(keep map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for label := range g.seen {
		if !keep[label] {
			delete(g.seen, label)
		}
	}
	for label := range g.settled {
		if !keep[label] {
			delete(g.settled, label)
		}
	}
}

// A settledState is what a Sync that had nothing to do started from. As long as
// it is the same, the next one has nothing to do either, and need not compare
// each file with the index.
type settledState struct {
	src        document.Source
	walk       uint64 // sum of the walker
	generation string // of the sink
	res        *Result
}

// settle remembers a state that leaves nothing to do, and the result of the
// Sync that found this out. It does not if a file must be looked at again
// later, though it stays as it is.
func (g *Ingester) settle(s settledState, res *Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.seen[s.src.Label] {
		if m.outcome == unsettled {
			return
		}
	}
	s.res = res
	g.settled[s.src.Label] = s
}

// settledResult returns the result of a Sync from the same state, where that
// had nothing to do.
func (g *Ingester) settledResult(now settledState) (*Result, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.settled[now.src.Label]
	if !ok || s.src != now.src || s.walk != now.walk || s.generation != now.generation {
		return nil, false
	}
	res := *s.res
	return &res, true
}
