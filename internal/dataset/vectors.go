package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/vector"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"
)

// vectors are the vectors of a dataset. They are searched by their angle, which
// is what inner product and L2 of vectors of length 1 do.
type vectors struct {
	index  *vector.Index
	stored *faiss.Index
	docs   []int32       // document of each row; nil if row i is document i
	rows   map[int32]int // row of each document; nil if document i is row i
	count  int           // documents
	kind   ScoreKind
	odd    string // why the vectors cannot be right; "" if nothing is known against them
}

// newVectors returns the vectors of documents, which are taken from a budget,
// and reports what is odd.
func newVectors(x *faiss.Index, docs []Document, dimensions int, b *budget, f *findings) (*vectors, error) {
	v := &vectors{stored: x, count: len(docs), kind: ByCosine}
	if x.Metric == faiss.L2 {
		v.kind = ByL2
	}
	total := x.Count
	f.pass(ruleIndexFile, "%s, %s, %s of %s", x.Type, x.Metric, count(total, "vector"), count(x.Dim, "dimension"))
	if total == 0 {
		if v.count > 0 {
			f.pass(ruleVectors, "there are none, so the dataset is searched by words")
		}
		v.docs = []int32{}
	}
	if dimensions > 0 && total > 0 && dimensions != x.Dim {
		f.warn(ruleVectors,
			"the metadata says that they have %d dimensions, they have %d: the index may be that of other texts",
			dimensions, x.Dim)
	}
	if err := b.take(vector.Size(total, x.Stored) + assignSize*int64(total+len(x.IDs))); err != nil {
		return nil, err
	}
	if total > 0 {
		v.assign(x.IDs, docs, total, f)
		v.examine(x, total, f)
	}
	if total > 0 && !x.Trained {
		f.warn(ruleVectors, "the index is not trained, FAISS cannot search it")
	}
	var err error
	v.index, err = vector.NewFunc(total, v.at, x.Stored, vector.Cosine)
	return v, err
}

// at returns the vector of a row. One that cannot be read, because its file has
// become shorter, is 0, and so is similar to none.
func (v *vectors) at(row int, buf []float32) []float32 {
	r, err := v.stored.Vector(row, buf)
	if err != nil {
		clear(buf)
		return buf
	}
	return r
}

// assignSize is the memory that assign takes for a vector at most, and again for
// an id, in bytes.
const assignSize = 40

// documentsByID returns the numbers of the documents with the ids of an index. It
// returns nil unless the ids of the documents are different integers that the
// index has, all of them.
func documentsByID(ids []int64, docs []Document) map[int64]int32 {
	if len(ids) < len(docs) {
		return nil
	}
	numbers := make(map[int64]int32, len(docs))
	for i, d := range docs {
		id, err := strconv.ParseInt(d.ID, 10, 64)
		if _, twice := numbers[id]; twice || err != nil {
			return nil
		}
		numbers[id] = int32(i)
	}
	missing := len(docs)
	has := make([]bool, len(docs))
	for _, id := range ids {
		if doc, ok := numbers[id]; ok && !has[doc] {
			has[doc] = true
			missing--
		}
	}
	if missing > 0 {
		return nil
	}
	return numbers
}

// assign finds the document of each row. The id of the row is that of the document
// if that applies to all documents, or else the number of the document, as in
// MCPower.
func (v *vectors) assign(ids []int64, docs []Document, total int, f *findings) {
	if ids == nil && total == v.count {
		f.pass(ruleRows, "one vector for each document")
		return
	}
	v.docs, v.rows = make([]int32, total), map[int32]int{}
	numbers := documentsByID(ids, docs)
	lost, twice := 0, 0
	for row := range total {
		id := int64(row)
		if ids != nil {
			id = ids[row]
		}
		doc, ok := int32(id), id >= 0 && id < int64(v.count)
		if numbers != nil {
			doc, ok = numbers[id]
		}
		v.docs[row] = -1
		if !ok {
			lost++
			continue
		}
		if _, ok := v.rows[doc]; ok {
			twice++
			continue
		}
		v.docs[row], v.rows[doc] = doc, row
	}
	switch without := v.count - len(v.rows); {
	case lost > 0 || twice > 0:
		f.warn(ruleRows,
			"%d of %s belong to no document, and %s without vector: the index may be that of other texts, create "+
				"the dataset again",
			lost+twice, count(total, "vector"), count(without, "document"))
	case without > 0:
		f.warn(ruleRows, "%d of %s without vector, only found by words: create the dataset again", without,
			count(v.count, "document"))
	default:
		f.pass(ruleRows, "one vector for each document")
	}
	if len(v.rows) == 0 {
		v.odd = "no vector belongs to a document"
	}
}

// Samples that examine takes.
const (
	examined = 64   // rows
	alike    = 0.03 // cosines within so much of each other are those of no text
)

