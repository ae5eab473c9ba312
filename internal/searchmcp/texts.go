package searchmcp

import (
	"container/list"
	"sync"
)

// minTexts is the minimum capacity of the cache, in bytes.
const minTexts = 32 << 20

// textCost is the approximate size of a cached text, in addition to its bytes.
const textCost = 512

// A cachedText is the text of a document that the service does not have,
// extracted from a copy or from the document at its URL.
type cachedText struct {
	id    string
	stamp string // of the document when it was read, by stampOf
	hash  string
	text  string
}

func (t *cachedText) cost() int64 { return int64(len(t.text)) + textCost }

// texts caches the most recently used texts, so that all chunks are cut from
// the same text. For each document it contains the newest text.
type texts struct {
	max int64 // bytes

	mu   sync.Mutex
	size int64
	byID map[string]*list.Element
	used list.List // of *cachedText, the most recently used one in front
}

func newTexts(max int64) *texts { return &texts{max: max, byID: map[string]*list.Element{}} }

// get returns the text of a document, or nil if it is not cached.
func (c *texts) get(id string) *cachedText {
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
	return e.Value.(*cachedText)
}

// put adds a text, replaces an older one of the same document, and drops the
// least recently used texts. A text that is larger than the cache is not added.
func (c *texts) put(t *cachedText) {
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
	t := c.used.Remove(e).(*cachedText)
	delete(c.byID, t.id)
	c.size -= t.cost()
}
