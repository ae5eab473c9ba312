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
}
