package opensearch

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
)

// Limits on one document, as in package index.
const (
	titleSize = 1000   // bytes of a title and of a heading that are analysed
	maxWords  = 50_000 // words of a text that can be suggested
)

// The ranking is BM25F over chunks, with the constants of package relevance. The
// weighed frequency of a token is computed here and stored as its frequency, in
// units of 1/scale, so that OpenSearch only saturates it. Because the average
// lengths of a growing index would change it, they are constants.
const scale = 64

// A weighing is the weight of a field, how much its length counts, and the length
// that counts as average.
type weighing struct{ weight, b, average float64 }

var (
	ofTitle   = weighing{relevance.TitleWeight, relevance.ShortB, 6}
	ofName    = weighing{relevance.NameWeight, relevance.ShortB, 3}
	ofHeading = weighing{relevance.HeadingWeight, relevance.ShortB, 6}
	ofText    = weighing{relevance.TextWeight, relevance.TextB, 120}
)

// A frequencies is the weighed frequencies of the tokens of a chunk.
type frequencies map[string]float64

// add adds the tokens of a field that has a number of positions.
func (f frequencies) add(tokens []string, length int, w weighing) {
	unit := w.weight / (1 - w.b + w.b*float64(length)/w.average)
	for _, t := range tokens {
		f[t] += unit
	}
}

// text returns the frequencies as the text of a field with the analyzer
// "frequencies".
func (f frequencies) text() string {
	var b strings.Builder
	for t, n := range f {
		b.WriteString(t)
		b.WriteString(between)
		b.WriteString(strconv.Itoa(max(1, int(math.Round(n*scale)))))
		b.WriteByte(' ')
	}
	return b.String()
}

// An analysed is the tokens of a text.
type analysed struct {
	text   string   // for a field with the analyzer "tokens"
	tokens []string // all of them
	length int      // positions
	words  []string // as people write them
}

// analyse analyses a text. It returns at most words different words.
func analyse(text string, l analysis.Language, words int) analysed {
	var a analysed
	var b strings.Builder
	seen := map[string]bool{}
	for x := range analysis.Analyze(text, l) {
		if x.Word != "" && len(seen) < words && !seen[x.Word] {
			seen[x.Word] = true
			a.words = append(a.words, x.Word)
		}
		if x.Token == "" {
			continue
		}
		switch {
		case x.Beside && b.Len() > 0:
			b.WriteString(between)
		default:
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			a.length++
		}
		b.WriteString(x.Token)
		a.tokens = append(a.tokens, x.Token)
	}
	a.text = b.String()
	return a
}

// chunksOf returns the chunks of a document, one for a document without text,
// which can be found by its title.
func chunksOf(d *document.Document) []document.Chunk {
	if len(d.Chunks) == 0 {
		return []document.Chunk{{Length: len(d.Text)}}
	}
	return d.Chunks
}

// analyse sets what searches use of a row to that of a document.
func (r *row) analyse(d *document.Document) {
	l := analysis.LanguageOf(d.Lang)
	short := func(s string, words int) analysed {
		return analyse(strings.ToValidUTF8(document.Truncate(s, titleSize), " "), l, words)
	}
	title, name := short(d.Title, maxWords), analyse(strings.ToValidUTF8(d.Filename, " "), l, 0)
	r.TitleTokens, r.TitleWords, r.TitleKey = title.text, title.words, titleKey(d.Title, l)
	r.NameKey = retrieval.NameKey(d.Filename)
	r.All = []string{title.text, name.text}
	text := analyse(d.Text, l, maxWords)
	r.TextTokens, r.Words = text.text, sorted(append(text.words, title.words...))
	var heading analysed
	chunks := chunksOf(d)
	for i, c := range chunks {
		if i == 0 || c.Heading != chunks[i-1].Heading {
			heading = short(c.Heading, 0)
			r.All = append(r.All, heading.text)
		}
		text := analyse(analysis.Overlapped(d.Text, c.Offset, c.Offset+c.Length), l, 0)
		f := frequencies{}
		f.add(title.tokens, title.length, ofTitle)
		f.add(name.tokens, name.length, ofName)
		f.add(heading.tokens, heading.length, ofHeading)
		if c.Offset > 0 && analysis.IsListing(d.Text[c.Offset:c.Offset+c.Length], d.Lang) {
			text.length *= relevance.ListingTimes
		}
		f.add(text.tokens, text.length, ofText)
		row := chunkRow{N: i, Offset: c.Offset, End: c.Offset + c.Length, Tokens: f.text()}
		row.Kept = pieceOf(d, c).pack(row)
		r.Chunks = append(r.Chunks, row)
	}
	r.All = append(r.All, text.text)
}

// titleKey returns the tokens of a title, which a query that is the title has, too.
func titleKey(title string, l analysis.Language) string {
	var tokens []string
	for t := range analysis.Tokens(title, l) {
		tokens = append(tokens, t.Text)
	}
	return strings.Join(tokens, " ")
}

// pieceOf returns what passages of a chunk are made of.
func pieceOf(d *document.Document, c document.Chunk) piece {
	p := piece{Heading: c.Heading, Text: d.Text[c.Offset : c.Offset+c.Length]}
	from, to := max(0, c.Offset-passage.Around), min(len(d.Text), c.Offset+c.Length+passage.Around)
	p.Sections = within(d.Sections, from, to, func(s document.Section) int { return s.Offset })
	p.Pages = within(d.Pages, from, to, func(p document.Page) int { return p.Offset })
	if passage.IsShort(p.Text) && c.Length < len(d.Text) {
		for from > 0 && !utf8.RuneStart(d.Text[from]) {
			from--
		}
		for to < len(d.Text) && !utf8.RuneStart(d.Text[to]) {
			to++
		}
		p.Around, p.Before = d.Text[from:to], c.Offset-from
	}
	return p
}

// within returns those of some places in order that begin in a part of a text, and
// the last one before it.
func within[T any](places []T, from, to int, offset func(T) int) []T {
	first, last := 0, 0
	for i, p := range places {
		if offset(p) <= from {
			first = i
		}
		if offset(p) <= to {
			last = i + 1
		}
	}
	return places[min(first, last):last]
}

// embedText is of how many bytes of the text of a chunk its vector is made.
const embedText = 1200

// embedTexts returns what the vectors of the chunks of a document are made of.
func embedTexts(d *document.Document) []string {
	chunks := chunksOf(d)
	out := make([]string, len(chunks))
	for i, c := range chunks {
		out[i] = embedTextOf(d.Title, c.Heading, d.Text[c.Offset:c.Offset+c.Length])
	}
	return out
}

// embedTextOf returns what the vector of a chunk is made of.
func embedTextOf(title, heading, text string) string {
	parts := []string{document.Truncate(title, titleSize), heading, document.Truncate(text, embedText)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}
