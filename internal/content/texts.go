package content

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// minTexts is the minimum capacity of the cache, in bytes.
const minTexts = 32 << 20

// textCost is the approximate size of a cached text, in addition to its bytes.
const textCost = 512

// A Text is the text of a document that the service does not have.
type Text struct {
	Body string
	Hash string // "sha256:" and the hex digits of the hash of Body

	id    string
	stamp string    // of the document when it was read
	read  time.Time // when reading began
}

// IsOf reports whether t is the text of a document as it is now.
func (t *Text) IsOf(h *search.Hit) bool { return t.id == h.ID && t.stamp == Stamp(h) }

func (t *Text) cost() int64 { return int64(len(t.Body)) + textCost }

// Stamp returns a hash of the metadata of a document that changes with its text.
func Stamp(h *search.Hit) string {
	return chunk.Hash(fmt.Sprintf("%q %v %v %d %q", h.URL, h.Timestamp, h.Modified, h.Size, h.Digest.Text))
}

// texts caches the most recently used texts, so that all chunks are cut from
// the same text. For each document it contains the newest text.
type texts struct {
	max int64 // bytes

	mu   sync.Mutex
	size int64
	byID map[string]*list.Element
	used list.List // of *Text, the most recently used one in front
}

func newTexts(max int64) *texts { return &texts{max: max, byID: map[string]*list.Element{}} }

// get returns the text of a document, or nil if it is not cached.
func (c *texts) get(id string) *Text {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*Text)
}

// put adds a text, replaces an older one of the same document, and drops the
// least recently used texts. A text that is larger than the cache is not added.
func (c *texts) put(t *Text) {
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
	t := c.used.Remove(e).(*Text)
	delete(c.byID, t.id)
	c.size -= t.cost()
}
