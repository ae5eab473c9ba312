// Package passage chooses the passages of search results and cuts them from texts.
// Every store uses it, so that the same documents give the same passages.
package passage

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// MaxChunks is the number of best chunks that passages are chosen from. Of 210
// questions (bench/notes/answers.md), 16 and 64 answer as many.
const MaxChunks = 32

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
	shortest   = 200
	longest    = 1600
	wholeChunk = 1000 // of a chunk that is shown whole
	windowSize = 300
)

// LeastScore is the part of the best score of a page below which a chunk gives
// one excerpt, and only to a document without another passage.
const LeastScore = 0.4

// OfDocument is how many passages of a document there are at most.
const OfDocument = 9

const (
	wholeOnes   = 2    // best chunks that are shown whole
	windowStep  = 150  // bytes from the beginning of a window to that of the next one, at least
	laterPart   = .002 // what a word at the end of a window counts less: of equal windows, one has more text behind its words
	headingPart = 0.5  // what a word that is only in the heading counts
	baseValue   = 0.4  // of the weight of all words, which a window with a word has beside that of its words, so that these do not outweigh the score of the chunk
	maxGap      = 100  // bytes between passages that become one, so that no gap hides an answer
	spentPart   = 0.8  // of the characters that are allowed: text beyond costs more than it answers
	leastSpent  = 1000 // characters that are spent if they are allowed
)

// A Chunk is a chunk of a document of a page of results.
type Chunk struct {
	Number   int // by which the source knows it
	Document int // place on the page, from 0
	Score    float64
}

// A Content is the text of a chunk and its place in its document. It is zero if the
// chunk does not exist.
type Content struct {
	Offset, Length int64 // of the chunk in the text, in bytes
	TextSize       int64 // of the whole text, in bytes
	Heading        string
	Lang           string // ISO 639-1

	// Text is at most [MaxChunk] bytes of the chunk. If these are short (see
	// [IsShort]), up to [Around] bytes before and after the chunk are part of it. It
	// begins at byte Start of the whole text. It is shorter if the store is damaged.
	Text  string
	Start int64
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
	// Locate sets the pages of passages and the headings of those that are inside
	// of chunks; see [PageAt] and [HeadingAt].
	Locate(ctx context.Context, places []Place) error
}

// Choose returns the passages of the documents of a page, with at most budget
// characters in all. chunks are the best chunks of these documents, best first, and
// one chunk of each document without a good one, of score 0. conditions are those of
// the search.
//
// The best chunks are shown whole. Then come short windows of all chunks by the score
// of the chunk times the weight of the different words in the window. No text is shown
// twice, and passages that are close together become one.
func Choose(ctx context.Context, src Source, documents int, chunks []Chunk, conditions []Condition,
	budget int) ([][]search.Passage, error) {
	if budget < shortest || len(chunks) == 0 {
		return make([][]search.Passage, documents), nil
	}
	contents, err := src.Contents(ctx, chunks)
	if err != nil {
		return nil, err
	}
	words := newWords(conditions)
	c := &choice{left: max(int(spentPart*float64(budget)), min(budget, leastSpent)), of: make([][]*passage, documents),
		shown: map[string]bool{}}
	known := map[string]bool{} // documents may have the same parts
	for i, x := range contents {
		t := newText(chunks[i], x)
		if chunk := t.text[t.from:t.to]; !known[chunk] {
			known[chunk] = true
			c.texts = append(c.texts, t)
		}
	}
	whole := 0
	for _, t := range c.texts {
		size := min(wholeChunk, c.left)
		if whole == wholeOnes || size < shortest || t.chunk.Score < LeastScore*c.texts[0].chunk.Score {
			break
		}
		windows := t.windows(words, size)
		if len(windows) > 0 && c.put(slices.MaxFunc(windows, byValue)) {
			whole++
		}
	}
	var windows []window
	for _, t := range c.texts {
		list := t.windows(words, windowSize)
		if s := t.chunk.Score; (s == 0 || s < LeastScore*c.texts[0].chunk.Score) && len(list) > 0 {
			list = []window{slices.MaxFunc(list, byValue)}
			list[0].only = true
		}
		windows = append(windows, list...)
	}
	slices.SortStableFunc(windows, func(a, b window) int { return byValue(b, a) })
	for _, w := range windows {
		if c.left < shortest {
			break
		}
		if w.value > 0 && !w.only || c.of[w.text.chunk.Document] == nil {
			c.put(w)
		}
	}
	return c.passages(ctx, src, words)
}

