package index

import (
	"context"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
)

// A dense is the ranking by meaning in one search.
type dense struct {
	e     *evaluator
	query []float32
	allow func(document int64) bool // documents that meet conditions beyond labels; nil: all
	near  []vectors.Hit             // best documents that the query finds, each with its best chunk
	added bool                      // documents without a word of the query are among what it finds

	compute time.Duration // for vectors that documents lack
}

// newDense returns the ranking by meaning for a request with a vector. It returns nil
// without vectors.
func (e *evaluator) newDense(ctx context.Context, r *retrieval.Request) (*dense, error) {
	if err := e.loadVectors(ctx); err != nil {
		return nil, err
	}
	d := &dense{e: e, query: r.Vector}
	if r.Chunks == 0 { // cosines of documents are not enough for chunks
		d.compute = min(e.x.computeTime, time.Until(e.until))
	}
	if !e.vectors.Has(len(d.query)) && d.compute <= 0 {
		return nil, nil
	}
	if c := conditionsOf(r.Query); c.beyondLabels() {
		allowed, err := e.every(ctx, c)
		if err != nil {
			return nil, err
		}
		rows, err := e.view.RowsOf(allowed)
		if err != nil {
			return nil, err
		}
		admitted := make(map[int64]bool, len(rows))
		for _, r := range rows {
			admitted[r] = true
		}
		d.allow = func(document int64) bool { return admitted[document] }
	}
	return d, nil
}

// addMeaning adds to what a request matches the documents that are near in meaning.
func (e *evaluator) addMeaning(ctx context.Context, m *matched, r *retrieval.Request) error {
	d, err := e.newDense(ctx, r)
	if d == nil || err != nil {
		return err
	}
	hits, err := e.vectors.Nearest(ctx, d.query, retrieval.Fused, d.allow)
	if err != nil {
		return err
	}
	d.near = vectors.BestOfEach(hits)
	if r.Near > 0 {
		if err := d.extend(m, r.Near); err != nil {
			return err
		}
	}
	m.dense = d
	return nil
}

// loadVectors loads the vectors of the labels of the view, once for a search.
func (e *evaluator) loadVectors(ctx context.Context) (err error) {
	if e.vectors != nil {
		return nil
	}
	var labels []string
	for _, g := range e.view.Segments {
		labels = append(labels, g.Label)
	}
	slices.Sort(labels)
	e.vectors, err = e.x.vectors.View(ctx, e.tx, slices.Compact(labels))
	return err
}

// extend adds the documents whose cosine is least or more to those with words of
// the query.
func (d *dense) extend(m *matched, least float64) error {
	var rows []int64
	for _, h := range d.near {
		if h.Score >= least && len(rows) < retrieval.NearDocs {
			rows = append(rows, h.Document)
		}
	}
	slices.Sort(rows)
	more, err := d.e.view.Rows(rows)
	if err != nil {
		return err
	}
	more.AndNot(m.Docs)
	n := more.Count()
	m.Docs.Or(more)
	m.Count += n
	d.added = n > 0
	return nil
}

// keepFound removes the nearest documents that the query does not find.
func (d *dense) keepFound(m *matched) error {
	rows := make([]int64, len(d.near))
	for i, h := range d.near {
		rows[i] = h.Document
	}
	slices.Sort(rows)
	docs, err := d.e.view.Rows(rows)
	if err != nil {
		return err
	}
	docs.And(m.Docs)
	if rows, err = d.e.view.RowsOf(docs); err != nil {
		return err
	}
	d.near = slices.DeleteFunc(d.near, func(h vectors.Hit) bool {
		_, ok := slices.BinarySearch(rows, h.Document)
		return !ok
	})
	return nil
}

// addCosines adds to documents that are ranked by words their cosines, and the
// nearest documents that are not among them. The best chunks by words of the best
// documents get vectors, as long as there is time.
func (d *dense) addCosines(ctx context.Context, list []retrieval.Document) ([]retrieval.Document, error) {
	n := min(len(list), retrieval.Fused)
	at := map[int64]int{}
	for i, x := range list {
		at[x.Number] = i
	}
	docs := make([]int64, 0, n+len(d.near))
	for _, x := range list[:n] {
		docs = append(docs, x.Number)
	}
	for _, h := range d.near {
		docs = append(docs, h.Document)
	}
	slices.Sort(docs)
	docs = slices.Compact(docs)
	have := map[int64]bool{} // chunks with a vector
	found, err := d.e.vectors.Scores(ctx, d.query, docs, func(hits []vectors.Hit) []vectors.Hit {
		for _, h := range hits {
			have[rowOf(h.Document, h.Chunk)] = true
		}
		return vectors.BestOfEach(hits)
	})
	if err != nil {
		return list, err
	}
	var lacking []int64
	for _, x := range list[:min(n, retrieval.ComputedDocs)] {
		if row := rowOf(x.Number, x.Chunk); !have[row] {
			lacking = append(lacking, row)
		}
	}
	computed, err := d.e.x.vectors.Compute(ctx, d.e.tx, d.query, lacking, d.compute)
	for _, h := range append(found, computed...) {
		i, ok := at[h.Document]
		if !ok {
			i = len(list)
			list = append(list, retrieval.Document{Number: h.Document, Chunk: -1, NearChunk: -1})
		}
		if x := &list[i]; x.NearChunk < 0 || h.Score > x.Cosine {
			x.NearChunk, x.Cosine = h.Chunk, h.Score
		}
	}
	return list, err
}

// addChunks adds to chunks by words their cosines, and the other chunks of some
// documents that have vectors.
func (d *dense) addChunks(ctx context.Context, list []retrieval.Chunk, docs []int64) ([]retrieval.Chunk, error) {
	at := map[int64]int{}
	for i, c := range list {
		at[rowOf(c.Document, c.Number)] = i
	}
	found, err := d.e.vectors.Scores(ctx, d.query, docs, func(hits []vectors.Hit) []vectors.Hit {
		n := 0
		return slices.DeleteFunc(hits, func(h vectors.Hit) bool {
			_, wanted := at[rowOf(h.Document, h.Chunk)]
			n++
			return n > passage.MaxChunks && !wanted
		})
	})
	if err != nil {
		return list, err
	}
	for _, h := range found {
		i, ok := at[rowOf(h.Document, h.Chunk)]
		if !ok {
			i = len(list)
			list = append(list, retrieval.Chunk{Document: h.Document, Number: h.Chunk})
		}
		list[i].Cosine, list[i].HasCosine = h.Score, true
	}
	return list, nil
}
