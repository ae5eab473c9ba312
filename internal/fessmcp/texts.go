package fessmcp

import (
	"container/list"
	"sync"
)

// minTexts is how many bytes of texts are kept at least.
const minTexts = 32 << 20

// textCost is about what a kept text takes besides its bytes.
const textCost = 512

// A heldText is the text of a document that the service does not hold, as it
// was extracted from a copy or from the document's address.
type heldText struct {
	id    string
	stamp string // of the document when it was read, by stampOf
	hash  string
	text  string
}

func (t *heldText) cost() int64 { return int64(len(t.text)) + textCost }

// texts keeps the texts that were read last, so that the chunks of one are cut
// from one and the same. Of each document it keeps the newest.
type texts struct {
	max int64 // bytes

	mu   sync.Mutex
	size int64
	byID map[string]*list.Element
	used list.List // of *heldText, the one used last in front
}

func newTexts(max int64) *texts { return &texts{max: max, byID: map[string]*list.Element{}} }

// get returns the text of a document, nil where it is not kept.
func (c *texts) get(id string) *heldText {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*heldText)
}

// put keeps a text in the place of an older one of its document, and drops
// what has not been used for the longest time. A text that is larger than all
// there is room for is not kept.
func (c *texts) put(t *heldText) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[t.id]; e != nil {
		c.dropLocked(e)
	}
	if t.cost() > c.max {
		return
	}
	c.byID[t.id] = c.used.PushFront(t)
	c.size += t.cost()
	for c.size > c.max {
		c.dropLocked(c.used.Back())
	}
}

func (c *texts) dropLocked(e *list.Element) {
	t := c.used.Remove(e).(*heldText)
	delete(c.byID, t.id)
	c.size -= t.cost()
}
