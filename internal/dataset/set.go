package dataset

import (
	"context"

	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// Sets returns the datasets that can be searched, in the order of their folders. It
// waits until they have been loaded once. The error is that of ctx, or that of reading
// the folder as long as it could never be read.
func (r *Registry) Sets(ctx context.Context) ([]*Set, error) {
	select {
	case <-r.scanned.opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	failure := r.failure
	r.mu.Unlock()
	select {
	case <-r.loaded.opened:
	default:
		if failure != nil {
			return nil, failure
		}
	}
	select {
	case <-r.loaded.opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var sets []*Set
	for _, e := range r.snapshot() {
		if e.set != nil {
			sets = append(sets, e.set)
		}
	}
	return sets, nil
}

// ID returns the id of the dataset.
func (s *Set) ID() string { return s.manifest.ID }

// Originals returns the number of originals. An original is what documents with the
// same path and title that are numbered as chunks are parts of. Any other document is
// an original of its own.
func (s *Set) Originals() int { return s.originals.len() }

// Parts returns the numbers of the documents of an original, in their order. The
// caller must not change them.
func (s *Set) Parts(original int) []int32 { return s.originals.of(original) }

// PartOf returns the original that a document is part of, and the place of the
// document in it.
func (s *Set) PartOf(doc int) (original, place int) { return s.originals.find(doc) }

// Document returns a document as it is in the metadata, which is not clean. The caller
// must not change it.
func (s *Set) Document(doc int) *Document { return &s.docs[doc] }

// Label returns the clean title, path and id of a document. None of them is empty; the
// path of a document without one is its id.
func (s *Set) Label(doc int) (title, path, id string) { return s.docs[doc].label(doc) }

// Segment returns the words of the dataset. Its documents are the originals in order,
// and their chunks are their parts. The rows begin at base, which is another one for
// each Set.
func (s *Set) Segment() (words *segment.Segment, base int64) { return s.words.segment, s.words.base }

// QueryVector returns the vector of a query for the dataset. A nil vector means that its
// vectors are not used, and note says why, "" if that needs no explanation. made has the
// vectors of the query that were computed for other datasets, by model, and gets this
// one. The error is that of ctx.
func (s *Set) QueryVector(
	ctx context.Context, text string, made map[string][]float32,
) (v []float32, note string, err error) {
	v, _, note, err = s.queryVector(ctx, text, made)
	return v, note, err
}

// Nearest calls f with the documents whose vectors are most similar to that of a query,
// at most most, the best first.
func (s *Set) Nearest(ctx context.Context, query []float32, most int, f func(doc int, cosine float64)) error {
	return s.vectors.search(ctx, query, most, f)
}

// Cosines returns how similar some documents are to a query, in their order; NaN for
// those without a vector.
func (s *Set) Cosines(query []float32, docs []int) ([]float64, error) {
	return s.vectors.similar(query, docs)
}