// examine looks for vectors that are not numbers or that no model makes.
func (v *vectors) examine(x *faiss.Index, total int, f *findings) {
	bad := 0
	var sample [][]float64
	step := max(total/examined, 1)
	least, most := math.Inf(1), 0.0
	negative := false
	buf := make([]float32, x.Stored)
	for row := range total {
		r := v.at(row, buf)
		sum := 0.0
		for _, c := range r {
			sum += float64(c) * float64(c)
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			bad++
			continue
		}
		length := math.Sqrt(sum)
		least, most = min(least, length), max(most, length)
		if row%step == 0 && length > 0 && len(sample) < examined {
			unit := make([]float64, x.Stored)
			for i, c := range r {
				unit[i] = float64(c) / length
				negative = negative || c < 0
			}
			sample = append(sample, unit)
		}
	}
	if bad > 0 {
		f.warn(ruleVectors, "%s with values that are not numbers, never found: create the dataset again",
			count(bad, "vector"))
	}
	switch {
	case len(sample) >= 3 && x.Stored >= 16 && (!negative || sameAngles(sample)):
		v.odd = "the vectors look like random numbers, not like those of a model"
		f.warn(ruleVectors,
			"they look like random numbers, not like those of a model: create the dataset again to search it by "+
				"meaning")
	case bad == 0 && most > 0 && (least < 0.99 || most > 1.01):
		compared := "so they are compared by angle"
		if v.kind == ByL2 {
			compared = "and compared by angle if the model makes other lengths"
		}
		f.pass(ruleVectors, "lengths from %.3g to %.3g, %s", least, most, compared)
	case bad == 0:
		f.pass(ruleVectors, "numbers of length 1")
	}
}

// sameAngles reports whether all pairs of vectors have about the same cosine, as
// random vectors with a common part do.
func sameAngles(sample [][]float64) bool {
	least, most := 2.0, -2.0
	for i, a := range sample {
		for _, b := range sample[:i] {
			c := 0.0
			for k := range a {
				c += a[k] * b[k]
			}
			if least, most = min(least, c), max(most, c); most-least > 2*alike {
				return false
			}
		}
	}
	return true
}

// row returns the row of a document.
func (v *vectors) row(doc int) (row int, ok bool) {
	if v.docs == nil {
		return doc, doc < v.index.Len()
	}
	row, ok = v.rows[int32(doc)]
	return row, ok
}

// doc returns the document of a row, -1 if it has none.
func (v *vectors) doc(row int) int {
	if v.docs == nil {
		return row
	}
	return int(v.docs[row])
}

// search calls f with the documents whose vectors are most similar to query, at
// most most, the best first.
func (v *vectors) search(ctx context.Context, query []float32, most int, f func(doc int, cosine float64)) error {
	query, err := v.stored.Query(query)
	if err != nil {
		return fmt.Errorf("comparing vectors: %w", err)
	}
	o := vector.Options{}
	if v.docs != nil {
		o.Allow = func(row int) bool { return v.docs[row] >= 0 }
	}
	hits, err := v.index.Search(ctx, query, most, o)
	if err != nil {
		return fmt.Errorf("comparing vectors: %w", err)
	}
	for _, h := range hits {
		f(v.doc(h.Row), h.Score)
	}
	return nil
}

// similar returns the cosines of some documents, in their order; NaN for those
// without a vector.
func (v *vectors) similar(query []float32, docs []int) ([]float64, error) {
	cosines := make([]float64, len(docs))
	var rows, at []int
	for i, d := range docs {
		cosines[i] = math.NaN()
		if row, ok := v.row(d); ok {
			rows, at = append(rows, row), append(at, i)
		}
	}
	query, err := v.stored.Query(query)
	if err != nil {
		return nil, fmt.Errorf("comparing vectors: %w", err)
	}
	scores, err := v.index.Scores(query, rows)
	if err != nil {
		return nil, fmt.Errorf("comparing vectors: %w", err)
	}
	for i, s := range scores {
		cosines[at[i]] = s
	}
	return cosines, nil
}

// compare returns the medians of the cosines of vectors that a model made with the
// stored vectors of some documents, and of the ratios of their lengths to the stored
// ones, which may not be finite. There must be at least one, and each document must
// have a vector.
func (v *vectors) compare(made [][]float32, docs []int) (cosine, ratio float64, err error) {
	cosines, ratios := make([]float64, len(docs)), make([]float64, len(docs))
	buf := make([]float32, v.stored.Stored)
	for i, doc := range docs {
		m, err := v.stored.Query(made[i])
		if err != nil {
			return 0, 0, fmt.Errorf("comparing vectors: %w", err)
		}
		row, _ := v.row(doc)
		score, err := v.index.Scores(m, []int{row})
		if err != nil {
			return 0, 0, fmt.Errorf("comparing vectors: %w", err)
		}
		cosines[i], ratios[i] = score[0], embed.Norm(m)/embed.Norm(v.at(row, buf))
	}
	slices.Sort(cosines)
	slices.Sort(ratios)
	return cosines[len(docs)/2], ratios[len(docs)/2], nil
}

// scorer returns the function that returns the score of a document, from 0 to 1, whose
// vector has a cosine with that of a query. raw reports whether the length of the
// query can be compared with those of the vectors; otherwise all are taken to be 1.
func (v *vectors) scorer(query []float32, raw bool) (score func(doc int, cosine float64) float64, err error) {
	if v.kind != ByL2 {
		return func(_ int, cosine float64) float64 { return min(max(0, cosine), 1) }, nil
	}
	if query, err = v.stored.Query(query); err != nil {
		return nil, fmt.Errorf("comparing vectors: %w", err)
	}
	a, buf := embed.Norm(query), make([]float32, v.stored.Stored)
	return func(doc int, cosine float64) float64 {
		square := 2 - 2*cosine
		if raw {
			row, _ := v.row(doc)
			b := embed.Norm(v.at(row, buf))
			square = a*a + b*b - 2*a*b*cosine
		}
		return 1 / (1 + max(0, square))
	}, nil
}
