package cos

import (
	"iter"
	"math"
)

// maxObjects is the maximum number of an object. The limit of the format is
// 8,388,607 (ISO 32000-1, Annex C).
const maxObjects = 8 << 20

// chunkLen is the number of table entries that are allocated at once.
const chunkLen = 1 << 10

// An entry is the location of an object.
type entry struct {
	kind  entryKind
	at    uint32 // byte offset, or the number of the object stream
	index uint32 // in the object stream
}

const entryBytes = 12

// An entryKind is the kind of an object's location.
type entryKind uint8

const (
	missing  entryKind = iota // not in the table
	free                      // the object does not exist
	inFile                    // at a byte offset
	inStream                  // in an object stream
)

// atOffset returns the entry of an object at a byte offset. An offset beyond
// the maximum file size is replaced by the maximum offset, which is also
// invalid.
func atOffset(at int) entry {
	if at < 0 {
		return entry{kind: free}
	}
	return entry{kind: inFile, at: uint32(min(at, math.MaxUint32))}
}

// A table maps object numbers to locations. It is not a map, because documents
// have up to millions of objects, numbered from 0 with few gaps.
type table struct {
	chunks []*[chunkLen]entry // nil if no entry was set
	mem    Share
}

// get returns the entry of an object.
func (t *table) get(num int) entry {
	if i := num / chunkLen; num >= 0 && i < len(t.chunks) && t.chunks[i] != nil {
		return t.chunks[i][num%chunkLen]
	}
	return entry{}
}

// set sets the entry of an object. Numbers out of range are ignored.
func (t *table) set(num int, e entry) {
	if num < 0 || num > maxObjects {
		return
	}
	i := num / chunkLen
	if more := i + 1 - len(t.chunks); more > 0 {
		if !t.mem.Alloc(8 * more) {
			return
		}
		t.chunks = append(t.chunks, make([]*[chunkLen]entry, more)...)
	}
	if t.chunks[i] == nil {
		if !t.mem.Alloc(chunkLen * entryBytes) {
			return
		}
		t.chunks[i] = new([chunkLen]entry)
	}
	t.chunks[i][num%chunkLen] = e
}

// add sets the entry of an object if it has none.
func (t *table) add(num int, e entry) {
	if t.get(num).kind == missing {
		t.set(num, e)
	}
}

// objects yields the numbers of existing objects, in order.
func (t *table) objects() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, c := range t.chunks {
			if c == nil {
				continue
			}
			for j := range c {
				if c[j].kind > free && !yield(i*chunkLen+j) {
					return
				}
			}
		}
	}
}
