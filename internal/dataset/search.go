package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/errkind"
	"knowhow/internal/sanitize"
	"knowhow/internal/segment"
	"knowhow/internal/spell"
)

// Limits of a search.
const (
	maxQuery = 1024 // characters
	maxSets  = 32   // datasets in one search

	// maxByWords is how many documents that have a word are scored. Documents
	// beyond them are as good as without a word.
	maxByWords = 10_000
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
	message := "there is no dataset " + spell.Quote(e.ID)
	switch {
	case len(e.Near) > 0:
		message += ", did you mean " + spell.List(e.Near) + "?"
	case len(e.Known) == 0:
		return message + "; there are no datasets, create one or add its folder"
	}
	const most = 20
	if n := len(e.Known); n > most {
		return fmt.Sprintf("%s available datasets: %s and %d more", message+";", strings.Join(e.Known[:most], ", "), n-most)
	}
	return message + "; available datasets: " + strings.Join(e.Known, ", ")
}

// Unwrap returns errkind.NotFound.
func (e *UnknownDataset) Unwrap() error { return errkind.NotFound }

// check checks a query and returns it with its text trimmed.
func (q Query) check() (Query, error) {
	q.Text = strings.TrimFunc(q.Text, blank)
	switch n := utf8.RuneCountInString(q.Text); {
	case n == 0, n > maxQuery:
		return q, &errkind.Argument{Name: "query", Value: q.Text, Want: fmt.Sprintf("a text of 1 to %d characters that is not blank", maxQuery)}
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
	sets := make([]*set, 0, len(q.Datasets))
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

// A scored is a document with its scores.
type scored struct {
	set, doc int
	words    float32 // 0 if it has none of the words
	meaning  float32 // similarity of its vector; only if vectors take part
	score    float32
}

// search searches sets, of which there is at least one.
func search(ctx context.Context, sets []*set, q Query) (*Result, error) {
	topK := cmp.Or(q.TopK, sets[0].manifest.DefaultTopK)
	words := newWordQuery(q.Text)
	bases := make([]int64, len(sets))
	c := sets[0].words.alone
	if len(sets) > 1 {
		segments := make([]*segment.Segment, len(sets))
		for i, s := range sets {
			segments[i] = s.words.segment
		}
		c = collect(segments...)
	}
	for i, s := range sets {
		bases[i] = s.words.base
	}
	var list []scored
	bound, err := words.search(ctx, c, max(maxByWords, topK), func(row int64, score float32) {
		i := slices.IndexFunc(bases, func(b int64) bool { return row-row%rowsEach == b })
		list = append(list, scored{set: i, doc: int(row - bases[i]), words: score})
	})
	if err != nil {
		return nil, searchError(ctx, err)
	}
	res := &Result{Kind: ByWords}
	for i := range list {
		list[i].score = list[i].words / bound
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, x := range list[:min(len(list), topK)] {
		res.Hits = append(res.Hits, sets[x.set].hit(x, words))
	}
	return res, nil
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
func (s *set) hit(x scored, words wordQuery) Hit {
	d := &s.docs[x.doc]
	title, where, id := d.label(x.doc)
	return Hit{
		Dataset: s.manifest.ID, Score: float64(min(max(x.score, 0), 1)),
		ID: id, Title: title, Path: where, Snippet: words.excerpt(d),
		Heading: sanitize.Short(d.Heading, 300, 1200), Chunk: d.Chunk, StartLine: d.StartLine, EndLine: d.EndLine,
	}
}

// cleanText returns the text of a document for a result, with its line ends.
func cleanText(s string) string { return sanitize.Text(s) }
