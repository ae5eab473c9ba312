package fessbridge

import (
	"container/list"
	"sync"
)

// maxIDs is how many IDs a source remembers.
const maxIDs = 100_000

// ids are the IDs in Fess of the documents that were found last, by the IDs that
// callers got. An ID is no permission: Fess is asked with it for each caller.
type ids struct {
	max int

	mu   sync.Mutex
	byID map[string]*list.Element
	used list.List // of idPair, the newest in front
}

type idPair struct{ ours, fess string }

func newIDs(max int) *ids { return &ids{max: max, byID: map[string]*list.Element{}} }

// put adds a pair, or makes it the newest, and drops the oldest.
func (t *ids) put(ours, fess string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[ours]; e != nil {
		t.used.MoveToFront(e)
		return
	}
	t.byID[ours] = t.used.PushFront(idPair{ours, fess})
	if t.used.Len() > t.max {
		delete(t.byID, t.used.Remove(t.used.Back()).(idPair).ours)
	}
}

// get returns the ID in Fess.
func (t *ids) get(ours string) (fess string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[ours]
	if e == nil {
		return "", false
	}
	t.used.MoveToFront(e)
	return e.Value.(idPair).fess, true
}
