package index

import (
	"container/list"
	"slices"
	"sync"
)

// A docSet is a sorted list of document numbers without repetitions. Sets are
// shared, so a docSet is never changed after it was made.
type docSet []int64

// intersect returns the documents in both sets.
func intersect(a, b docSet) docSet {
	if len(a) > len(b) {
		a, b = b, a
	}
	out := make(docSet, 0, len(a))
	if len(b) > 16*len(a) {
		for _, d := range a {
			i, ok := slices.BinarySearch(b, d)
			if ok {
				out = append(out, d)
			}
			b = b[i:]
		}
		return out
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			out = append(out, a[i])
			i, j = i+1, j+1
		}
	}
	return out
}

// union returns the documents in either set.
func union(a, b docSet) docSet {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	out := make(docSet, 0, len(a)+len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			out = append(out, a[i])
			i++
		case a[i] > b[j]:
			out = append(out, b[j])
			j++
		default:
			out = append(out, a[i])
			i, j = i+1, j+1
		}
	}
	return append(append(out, a[i:]...), b[j:]...)
}

// without returns the documents of a that are not in b.
func without(a, b docSet) docSet {
	out := make(docSet, 0, len(a))
	j := 0
	for _, d := range a {
		for j < len(b) && b[j] < d {
			j++
		}
		if j == len(b) || b[j] != d {
			out = append(out, d)
		}
	}
	return out
}

// contains reports whether a document is in the set.
func (s docSet) contains(doc int64) bool {
	_, ok := slices.BinarySearch(s, doc)
	return ok
}

// A posting is the set of documents that match a full-text expression.
type posting struct {
	docs   docSet
	chunks int // how many chunks match
}

// maxCached is how many document numbers a setCache holds.
const maxCached = 2 << 20

// A setCache caches postings of one generation of the index. The words of a
// query are evaluated again for every page, and common words occur in many
// queries. The zero setCache is ready for use. It is safe for concurrent use.
type setCache struct {
	mu         sync.Mutex
	generation string
	entries    map[string]*list.Element
	order      list.List // of *setEntry, last used first
	size       int       // document numbers held
}

type setEntry struct {
	key string
	p   posting
}

// get returns the cached posting of key in a generation.
func (c *setCache) get(generation, key string) (posting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil || c.generation != generation {
		return posting{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*setEntry).p, true
}

// put caches the posting of key. If the generation differs from that of the
// last put, all other postings are dropped.
func (c *setCache) put(generation, key string, p posting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation || c.entries == nil {
		c.generation, c.entries, c.size = generation, map[string]*list.Element{}, 0
		c.order.Init()
	}
	if c.entries[key] != nil || len(p.docs) > maxCached/4 {
		return
	}
	c.entries[key] = c.order.PushFront(&setEntry{key, p})
	c.size += len(p.docs) + len(key)
	for c.size > maxCached {
		e := c.order.Back()
		old := e.Value.(*setEntry)
		c.order.Remove(e)
		delete(c.entries, old.key)
		c.size -= len(old.p.docs) + len(old.key)
	}
}
