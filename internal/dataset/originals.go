package dataset

import (
	"cmp"
	"slices"
)

// originals are what the documents of a dataset are parts of. Documents with the same
// path and title that are numbered as chunks are one original, any other document is
// one of its own.
type originals struct {
	records []int32 // numbers of documents, those of each original together and in order
	starts  []int32 // by original, and one more: where its documents begin in records
	places  []int32 // by document: its place in records
}

// originalSize is the memory that an original with one document takes, in bytes.
const originalSize = 12

// group returns the originals of documents, in the order of their first documents. They
// are taken from a budget.
func group(docs []Document, b *budget) (originals, error) {
	if err := b.take(originalSize*int64(len(docs)) + 4); err != nil {
		return originals{}, err
	}
	type key struct{ path, title string }
	first := map[key]int32{}
	of := make([]int32, len(docs)) // first document of the original of each
	o := originals{records: make([]int32, len(docs)), places: make([]int32, len(docs))}
	for i := range docs {
		d, n := &docs[i], int32(i)
		o.records[i], of[i] = n, n
		if d.Path == "" || d.Chunk == 0 {
			continue
		}
		k := key{d.Path, d.Title}
		if f, ok := first[k]; ok {
			of[i] = f
		} else {
			first[k] = n
		}
	}
	slices.SortFunc(o.records, func(a, b int32) int {
		return cmp.Or(cmp.Compare(of[a], of[b]), cmp.Compare(docs[a].Chunk, docs[b].Chunk), cmp.Compare(a, b))
	})
	for i, r := range o.records {
		o.places[r] = int32(i)
		if i == 0 || of[r] != of[o.records[i-1]] {
			o.starts = append(o.starts, int32(i))
		}
	}
	o.starts = append(o.starts, int32(len(docs)))
	return o, nil
}

// len returns the number of originals.
func (o *originals) len() int { return len(o.starts) - 1 }

// of returns the documents of an original in order.
func (o *originals) of(i int) []int32 { return o.records[o.starts[i]:o.starts[i+1]] }

// find returns the original that a document is part of, and the place of the document
// in it.
func (o *originals) find(doc int) (original, place int) {
	at := o.places[doc]
	i, ok := slices.BinarySearch(o.starts, at)
	if !ok {
		i--
	}
	return i, int(at - o.starts[i])
}
