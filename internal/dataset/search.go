package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fusion"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/segment"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// Limits of a search.
const (
	maxQuery = 1024 // characters
	maxSets  = 32   // datasets in one search

	// maxByWords is how many documents that have a word are scored. Documents
	// beyond them are as good as without a word.
	maxByWords = 10_000

	// maxByVectors is how many documents with the most similar vectors are
	// considered.
	maxByVectors = 1000
)

// A Query is a search.
type Query struct {
	Datasets []string // ids, at least one
	Text     string   // 1 to 1024 characters, not only white space
	TopK     int      // 1 to 100; 0 means that of the first dataset
}

// A ScoreKind says what the scores of a result are. All are from 0 to 1, and
// higher is better.
type ScoreKind string

// The kinds of scores.
const (
	ByWords  ScoreKind = "bm25"   // BM25F divided by the greatest score that the words allow
	ByCosine ScoreKind = "cosine" // inner product or cosine of the vectors, 0 if negative
	ByL2     ScoreKind = "l2"     // 1/(1+d), where d is the squared distance of the vectors
	Fused    ScoreKind = "fused"  // words and vectors
)

// A Hit is a document that a search found.
type Hit struct {
	Dataset string
	Score   float64 // from 0 to 1
	ID      string  // of the document; not empty
	Title   string  // one line of 1 to 256 characters
	Path    string  // one line of 1 to 512 characters; the ID if the document has none
	Snippet string  // clean text of at most 2048 characters; may be empty
	Heading string
	Chunk   int // number in the original, from 1; 0 if not known
	// StartLine and EndLine are the lines of the original, from 1; 0 if not
	// known.
	StartLine, EndLine int
}

// A Result is the result of a search.
type Result struct {
	Hits []Hit // the best first
	Kind ScoreKind

	// Notes say why vectors did not take part, for people and models.
	Notes []string
}

// An UnknownDataset is the error for a dataset that does not exist.
type UnknownDataset struct {
	ID    string
	Known []string // ids that exist, sorted
	Near  []string // those that resemble ID
}

// unknown returns the error for an id that is not among ids.
func unknown(id string, ids []string) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return &UnknownDataset{ID: id, Known: ids, Near: spell.Near(id, ids, 3)}
}

// Error lists the datasets that exist.
func (e *UnknownDataset) Error() string {
	message, available := "there is no dataset "+spell.Quote(e.ID), "; available datasets: "
	switch {
	case len(e.Near) > 0:
		message += ", did you mean " + spell.List(e.Near) + "?"
		available = " Available datasets: "
	case len(e.Known) == 0:
		return message + "; there are no datasets, create one or add its folder"
	}
	const most = 5 // the complete list is in Known
	if n := len(e.Known); n > most {
		return fmt.Sprintf("%s%s%s and %d more", message, available, strings.Join(e.Known[:most], ", "), n-most)
	}
	return message + available + strings.Join(e.Known, ", ")
}

// Unwrap returns errkind.NotFound.
func (e *UnknownDataset) Unwrap() error { return errkind.NotFound }

// check checks a query and returns it with its text trimmed.
func (q Query) check() (Query, error) {
	q.Text = strings.TrimFunc(q.Text, blank)
	switch n := utf8.RuneCountInString(q.Text); {
	case n == 0, n > maxQuery:
		return q, &errkind.Argument{Name: "query", Value: q.Text,
			Want: fmt.Sprintf("a text of 1 to %d characters that is not blank", maxQuery)}
	case q.TopK < 0 || q.TopK > maxTopK:
		return q, &errkind.Argument{Name: "topK", Value: q.TopK, Want: fmt.Sprintf("an integer from 1 to %d", maxTopK)}
	case len(q.Datasets) == 0 || len(q.Datasets) > maxSets:
		return q, &errkind.Argument{Name: "dataset", Want: fmt.Sprintf("1 to %d datasets", maxSets)}
	}
	return q, nil
}

// Search searches one or several datasets as one. It waits for datasets that
// are being loaded. Errors: Invalid (an [errkind.Argument]), an
// [*UnknownDataset], Corrupt (the dataset is bad), and that of ctx.
func (r *Registry) Search(ctx context.Context, q Query) (*Result, error) {
	q, err := q.check()
	if err != nil {
		return nil, err
	}
	sets := make([]*Set, 0, len(q.Datasets))
	for _, id := range q.Datasets {
		s, err := r.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	return search(ctx, sets, q)
}

// A place of a document among several sets: the number of the set, and of the
// document in it. It is what scores are fused by.
type docID int64

func newDocID(set, doc int) docID     { return docID(set)<<32 | docID(doc) }
func (d docID) split() (set, doc int) { return int(d >> 32), int(d & (1<<32 - 1)) }

// search searches sets, of which there is at least one.
func search(ctx context.Context, sets []*Set, q Query) (*Result, error) {
	topK := cmp.Or(q.TopK, sets[0].manifest.DefaultTopK)
	words := newWordQuery(q.Text)
	byWords, err := searchWords(ctx, sets, words, max(maxByWords, topK))
	if err != nil {
		return nil, searchError(ctx, err)
	}
	res := &Result{Kind: ByWords}
	byMeaning, err := searchVectors(ctx, sets, q.Text, byWords, max(maxByVectors, topK), res)
	if err != nil {
		return nil, searchError(ctx, err)
	}
	best := byWords
	switch {
	case len(byMeaning) == 0:
	case len(byWords) == 0:
		res.Kind = ByL2
		for _, h := range byMeaning {
			if set, _ := h.ID.split(); sets[set].vectors.kind != ByL2 {
				res.Kind = ByCosine
			}
		}
		best = byMeaning
		slices.SortStableFunc(best, func(a, b fusion.Hit[docID]) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
		})
	default:
		res.Kind = Fused
		best = fuse(byWords, byMeaning)
	}
	for _, h := range best[:min(len(best), topK)] {
		set, doc := h.ID.split()
		res.Hits = append(res.Hits, sets[set].hit(doc, h.Score, words))
	}
	return res, nil
}

