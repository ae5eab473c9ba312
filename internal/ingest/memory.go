package ingest

import (
	"io/fs"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// A memory is an Ingester's knowledge about a label's files, in addition to
// that of the index, by path.
type memory map[string]seen

type outcome int

const (
	unread    outcome = iota // skipped: not tried again until it changes
	unwanted                 // without text, empty or generated: likewise
	unsettled                // in the index, but may have changed without notice: to be read again
	partly                   // in the index, except for some parts
)

// A seen is the state of a file when it was last examined.
type seen struct {
	outcome outcome
	stamp   document.Stamp
	mode    fs.FileMode
	reason  Reason    // for unread and unwanted
	err     error     // for unread
	hash    string    // of the texts, for unsettled
	left    leftParts // for unsettled and partly
}

// A leftParts lists the parts that are left out of a file that is indexed.
type leftParts struct {
	counts  map[Reason]int
	named   []Skipped // the first maxLeftParts, and before others those that should be indexed
	skipped int       // how many should be indexed
}

func newLeftParts(parts []Skipped) leftParts {
	var l leftParts
	if len(parts) == 0 {
		return l
	}
	l.counts = map[Reason]int{}
	for _, named := range []bool{true, false} {
		for _, p := range parts {
			if (p.Err != nil) != named {
				continue
			}
			if l.counts[p.Reason]++; named {
				l.skipped++
			}
			if len(l.named) < maxLeftParts {
				l.named = append(l.named, p)
			}
		}
	}
	return l
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

// forget drops the memory of all labels except the given ones.
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

// A settledState is the initial state of a Sync that had nothing to do. While
// it is unchanged, the next Sync has nothing to do either, and does not have to
// compare each file with the index.
type settledState struct {
	src        document.Source
	walk       uint64 // sum of the walker, which depends on the rules of src
	generation string // of the sink
	res        *Result
}

// settle records a state in which there is nothing to do, and the result of the
// Sync that determined it. It records nothing if a file must be examined again
// later although it is unchanged.
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

// settledResult returns the result of an earlier Sync from the same state, if
// that had nothing to do.
func (g *Ingester) settledResult(now settledState) (*Result, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.settled[now.src.Label]
	if !ok || s.src.Path != now.src.Path || s.walk != now.walk || s.generation != now.generation {
		return nil, false
	}
	res := *s.res
	return &res, true
}
