package dataset

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A wordIndex finds the documents of a dataset by their words. It is in memory.
type wordIndex struct {
	base    int64 // row of the first document; different for each wordIndex, so that several can be searched as one
	segment *segment.Segment
	alone   *segment.Collection // of segment
}

// rowsEach is the number of rows that each wordIndex may use.
const rowsEach = 1 << 32

// newWordIndex returns an index of documents, which is taken from a budget.
func newWordIndex(ctx context.Context, base int64, docs []Document, memory *budget) (*wordIndex, error) {
	var b segment.Builder
	for i := range docs {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d := &docs[i]
		b.Document(segment.Document{Row: base + int64(i), Title: slices.Collect(tokens(d.Title)),
			Name: slices.Collect(tokens(d.Path))})
		b.Chunk(indexed(d.Heading), indexed(d.Content), 1)
	}
	var out bytes.Buffer
	if _, err := b.WriteTo(&out); err != nil {
		return nil, err
	}
	if err := memory.take(int64(out.Len())); err != nil {
		return nil, err
	}
	s, err := segment.Open(out.Bytes())
	if err != nil {
		return nil, err
	}
	return &wordIndex{base: base, segment: s, alone: collect(s)}, nil
}

func collect(segments ...*segment.Segment) *segment.Collection {
	return segment.NewCollection(segments, make([]segment.Bits, len(segments)))
}

// indexed returns the tokens of a text for a segment. Words as written are not
// needed.
func indexed(text string) iter.Seq[segment.Token] {
	return func(yield func(segment.Token) bool) {
		for t := range tokens(text) {
			if !yield(segment.Token{Text: t}) {
				return
			}
		}
	}
}

// tokens returns the tokens of a text. The language of a text is not known, so
// that all of them are stemmed as English ones.
func tokens(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range analysis.Tokens(text, analysis.English) {
			if !yield(t.Text) {
				return
			}
		}
	}
}

// A wordQuery is a query as words.
type wordQuery struct {
	tokens []string // different, in order
	want   *analysis.Wanted
}

// newWordQuery returns the words of a text. Words that every question contains
// are left out, unless there are no others.
func newWordQuery(text string) wordQuery {
	var all []analysis.Token
	var words []string
	var before analysis.Token
	for t := range analysis.Tokens(text, analysis.English) {
		// A run of CJK characters ends in its last character alone, which is part
		// of the pair before it.
		lone := t.CJK && before.CJK && t.End == before.End && analysis.Lone(t.Text)
		if before = t; lone {
			continue
		}
		all, words = append(all, t), append(words, t.Surface)
	}
	significant := analysis.Significant(words, analysis.Stemmed())
	var q wordQuery
	for _, t := range all {
		if slices.Contains(significant, t.Surface) && !slices.Contains(q.tokens, t.Text) {
			q.tokens = append(q.tokens, t.Text)
		}
	}
	q.want = analysis.NewWanted(q.tokens, nil)
	return q
}

// search scores the documents that have any of the words. f is called with the
// row of each and its score (BM25F), the best first; at most most times. The
// result is a bound that no score exceeds.
func (q wordQuery) search(ctx context.Context, c *segment.Collection, most int,
	f func(row int64, score float32)) (bound float32, err error) {
	if len(q.tokens) == 0 {
		return 0, nil
	}
	s := c.Begin()
	defer s.End()
	leaves := make([]*segment.Leaf, len(q.tokens))
	for i, t := range q.tokens {
		if leaves[i], err = s.Leaf(ctx, segment.AllFields, segment.Pattern{Tokens: []string{t},
			Prefix: analysis.Lone(t)}); err != nil {
			return 0, err
		}
	}
	hits, err := s.Top(ctx, leaves, nil, most)
	if err != nil {
		return 0, err
	}
	for _, h := range hits {
		f(h.Row, h.Score)
	}
	return s.Bound(leaves), nil
}

// maxExcerpt is the greatest length of an excerpt in characters. The texts of
// datasets that this package wrote are shorter.
const maxExcerpt = 1600

// excerpt returns the text of a document for a result: all of it, or the part
// that has most of the words. Line ends are kept if all of it is returned.
func (q wordQuery) excerpt(d *Document) string {
	text := cleanText(d.Content)
	if len(text) <= maxExcerpt {
		return text
	}
	part, _ := analysis.Digest(text, analysis.English, q.want, maxExcerpt)
	return strings.TrimSpace(part)
}
