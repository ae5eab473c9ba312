// Package passage chooses the passages of search results and cuts them from texts.
// Every store uses it, so that the same documents give the same passages.
package passage

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/search"
)

// MaxChunks is the number of best chunks that passages are chosen from.
const MaxChunks = 64

// MaxChunk is how many bytes of a chunk are read at most.
const MaxChunk = 64 << 10

// Sizes of digests, in runes. Fess cuts a title at 50 characters.
const (
	TextDigest  = 240
	ShortDigest = 120 // on a page with passages
	TitleDigest = 50
)

// StartOfText is of how many bytes a digest without matches is made.
const StartOfText = 4 << 10

// Sizes of passages, in characters.
const (
	longest      = 1000 // preferred to the 1600 that are allowed: the rest of a long chunk says less
	shortest     = 200
	shortOne     = 250 // of a document that has no other passage
	excerptSize  = 300 // of the passages after the first wholeOnes
	wholeExcerpt = excerptSize * 5 / 4
)

// OfDocument is how many passages of a document there are at most.
const OfDocument = 9

// LeastScore is the part of the best score of a page below which chunks give no
// passages, except for documents without another one.
const LeastScore = 0.6

// Numbers of passages.
const (
	wholeOnes    = 2  // the best ones are not cut to excerptSize
	otherHits    = 7  // if there are so many other documents, half of the characters is left for them
	chunksAtOnce = 16 // chunks that are read together
)

// A Chunk is a chunk of a document of a page of results.
type Chunk struct {
	Number   int // by which the source knows it
	Document int // place on the page, from 0
	Score    float64
}

// A Content describes the place of a chunk in its document. It is zero if the chunk
// does not exist.
type Content struct {
	Offset, Length int64 // in the text, in bytes
	TextSize       int64 // of the whole text, in bytes
	Heading        string
	Lang           string // ISO 639-1
}

// A Place is where a passage begins.
type Place struct {
	Document int  // place on the page, from 0
	Inside   bool // not at the beginning of a chunk, so another heading may be above it
	*search.Passage
}

// A Source reads the documents of a page of results.
type Source interface {
	// Contents reads chunks, in their order.
	Contents(ctx context.Context, chunks []Chunk) ([]Content, error)
	// Window returns the bytes from from up to but not including to of the text of
	// the document of a chunk. It returns fewer if the text is damaged.
	Window(ctx context.Context, c Chunk, from, to int64) (string, error)
	// Locate sets the pages of passages and the headings of those that are inside
	// of chunks; see [PageAt] and [HeadingAt].
	Locate(ctx context.Context, places []Place) error
}

// Choose returns the passages of the documents of a page, with at most budget
// characters in all. chunks are the best chunks of these documents, best first, and
// one chunk of each document without a good one. conditions are those of the
// search. The passages are taken from the
// best chunks: the best ones whole, then excerpts, until a part of the budget is
// spent or the scores are far below the best one. Each other document gets one
// short excerpt. No text is repeated.
func Choose(ctx context.Context, src Source, documents int, chunks []Chunk, conditions []Condition,
	budget int) ([][]search.Passage, error) {
	out, words := make([][]search.Passage, documents), newWords(conditions)
	var begins []begin
	whole := 0
	shown := map[string]bool{} // texts of passages
	add := func(c Chunk, p search.Passage, n int, inside bool) {
		budget -= n
		shown[p.Text] = true
		begins = append(begins, begin{c.Document, len(out[c.Document]), inside})
		out[c.Document] = append(out[c.Document], p)
	}
	rest := budget * min(documents-1, otherHits) / (2 * otherHits)
	r := reader{src: src, chunks: chunks}
	for i, c := range chunks {
		if budget-rest < shortest || c.Score < LeastScore*chunks[0].Score {
			break
		}
		if len(out[c.Document]) == OfDocument {
			continue
		}
		x, err := r.content(ctx, i)
		if err != nil {
			return nil, err
		}
		p, err := cut(ctx, src, c, x, words, whole < wholeOnes, budget)
		if err != nil {
			return nil, err
		}
		if p.Text == "" || shown[p.Text] || overlaps(out[c.Document], p) {
			continue
		}
		whole++
		if n := utf8.RuneCountInString(p.Text); n <= budget {
			add(c, p, n, p.Offset != x.Offset)
		}
	}
	// Every other document has a short one, as long as the budget lasts.
	chunks = slices.DeleteFunc(slices.Clone(chunks), func(c Chunk) bool { return len(out[c.Document]) > 0 })
	r = reader{src: src, chunks: chunks}
	for i, c := range chunks {
		if budget < shortest {
			break
		}
		if len(out[c.Document]) > 0 {
			continue
		}
		x, err := r.content(ctx, i)
		if err != nil {
			return nil, err
		}
		p, err := cut(ctx, src, c, x, words, false, min(budget, shortOne))
		if err != nil {
			return nil, err
		}
		if n := utf8.RuneCountInString(p.Text); n > 0 && n <= budget && !shown[p.Text] {
			add(c, p, n, p.Offset != x.Offset)
		}
	}
	if len(begins) == 0 {
		return out, nil
	}
	places := make([]Place, len(begins))
	for i, b := range begins {
		places[i] = Place{b.document, b.inside, &out[b.document][b.n]}
	}
	return out, src.Locate(ctx, places)
}

