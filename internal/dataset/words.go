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

// A wordIndex finds the documents of a dataset by their words. It is in memory. A
// document of the segment is an original, and its chunks are the documents of the
// dataset.
type wordIndex struct {
	base    int64 // row of the first original; different for each wordIndex, so that several can be searched as one
	segment *segment.Segment
	alone   *segment.Collection // of segment
}

// RowsEach is the number of rows that the words of each Set may use; see [Set.Segment].
const RowsEach = 1 << 32

// newWordIndex returns an index of the documents of a set, which is taken from a
// budget. If written is true, it has also what [Options] say.
func newWordIndex(ctx context.Context, base int64, s *Set, written bool, memory *budget) (*wordIndex, error) {
	var b segment.Builder
	n := 0
	for i := range s.originals.len() {
		records := s.originals.of(i)
		d := &s.docs[records[0]]
		b.Document(segment.Document{Row: base + int64(i), Title: slices.Collect(tokens(d.Title)),
			Name: slices.Collect(tokens(d.Path))})
		if written {
			for x := range analysis.Analyze(d.Title, analysis.English) {
				if x.Word != "" {
					b.Word(x.Word, true)
				}
			}
		}
		for _, r := range records {
			if n++; n%256 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			d := &s.docs[r]
			b.Chunk(indexed(d.Heading, false), indexed(d.Content, written), 1)
		}
	}
	var out bytes.Buffer
	if _, err := b.WriteTo(&out); err != nil {
		return nil, err
	}
	if err := memory.take(int64(out.Len())); err != nil {
		return nil, err
	}
	words, err := segment.Open(out.Bytes())
	if err != nil {
		return nil, err
	}
	return &wordIndex{base: base, segment: words, alone: collect(words)}, nil
}

func collect(segments ...*segment.Segment) *segment.Collection {
	return segment.NewCollection(segments, make([]segment.Bits, len(segments)))
}

// indexed returns the tokens of a text for a segment, with the words as they are
// written if written is true.
func indexed(text string, written bool) iter.Seq[segment.Token] {
	return func(yield func(segment.Token) bool) {
		if !written {
			for t := range tokens(text) {
				if !yield(segment.Token{Text: t}) {
					return
				}
			}
			return
		}
		for x := range analysis.Analyze(text, analysis.English) {
			t := segment.Token{Text: x.Token, Word: x.Word, Beside: x.Beside}
			if (t.Text != "" || t.Word != "") && !yield(t) {
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

// search scores the documents that have any of the words (BM25F). f is called with
// each, the best first; at most most times. The result is a bound that no score
// exceeds.
func (q wordQuery) search(ctx context.Context, c *segment.Collection, most int,
	f func(h segment.Hit)) (bound float32, err error) {
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
	hits, err := s.TopChunks(ctx, leaves, nil, most)
	if err != nil {
		return 0, err
	}
	for _, h := range hits {
		f(h)
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
