package vector

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
)

// A Hit is a vector that a search found.
type Hit struct {
	Row   int     // position of the vector in the index; see also [Index.ID]
	Score float64 // inner product, square of the distance, or cosine
}

// Options are options of a search. The zero value has useful defaults.
type Options struct {
	// Threads is the greatest number of goroutines that work on a search at
	// the same time; 0 means GOMAXPROCS. Small indexes use fewer.
	Threads int

	// Allow reports whether a row may be a result; nil allows all. It is
	// called from several goroutines, not for each row, and in no particular
	// order. It must always return the same for a row.
	Allow func(row int) bool
}

// Search returns the k vectors with the best scores for a query, the best first,
// or fewer if the index has fewer that are allowed. Of vectors with equal scores,
// the one with the lower row comes first.
//
// It returns an error of kind [errkind.Invalid] if the query is not of the
// dimension of the index or has a value that is not finite, and the error of ctx
// if that ends.
func (x *Index) Search(ctx context.Context, query []float32, k int, opts Options) ([]Hit, error) {
	hits, err := x.SearchBatch(ctx, [][]float32{query}, k, opts)
	if err != nil {
		return nil, err
	}
	return hits[0], nil
}

// SearchBatch is [Index.Search] for several queries, which takes less time than
// one search after the other. The result has the hits of each query.
func (x *Index) SearchBatch(ctx context.Context, queries [][]float32, k int, opts Options) ([][]Hit, error) {
	qs := make([]*query, len(queries))
	for i, v := range queries {
		if err := x.checkQuery(v); err != nil {
			return nil, err
		}
		qs[i] = x.newQuery(v)
	}
	k = max(0, min(k, len(x.rows)))
	if k == 0 || len(qs) == 0 {
		return make([][]Hit, len(qs)), ctx.Err()
	}
	threads := opts.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	spans := split(len(x.rows), threads)
	found := make([][][]Hit, len(spans)) // of each span and query
	if len(spans) == 1 {
		found[0] = x.searchSpan(ctx, qs, k, opts.Allow, spans[0])
	} else {
		var wait sync.WaitGroup
		for i := range spans {
			wait.Go(func() { found[i] = x.searchSpan(ctx, qs, k, opts.Allow, spans[i]) })
		}
		wait.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results := make([][]Hit, len(qs))
	for i := range qs {
		var hits []Hit
		for _, f := range found {
			hits = append(hits, f[i]...)
		}
		slices.SortFunc(hits, x.compare)
		results[i] = hits[:min(k, len(hits))]
	}
	return results, nil
}

// compare orders hits, the best first.
func (x *Index) compare(a, b Hit) int {
	c := cmp.Compare(b.Score, a.Score)
	if x.metric == L2 {
		c = -c
	}
	return cmp.Or(c, cmp.Compare(a.Row, b.Row))
}

// A query is a prepared query vector. The key of a row is its score, with the
// opposite sign if the metric is L2, so that a greater key is better. The key is
//
//	dot·row.scale·scale + row.bias + offset ± (row.norm·a + row.err·b - row.bias·slack + rest)
//
// where dot is the inner product of the codes. With the query q, its decoded form
// q' and likewise v and v', q·v is q'·v' + (q-q')·v' + q·(v-v'), and the last two
// terms are at most |q-q'|·|v'| and |q|·|v-v'|.
type query struct {
	codes  dotQuery
	floats []float32
	norm   float64
	scale  float32
	a, b   float32
	rest   float32
	offset float64
}

func (x *Index) newQuery(v []float32) *query {
	codes := make([]int8, x.stride)
	z := quantize(codes[:x.dim], v)
	q := &query{codes: newDotQuery(codes), floats: v, norm: norm(v)}
	factor, rest := 1.0, 0.0
	switch x.metric {
	case L2:
		factor = 2
		rest = q.norm * q.norm * slack
		q.offset = -q.norm * q.norm
	case Cosine:
		if q.norm > 0 {
			factor = 1 / q.norm
		}
	}
	a, b := factor*(z.err+q.norm*slack)*(1+slack), factor*q.norm*(1+slack)
	q.scale, q.a, q.b = float32(factor*float64(z.scale)), float32(a), float32(b)
	q.rest = float32(rest + (a+b+1)*underflow)
	if most := float64(x.most); most*b+most*most+rest > 1e36 {
		q.rest = float32(math.Inf(1)) // the bounds could overflow
	}
	return q
}

// bounds returns the middle of the bounds of a row's key without q.offset, and
// the distance to both. They may be infinite or NaN.
func (q *query) bounds(r *row, dot int32) (key, err float32) {
	return float32(dot)*r.scale*q.scale + r.bias, r.norm*q.a + r.err*q.b - r.bias*slack + q.rest
}

// A candidate is a row that may be a result.
type candidate struct {
	row  int
	most float32 // upper bound of its key without the offset of the query
}

// A scan is the state of the search for one query in a span.
type scan struct {
	q          *query
	least      []float32 // the greatest lower bounds of keys so far, at most k: a heap
	bound      float32   // the least of them if there are k, otherwise -Inf
	candidates []candidate
}

// searchSpan returns the best k rows of a span for each query. If ctx ends, the
// result is not complete.
func (x *Index) searchSpan(ctx context.Context, qs []*query, k int, allow func(int) bool, s span) [][]Hit {
	scans := make([]*scan, len(qs))
	for i, q := range qs {
		scans[i] = &scan{q: q, bound: float32(math.Inf(-1))}
	}
	// A block of codes is read from memory once for all queries.
	block := max(4, (128<<10)/x.stride)
	dots := make([]int32, block)
	for from := s.from; from < s.to; from += block {
		if ctx.Err() != nil {
			break
		}
		to := min(from+block, s.to)
		codes := x.codes[from*x.stride : to*x.stride]
		for _, c := range scans {
			x.dot(dots[:to-from], codes, &c.q.codes)
			c.add(x.rows[from:to], dots[:to-from], from, k, allow)
		}
	}
	results := make([][]Hit, len(qs))
	buf := make([]float32, x.dim)
	for i, c := range scans {
		if ctx.Err() != nil {
			break
		}
		results[i] = x.rescore(ctx, c, k, buf)
	}
	return results
}

// add takes the candidates from some rows, the first of which has the given
// number. The rows must be added in order: a later row with the same score as an
// earlier one is no candidate if that already has k that are better.
func (c *scan) add(rows []row, dots []int32, first, k int, allow func(int) bool) {
	q, bound := c.q, c.bound
	dots = dots[:len(rows)]
	for i := range rows {
		r := &rows[i]
		key, err := q.bounds(r, dots[i])
		if key+err <= bound || r.scale != r.scale || allow != nil && !allow(first+i) {
			continue
		}
		most, least := key+err, key-err
		if most != most || least != least {
			most, least = float32(math.Inf(1)), float32(math.Inf(-1))
		}
		c.candidates = append(c.candidates, candidate{first + i, most})
		if len(c.least) < k {
			c.least = append(c.least, least)
			if len(c.least) == k {
				slices.Sort(c.least) // a sorted slice is a heap
				bound = c.least[0]
			}
		} else if least > bound {
			replaceLeast(c.least, least, cmp.Less[float32])
			bound = c.least[0]
		}
	}
	c.bound = bound
	if len(c.candidates) >= 4096 { // most are ruled out by now, unless many are alike
		c.prune(k)
	}
}

// prune removes the candidates that can no longer be a result.
func (c *scan) prune(k int) {
	if len(c.least) < k {
		return
	}
	c.candidates = slices.DeleteFunc(c.candidates, func(a candidate) bool { return a.most < c.bound })
}

// rescore returns the best k of the candidates by their exact scores. If ctx
// ends, the result is not complete.
func (x *Index) rescore(ctx context.Context, c *scan, k int, buf []float32) []Hit {
	c.prune(k)
	slices.SortFunc(c.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.row, b.row))
	})
	worse := func(a, b Hit) bool { return a.Score < b.Score || a.Score == b.Score && a.Row > b.Row }
	hits := make([]Hit, 0, k) // a heap when it is full; Score is the key
	for i, a := range c.candidates {
		if len(hits) == k && !worse(hits[0], Hit{a.row, float64(a.most) + c.q.offset}) {
			break // neither can any candidate that follows
		}
		if i&0xfff == 0xfff && ctx.Err() != nil {
			break
		}
		h := Hit{a.row, x.exact(c.q.floats, c.q.norm, a.row, buf)}
		if x.metric == L2 {
			h.Score = -h.Score
		}
		if len(hits) < k {
			hits = append(hits, h)
			if len(hits) == k {
				for i := k/2 - 1; i >= 0; i-- {
					down(hits, i, worse)
				}
			}
		} else if worse(hits[0], h) {
			replaceLeast(hits, h, worse)
		}
	}
	if x.metric == L2 {
		for i := range hits {
			hits[i].Score = 0 - hits[i].Score
		}
	}
	return hits
}

// replaceLeast replaces the least element of a heap.
func replaceLeast[T any](heap []T, v T, less func(a, b T) bool) {
	heap[0] = v
	down(heap, 0, less)
}

// down moves the element at i down in a heap whose least element is the first.
func down[T any](heap []T, i int, less func(a, b T) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