// searchWords returns the documents that have a word, the best first, with
// scores from 0 to 1.
func searchWords(ctx context.Context, sets []*Set, words wordQuery, most int) ([]fusion.Hit[docID], error) {
	c := sets[0].words.alone
	if len(sets) > 1 {
		segments := make([]*segment.Segment, len(sets))
		for i, s := range sets {
			segments[i] = s.words.segment
		}
		c = collect(segments...)
	}
	var hits []fusion.Hit[docID]
	bound, err := words.search(ctx, c, most, func(h segment.Hit) {
		i := slices.IndexFunc(sets, func(s *Set) bool { return s.words.base == h.Row-h.Row%RowsEach })
		doc := sets[i].originals.of(int(h.Row % RowsEach))[h.Chunk]
		hits = append(hits, fusion.Hit[docID]{ID: newDocID(i, int(doc)), Score: float64(h.Score)})
	})
	for i := range hits {
		hits[i].Score = min(hits[i].Score/float64(bound), 1)
	}
	return hits, err
}

// searchVectors returns the documents that are most similar to the query, with
// their cosines, and those of byWords that have a vector. If byWords is empty, they
// have their scores in place of the cosines. It adds to the notes of res why the
// vectors of a set did not take part.
func searchVectors(ctx context.Context, sets []*Set, text string, byWords []fusion.Hit[docID], most int,
	res *Result) ([]fusion.Hit[docID], error) {
	var hits []fusion.Hit[docID]
	made := map[string][]float32{}
	for i, s := range sets {
		v, raw, note, err := s.queryVector(ctx, text, made)
		if err != nil {
			return nil, err
		}
		if note != "" {
			if len(sets) > 1 {
				note = s.manifest.ID + ": " + note
			}
			res.Notes = append(res.Notes, note)
		}
		if v == nil {
			continue
		}
		score := func(_ int, cosine float64) float64 { return cosine }
		if len(byWords) == 0 {
			if score, err = s.vectors.scorer(v, raw); err != nil {
				return nil, err
			}
		}
		found := map[int]bool{}
		err = s.vectors.search(ctx, v, most, func(doc int, cosine float64) {
			found[doc] = true
			hits = append(hits, fusion.Hit[docID]{ID: newDocID(i, doc), Score: score(doc, cosine)})
		})
		if err != nil {
			return nil, err
		}
		var others []int
		for _, h := range byWords {
			if set, doc := h.ID.split(); set == i && !found[doc] {
				others = append(others, doc)
			}
		}
		cosines, err := s.vectors.similar(v, others)
		if err != nil {
			return nil, err
		}
		for k, c := range cosines {
			if !math.IsNaN(c) {
				hits = append(hits, fusion.Hit[docID]{ID: newDocID(i, others[k]), Score: c})
			}
		}
	}
	return hits, nil
}

// fuse combines both lists, neither of which is empty. A document without words
// of the query has the score 0 in the first one. For a document without a vector,
// which may be in a set that is searched by words only, its words count alone.
func fuse(byWords, byMeaning []fusion.Hit[docID]) []fusion.Hit[docID] {
	cosines := make(map[docID]float64, len(byMeaning))
	least, most := math.Inf(1), math.Inf(-1)
	for _, h := range byMeaning {
		cosines[h.ID] = h.Score
		least, most = min(least, h.Score), max(most, h.Score)
	}
	words := make(map[docID]bool, len(byWords))
	best := 0.0
	for _, h := range byWords {
		words[h.ID] = true
		best = max(best, h.Score)
	}
	for _, h := range byWords {
		if _, ok := cosines[h.ID]; !ok {
			byMeaning = append(byMeaning, fusion.Hit[docID]{ID: h.ID, Score: least + (most-least)*h.Score/best})
		}
	}
	for id := range cosines {
		if !words[id] {
			byWords = append(byWords, fusion.Hit[docID]{ID: id})
		}
	}
	return fusion.Fuse(byWords, byMeaning, fusion.DefaultWeight, fusion.Scale{})
}

// searchError returns the error of a search.
func searchError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, errkind.Corrupt) {
		return fmt.Errorf("searching the dataset: %w", err)
	}
	return err
}

// hit returns a document as a hit.
func (s *Set) hit(doc int, score float64, words wordQuery) Hit {
	d := &s.docs[doc]
	title, where, id := d.label(doc)
	return Hit{
		Dataset: s.manifest.ID, Score: min(max(score, 0), 1),
		ID: id, Title: title, Path: where, Snippet: words.excerpt(d),
		Heading: sanitize.Short(d.Heading, 300, 1200), Chunk: d.Chunk, StartLine: d.StartLine, EndLine: d.EndLine,
	}
}

// cleanText returns the text of a document for a result, with its line ends.
func cleanText(s string) string { return sanitize.Text(s) }
