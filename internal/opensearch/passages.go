package opensearch

import (
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/search"
)

// Sizes of passages, in characters, and their numbers.
const (
	longestPassage  = 1600
	shortestPassage = 200
	shortPassage    = 250
	excerptSize     = 400
	wholePassages   = 3
	passagesOfHit   = 9
	passageChunks   = 64
	leastScore      = 0.6
)

// passages adds passages to the hits of a page, with at most budget characters in
// all: those of the best chunks of all of these documents, then a short one for
// each other document.
func passages(m *matching, list []ranked, hits []search.Hit, t *texts, budget int) {
	number := map[string]int{}
	for i, r := range list {
		number[r.row.Revision] = i
	}
	chunks := slices.DeleteFunc(t.best, func(c chunkHit) bool {
		_, ok := number[c.Revision]
		return !ok
	})
	if m.query["match_none"] == nil {
		for _, r := range list { // those that are found by meaning, or without a condition on words
			if !slices.ContainsFunc(chunks, func(c chunkHit) bool { return c.Revision == r.row.Revision }) {
				chunks = append(chunks, chunkHit{chunkRow: chunkRow{Revision: r.row.Revision, N: max(r.chunk, 0)}})
			}
		}
	}
	ids := make([]string, len(chunks))
	for i, c := range chunks {
		ids[i] = chunkID(c.Revision, c.N)
	}
	texts := t.chunks
	want := wanted(m.leaves, "title")
	shown, whole := map[string]bool{}, 0
	add := func(i, limit int, id string) {
		c, ok := texts[id]
		if !ok || len(hits[i].Passages) >= passagesOfHit {
			return
		}
		p := passage(&list[i].row, c, want, min(limit, budget))
		n := utf8.RuneCountInString(p.Text)
		if n == 0 || n > budget || shown[p.Text] || slices.ContainsFunc(hits[i].Passages, func(o search.Passage) bool {
			return p.Offset < o.Offset+int64(len(o.Text)) && o.Offset < p.Offset+int64(len(p.Text))
		}) {
			return
		}
		budget -= n
		shown[p.Text] = true
		whole++
		hits[i].Passages = append(hits[i].Passages, p)
	}
	for k, c := range chunks {
		if budget < shortestPassage || c.score < leastScore*chunks[0].score {
			break
		}
		limit := longestPassage
		if whole >= wholePassages {
			limit = excerptSize
		}
		add(number[c.Revision], limit, ids[k])
	}
	for k, c := range chunks {
		if i := number[c.Revision]; budget >= shortestPassage && len(hits[i].Passages) == 0 {
			add(i, shortPassage, ids[k])
		}
	}
	for i, r := range list {
		for j, p := range hits[i].Passages {
			hits[i].Passages[j].Page = pageAt(r.row.Kept.Pages, p.Offset)
		}
	}
}

// pageAt returns the label of the page on which a byte of a text is, or "".
func pageAt(pages []document.Page, off int64) string {
	label := ""
	for _, p := range pages {
		if int64(p.Offset) <= off {
			label = p.Label
		}
	}
	return label
}

// passage returns the passage of a chunk, of at most limit characters: the whole
// chunk if it is short enough, otherwise the part with the first matches. A short
// chunk gets some of the text around it.
func passage(r *row, c chunkRow, want *analysis.Wanted, limit int) search.Passage {
	p := search.Passage{Heading: c.Heading}
	text, off := c.Text, int64(c.Offset)
	if n := utf8.RuneCountInString(strings.TrimSpace(text)); n < shortestPassage && c.Around != "" {
		from, around := off-int64(c.Before), c.Around
		start, end := trimmed(around, int(off-from), min(int(off-from)+len(text), len(around)))
		start, end = grown(around, start, end)
		p.Offset, p.Text = from+int64(start), around[start:end]
		if utf8.RuneCountInString(p.Text) <= limit {
			return p
		}
		text, off = p.Text, p.Offset
	}
	start, end := trimmed(text, 0, len(text))
	if utf8.RuneCountInString(text[start:end]) > limit {
		start, end = excerptOf(text, r.Lang, want, limit)
	}
	p.Offset, p.Text = off+int64(start), text[start:end]
	return p
}

// trimmed returns the part of text[from:to] without white space around it.
func trimmed(text string, from, to int) (int, int) {
	s := text[from:to]
	left := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	if left == len(s) {
		return from, from
	}
	return from + left, from + len(strings.TrimRight(s, " \t\r\n"))
}

// ends returns the ends of the lines and sentences of a text.
func ends(text string) []int {
	var out []int
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			out = append(out, i)
		case (c == '.' || c == '?' || c == '!') && i+1 < len(text) && text[i+1] == ' ':
			out = append(out, i+1)
		}
	}
	return append(out, len(text))
}

// grown makes a passage longer until it has shortestPassage characters: at its
// end, then at its beginning.
func grown(text string, from, to int) (int, int) {
	short := func() bool { return utf8.RuneCountInString(text[from:to]) < shortestPassage }
	all := ends(text)
	for _, e := range all {
		if e > to && short() {
			to = e
		}
	}
	for _, e := range slices.Backward(append([]int{0}, all...)) {
		if e < from && short() {
			from = e
		}
	}
	return trimmed(text, from, to)
}

// excerptOf returns a part of a text of at most size characters, from the line or
// sentence with the first match on.
func excerptOf(text, lang string, want *analysis.Wanted, size int) (from, to int) {
	at := 0
	if spans := analysis.Matches(text, analysis.LanguageOf(lang), want); len(spans) > 0 {
		at = spans[0].Start
	}
	for _, e := range ends(text) {
		if e <= at {
			from = e
		}
	}
	rest := text[from:]
	for utf8.RuneCountInString(rest) < size && from > 0 { // the end of the text: begin before it
		_, n := utf8.DecodeLastRuneInString(text[:from])
		from -= n
		rest = text[from:]
	}
	to, n := len(text), 0
	for i := range rest {
		if n++; n > size {
			to = from + i
			break
		}
	}
	if to < len(text) {
		for _, e := range slices.Backward(ends(text[from:to])[:]) {
			if e > (to-from)/2 && e < to-from {
				to = from + e
				break
			}
		}
		if i := strings.LastIndexAny(text[from:to], " \n"); to < len(text) && i > (to-from)/2 && text[to] != ' ' && text[to] != '\n' {
			to = from + i
		}
	}
	return trimmed(text, from, to)
}