// A choice is the passages that are shown.
type choice struct {
	texts []*text
	left  int          // characters that may be spent
	of    [][]*passage // of each document, best first
	shown map[string]bool
}

// A passage is a part of the text of a document.
type passage struct {
	document int
	from, to int64 // in the text, in bytes
	text     string
	heading  string
	lang     analysis.Language
	inside   bool // it does not begin with its chunk
}

// put shows a window, if it is not shown yet and if enough characters are left. It
// reports whether it is shown now. A window that is close to passages of its document
// becomes one with them.
func (c *choice) put(w window) bool {
	t := w.text
	from, to := w.from, w.to
	if isShort(t.text[from:to]) {
		from, to = extended(t.text, from, to)
	}
	p := &passage{document: t.chunk.Document, from: t.start + int64(from), to: t.start + int64(to),
		text: t.text[from:to], heading: t.heading, lang: t.lang, inside: from != t.from}
	if isShort(p.text) && !t.whole || c.shown[p.text] {
		return false
	}
	list := c.of[p.document]
	joined, spent := *p, 0
	var near []*passage
	for _, o := range list {
		switch {
		case o.from <= p.from && p.to <= o.to:
			return false
		case p.from <= o.to+maxGap && o.from <= p.to+maxGap:
			near = append(near, o)
			if o.from < joined.from {
				joined.from, joined.heading, joined.inside = o.from, o.heading, o.inside
			}
			joined.to = max(joined.to, o.to)
			spent += utf8.RuneCountInString(o.text)
		}
	}
	if near != nil {
		joined.text = c.textOf(p.document, joined.from, joined.to)
		if n := utf8.RuneCountInString(joined.text); n == 0 || n > longest {
			if slices.ContainsFunc(near, func(o *passage) bool { return p.from < o.to && o.from < p.to }) {
				return false
			}
			near, joined, spent = nil, *p, 0
		}
	}
	n := utf8.RuneCountInString(joined.text) - spent
	if n > c.left || near == nil && len(list) == OfDocument {
		return false
	}
	c.left -= n
	c.shown[p.text] = true
	c.shown[joined.text] = true
	if near != nil {
		*near[0] = joined
		c.of[p.document] = slices.DeleteFunc(list, func(o *passage) bool { return slices.Contains(near[1:], o) })
		return true
	}
	c.of[p.document] = append(list, p)
	return true
}

// textOf returns a part of the text of a document, or "" if it is not in the chunks.
// Chunks follow each other without a gap.
func (c *choice) textOf(document int, from, to int64) string {
	var b strings.Builder
	for at := from; at < to; {
		i := slices.IndexFunc(c.texts, func(t *text) bool {
			return t.chunk.Document == document && t.start <= at && at < t.start+int64(len(t.text))
		})
		if i < 0 {
			return ""
		}
		t := c.texts[i]
		end := min(to, t.start+int64(len(t.text)))
		b.WriteString(t.text[at-t.start : end-t.start])
		at = end
	}
	return b.String()
}

// passages returns the passages of each document with their places and matches.
func (c *choice) passages(ctx context.Context, src Source, words *words) ([][]search.Passage, error) {
	out := make([][]search.Passage, len(c.of))
	var places []Place
	for document, list := range c.of {
		if list == nil {
			continue
		}
		out[document] = make([]search.Passage, len(list))
		for i, p := range list {
			out[document][i] = search.Passage{Heading: p.heading, Offset: p.from, Text: p.text,
				Matches: spansOf(analysis.Matches(p.text, p.lang, words.wanted))}
			places = append(places, Place{document, p.inside, &out[document][i]})
		}
	}
	if places == nil {
		return out, nil
	}
	return out, src.Locate(ctx, places)
}

// Around is how many bytes before and after a short chunk may be in its passage.
const Around = 2 * shortest

// LongChunk is a number of bytes. A chunk that has so many is not short.
const LongChunk = shortest * utf8.UTFMax

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