// A reader reads the contents of chunks, some at a time.
type reader struct {
	src      Source
	chunks   []Chunk
	contents []Content // of chunks from first on
	first    int
}

// content returns the content of chunk i.
func (r *reader) content(ctx context.Context, i int) (Content, error) {
	if i >= r.first+len(r.contents) {
		contents, err := r.src.Contents(ctx, r.chunks[i:min(i+chunksAtOnce, len(r.chunks))])
		if err != nil {
			return Content{}, err
		}
		r.contents, r.first = contents, i
	}
	return r.contents[i-r.first], nil
}

// A begin is passage n of a document. If inside is true, it does not begin with
// its chunk.
type begin struct {
	document, n int
	inside      bool
}

// overlaps reports whether a passage shares text with one of list.
func overlaps(list []search.Passage, p search.Passage) bool {
	return slices.ContainsFunc(list, func(o search.Passage) bool {
		return p.Offset < o.Offset+int64(len(o.Text)) && o.Offset < p.Offset+int64(len(p.Text))
	})
}

// cut returns the passage of a chunk: the whole chunk if whole is true or if it is
// short, otherwise its best excerpt. A chunk that is very short gets some of the
// text around it. The text is empty if there is no passage.
func cut(ctx context.Context, src Source, c Chunk, x Content, words *words, whole bool, budget int) (search.Passage,
	error) {
	p := search.Passage{Heading: x.Heading}
	limit := longest
	if !whole {
		limit = excerptSize
	}
	limit = min(limit, budget)
	off, end := x.Offset, min(x.Offset+min(x.Length, MaxChunk), x.TextSize)
	text, err := src.Window(ctx, c, off, end)
	if err != nil || end < off || int64(len(text)) < end-off { // the store is damaged
		return p, err
	}
	text = strings.ToValidUTF8(text, " ") // the same length unless the text is damaged
	from, to := trimmed(text, 0, len(text))
	switch n := utf8.RuneCountInString(text[from:to]); {
	case n > limit && (whole || n > wholeExcerpt || n > budget):
		from, to = excerptOf(text, analysis.LanguageOf(x.Lang), words, limit)
	case n < shortest:
		// The text around the chunk belongs to the passage.
		begin, beyond := max(off-Around, 0), min(end+Around, x.TextSize)
		around, err := src.Window(ctx, c, begin, beyond)
		if err != nil || int64(len(around)) < end-begin {
			return p, err
		}
		before, after := around[:off-begin], around[end-begin:]
		for before != "" && !utf8.RuneStart(before[0]) {
			before = before[1:]
		}
		text = before + text + strings.ToValidUTF8(after, "")
		off -= int64(len(before))
		from, to = extended(text, from+len(before), to+len(before))
	}
	p.Offset, p.Text = off+int64(from), text[from:to]
	if isShort(p.Text) {
		if !IsShort(text) {
			return search.Passage{}, nil // the budget is too small for a passage
		}
		all, err := src.Window(ctx, c, 0, min(x.TextSize, shortest*utf8.UTFMax))
		if err != nil {
			return p, err
		}
		if !IsShort(all) {
			p.Text = "" // the budget is too small for a passage
		}
	}
	p.Matches = spansOf(analysis.Matches(p.Text, analysis.LanguageOf(x.Lang), words.wanted))
	return p, nil
}

// Around is how many bytes before and after a short chunk may be in its passage.
const Around = 2 * shortest

// IsShort reports whether the text of a chunk is so short that its passage has some
// of the text around it.
func IsShort(text string) bool { return isShort(strings.TrimSpace(text)) }

func isShort(text string) bool { return utf8.RuneCountInString(text) < shortest }

// PageAt returns the label of the page on which a byte of a text is, or "". The
// pages are in order.
func PageAt(pages []document.Page, off int64) string {
	label := ""
	for _, p := range pages {
		if int64(p.Offset) > off {
			break
		}
		label = p.Label
	}
	return label
}

// HeadingAt returns the heading above a byte of a text, or "". The sections are in
// order.
func HeadingAt(sections []document.Section, off int64) string {
	heading := ""
	for _, s := range sections {
		if int64(s.Offset) > off {
			break
		}
		heading = s.Heading
	}
	return heading
}
