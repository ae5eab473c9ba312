package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/search"
)

// Sizes of passages, in characters.
const (
	longestPassage  = 1000 // preferred to the 1600 that are allowed: the rest of a long chunk says less
	shortestPassage = 200
	shortPassage    = 250
	excerptSize     = 300 // of the passages after the first wholePassages
	wholeExcerpt    = excerptSize * 5 / 4
)

// Numbers of passages.
const (
	wholePassages    = 2  // the best ones are not cut to excerptSize
	passagesOfHit    = 9  // of one document
	passageChunks    = 64 // best chunks of which passages are made
	nearPassages     = 20 // best chunks for which the distances between the words count
	repeatedWords    = 3  // occurrences of a word that count in an excerpt
	repeatedWordPart = 0.2
	laterWordPart    = 0.5 // what a word at the end of an excerpt counts less than one at its beginning
	beginBonus       = 0.4 // part of the weight of an excerpt that begins with the text
	paragraphBonus   = 0.2 // likewise with a paragraph
	leastScore       = 0.6 // part of the best score; chunks below it give no passages
	otherHits        = 7   // if there are so many other documents, half of the characters is left for them
)

// A passageChunk is a chunk that passages are made of.
type passageChunk struct {
	ranked
	hit int // of the page

	// These are set by readChunks, and are zero if there is no such chunk.
	off, len, size int64 // of the chunk in the text, and the size of the text
	heading        string
	lang           string
}

// passages returns the passages of the documents of a page, with at most budget
// characters in all. They are taken from the best chunks of all of these
// documents: the best ones whole, then excerpts, until a part of the budget is
// spent or the scores are far below the best one. Each other document gets one
// short excerpt.
// No text is repeated.
func (e *evaluator) passages(ctx context.Context, list []ranked, m *matched, budget int) ([][]search.Passage, error) {
	out := make([][]search.Passage, len(list))
	best, err := e.bestChunks(ctx, list, m)
	if err != nil {
		return nil, err
	}
	hits := make(map[int64]int, len(list)) // by document
	for i, r := range list {
		hits[r.doc] = i
	}
	chunks := make([]passageChunk, len(best))
	for i, r := range best {
		chunks[i] = passageChunk{ranked: r, hit: hits[r.doc]}
	}
	weights := e.weighing(m.leaves)
	var places []place
	whole := 0
	shown := map[string]bool{} // texts of passages
	add := func(c passageChunk, p search.Passage, n int) {
		budget -= n
		shown[p.Text] = true
		places = append(places, place{c.hit, len(out[c.hit]), p.Offset != c.off})
		out[c.hit] = append(out[c.hit], p)
	}
	rest := budget * min(len(list)-1, otherHits) / (2 * otherHits)
	for i, c := range chunks {
		if budget-rest < shortestPassage || c.score < leastScore*chunks[0].score {
			break
		}
		if i%chunksAtOnce == 0 {
			if err := e.readChunks(ctx, chunks[i:min(i+chunksAtOnce, len(chunks))]); err != nil {
				return nil, err
			}
		}
		if c = chunks[i]; len(out[c.hit]) == passagesOfHit {
			continue
		}
		p, err := e.passage(ctx, c, weights, whole < wholePassages, budget)
		if err != nil {
			return nil, err
		}
		if p.Text == "" || shown[p.Text] || overlaps(out[c.hit], p) {
			continue
		}
		whole++
		if n := utf8.RuneCountInString(p.Text); n <= budget {
			add(c, p, n)
		}
	}
	// Every other document has a short one, as long as the budget lasts.
	chunks = slices.DeleteFunc(chunks, func(c passageChunk) bool { return len(out[c.hit]) > 0 })
	for i, c := range chunks {
		if budget < shortestPassage {
			break
		}
		if i%chunksAtOnce == 0 {
			if err := e.readChunks(ctx, chunks[i:min(i+chunksAtOnce, len(chunks))]); err != nil {
				return nil, err
			}
		}
		if c = chunks[i]; len(out[c.hit]) > 0 {
			continue
		}
		p, err := e.passage(ctx, c, weights, false, min(budget, shortPassage))
		if err != nil {
			return nil, err
		}
		if n := utf8.RuneCountInString(p.Text); n > 0 && n <= budget && !shown[p.Text] {
			add(c, p, n)
		}
	}
	return out, e.locate(ctx, list, out, places)
}

// chunksAtOnce is how many chunks readChunks is called with.
const chunksAtOnce = 16

// overlaps reports whether a passage shares text with one of list.
func overlaps(list []search.Passage, p search.Passage) bool {
	return slices.ContainsFunc(list, func(o search.Passage) bool {
		return p.Offset < o.Offset+int64(len(o.Text)) && o.Offset < p.Offset+int64(len(p.Text))
	})
}

// readChunks reads the rows of chunks.
func (e *evaluator) readChunks(ctx context.Context, chunks []passageChunk) error {
	rows := make([]int64, len(chunks))
	for i, c := range chunks {
		rows[i] = c.chunk
	}
	return collect(ctx, e.tx, func(rows *sql.Rows) error {
		var i int
		var off, n, size int64
		var heading, lang string
		err := rows.Scan(&i, &off, &n, &heading, &size, &lang)
		c := &chunks[i]
		c.off, c.len, c.heading, c.size, c.lang = off, n, heading, size, lang
		return err
	}, chunkRowsQuery, jsonList(rows))
}

const chunkRowsQuery = `SELECT j.key, c.off, c.len, c.heading, d.text_size, d.lang
	FROM json_each(?) j CROSS JOIN chunks c ON c.id=j.value CROSS JOIN docs d ON d.id=c.id>>20`

// A place is that of a passage: number n of a hit of the page. If inside is true,
// it does not begin with its chunk, and another heading may be above it.
type place struct {
	hit, n int
	inside bool
}

// locate sets the pages and the headings of passages.
func (e *evaluator) locate(ctx context.Context, list []ranked, out [][]search.Passage, places []place) error {
	if len(places) == 0 {
		return nil
	}
	var all []byte // for each passage: the document, the offset, and 1 if its heading is to be read
	for _, p := range places {
		inside := 0
		if p.inside {
			inside = 1
		}
		all = fmt.Appendf(all, ",[%d,%d,%d]", list[p.hit].doc, out[p.hit][p.n].Offset, inside)
	}
	all[0] = '['
	sections := map[int][]document.Section{} // by hit
	return collect(ctx, e.tx, func(rows *sql.Rows) error {
		var i int
		var page sql.NullString
		var body sql.RawBytes
		if err := rows.Scan(&i, &page, &body); err != nil {
			return err
		}
		hit := places[i].hit
		p := &out[hit][places[i].n]
		p.Page = page.String
		if body == nil {
			return nil
		}
		list, ok := sections[hit]
		if !ok {
			if err := json.Unmarshal(body, &list); err != nil {
				return err
			}
			sections[hit] = list
		}
		p.Heading = ""
		for _, s := range list {
			if int64(s.Offset) > p.Offset {
				break
			}
			p.Heading = s.Heading
		}
		return nil
	}, placesQuery, string(append(all, ']')))
}

// placesQuery reads the page and the sections of places in texts.
const placesQuery = `SELECT j.key, (SELECT p.label FROM pages p WHERE p.doc=j.value->>0 AND p.off<=j.value->>1 ORDER BY p.off DESC LIMIT 1), s.body
	FROM json_each(?) j LEFT JOIN sections s ON j.value->>2 AND s.id=j.value->>0`

// bestChunks returns the best chunks of some documents, best first. Of a
// document without a chunk that matches, it returns the first one.
func (e *evaluator) bestChunks(ctx context.Context, list []ranked, m *matched) ([]ranked, error) {
	rows := make([]int64, len(list))
	for i, r := range list {
		rows[i] = r.doc
	}
	slices.Sort(rows)
	within, err := e.view.Rows(rows)
	if err != nil {
		return nil, err
	}
	var best []ranked
	if len(m.leaves) > 0 {
		leaves := leavesOf(m.leaves)
		hits, err := e.search.TopChunks(ctx, leaves, within, passageChunks)
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if err := e.search.PreferNear(hits[:min(len(hits), nearPassages)], leaves); err != nil {
			return nil, err
		}
		for _, h := range hits {
			best = append(best, ranked{doc: h.Row, chunk: rowOf(h.Row, h.Chunk), score: float64(h.Score)})
		}
	}
	if m.dense != nil {
		fused, err := m.dense.chunks(ctx, rows, best, passageWeight, -1)
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if fused != nil {
			best = fused
		}
	}
	seen := map[int64]bool{}
	for _, r := range best {
		seen[r.doc] = true
	}
	for _, r := range list {
		if !seen[r.doc] {
			best = append(best, ranked{doc: r.doc, chunk: rowOf(r.doc, 0)})
		}
	}
	return best, nil
}

// A weighing is what the words of a search count in an excerpt.
type weighing struct {
	tokens  map[string]float32
	weights []float32
	leaves  []*leaf
	signs   bool // some of tokens are of analysis.Signs
}

func (e *evaluator) weighing(leaves []*leaf) *weighing {
	w := &weighing{tokens: map[string]float32{}, leaves: leaves}
	for _, l := range leaves {
		weight := e.search.WeightOf(l.Leaf)
		w.weights = append(w.weights, weight)
		for _, p := range l.patterns {
			for i, t := range p.Tokens {
				if !p.Prefix || i < len(p.Tokens)-1 || analysis.Lone(t) {
					w.tokens[t] = max(w.tokens[t], weight)
					w.signs = w.signs || analysis.IsSign(t)
				}
			}
		}
	}
	return w
}

// tokensOf returns the tokens of a text, without most of those of weight 0.
func (w *weighing) tokensOf(text string, lang analysis.Language) iter.Seq[analysis.Token] {
	if slices.ContainsFunc(w.leaves, func(l *leaf) bool { return l.match != nil }) {
		return analysis.Tokens(text, lang)
	}
	return analysis.TokensLike(text, lang, maps.Keys(w.tokens))
}

// of returns the weight of a token, 0 if the search does not look for it.
func (w *weighing) of(t analysis.Token) float32 {
	weight := w.tokens[t.Text]
	for i, l := range w.leaves {
		if w.weights[i] > weight && l.match != nil && l.match(t.Surface) {
			weight = w.weights[i]
		}
	}
	return weight
}

// passage returns the passage of a chunk: the whole chunk if whole is true or if
// it is short, otherwise its best excerpt.
func (e *evaluator) passage(ctx context.Context, c passageChunk, weights *weighing, whole bool, budget int) (search.Passage, error) {
	p := search.Passage{Heading: c.heading}
	limit := longestPassage
	if !whole {
		limit = excerptSize
	}
	limit = min(limit, budget)
	end := min(c.off+min(c.len, maxExcerpted), c.size)
	begin := max(c.off-2*shortestPassage, 0)
	around, err := window(ctx, e.tx, c.doc, begin, min(end+2*shortestPassage, c.size))
	if err != nil || int64(len(around)) < end-begin { // the database was changed by hand
		return p, err
	}
	before, text, after := around[:c.off-begin], around[c.off-begin:end-begin], around[end-begin:]
	text = strings.ToValidUTF8(text, " ") // the same length unless the text is damaged
	from, to := trimmed(text, 0, len(text))
	off := c.off
	switch n := utf8.RuneCountInString(text[from:to]); {
	case n > limit && (whole || n > wholeExcerpt || n > budget):
		from, to = excerptOf(text, analysis.LanguageOf(c.lang), weights, limit)
	case n < shortestPassage:
		// The text around the chunk belongs to the passage.
		for before != "" && !utf8.RuneStart(before[0]) {
			before = before[1:]
		}
		text = before + text + strings.ToValidUTF8(after, "")
		off -= int64(len(before))
		from, to = extended(text, from+len(before), to+len(before))
	}
	p.Offset, p.Text = off+int64(from), text[from:to]
	if utf8.RuneCountInString(p.Text) < shortestPassage {
		all, err := window(ctx, e.tx, c.doc, 0, min(c.size, shortestPassage*utf8.UTFMax))
		if err != nil {
			return p, err
		}
		if utf8.RuneCountInString(strings.TrimSpace(all)) >= shortestPassage {
			p.Text = "" // the budget is too small for a passage
		}
	}
	return p, nil
}

// extended makes a passage longer until it has shortestPassage characters: at its
// end, then at its beginning.
func extended(text string, from, to int) (int, int) {
	short := func() bool { return utf8.RuneCountInString(text[from:to]) < shortestPassage }
	end := to
	for _, u := range unitsOf(text[end:]) {
		if short() {
			to = end + u.to
		}
	}
	for _, u := range slices.Backward(unitsOf(text[:from])) {
		if short() {
			from = u.from
		}
	}
	return from, to
}

// A unit is a line or a sentence of a text, without white space around it.
type unit struct{ from, to int }

// unitsOf returns the lines and sentences of a text.
func unitsOf(text string) []unit {
	var units []unit
	add := func(from, to int) {
		if from, to = trimmed(text, from, to); from < to {
			units = append(units, unit{from, to})
		}
	}
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			add(from, i)
			from = i + 1
		case (c == '.' || c == '?' || c == '!') && i+1 < len(text) && text[i+1] == ' ' && i-from > 20:
			add(from, i+1)
			from = i + 1
		}
	}
	add(from, len(text))
	return units
}

// trimmed returns the part of text[from:to] without white space around it.
func trimmed(text string, from, to int) (int, int) {
	s := text[from:to]
	left := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	if left == len(s) {
		return from, from
	}
	return from + left, from + len(strings.TrimRightFunc(s, unicode.IsSpace))
}

// excerptOf returns the run of lines and sentences of at most size characters
// with the greatest weight of different words, of those the first. What a word
// means stands behind it, and what a text is about at its beginning: so a word
// counts less near the end of the run, and the beginnings of the text and of
// paragraphs are preferred.
func excerptOf(text string, lang analysis.Language, weights *weighing, size int) (from, to int) {
	units := unitsOf(text)
	if len(units) == 0 {
		return 0, 0
	}
	type term struct {
		number int // of its token
		weight float32
		at     int // in text
	}
	terms, numbers := make([][]term, len(units)), map[string]int{}
	add := func(unit int, token string, weight float32, at int) {
		n, ok := numbers[token]
		if !ok {
			n = len(numbers)
			numbers[token] = n
		}
		terms[unit] = append(terms[unit], term{n, weight, at})
	}
	at := 0
	for tok := range weights.tokensOf(text, lang) {
		w := weights.of(tok)
		if w == 0 {
			continue
		}
		for at < len(units)-1 && tok.Start >= units[at+1].from {
			at++
		}
		add(at, tok.Text, w, tok.Start)
	}
	if weights.signs {
		for i, u := range units {
			for _, sign := range analysis.Signs(text[u.from:u.to]) {
				if w := weights.tokens[sign]; w > 0 {
					add(i, sign, w, u.from)
				}
			}
		}
	}
	// The number of characters before each unit, and up to its end.
	before, through := make([]int, len(units)), make([]int, len(units))
	n, end := 0, 0
	for i, u := range units {
		before[i] = n + utf8.RuneCountInString(text[end:u.from])
		through[i] = before[i] + utf8.RuneCountInString(text[u.from:u.to])
		n, end = through[i], u.to
	}
	best, first, last := float32(-1), 0, 0
	seen := make([]int, len(numbers)) // by number of token
	for i := range units {
		j := i
		for j+1 < len(units) && through[j+1]-before[i] <= size {
			j++
		}
		clear(seen)
		score := float32(0)
		for _, ts := range terms[i : j+1] {
			for _, t := range ts {
				part := 1 - laterWordPart*min(float32(t.at-units[i].from)/float32(size), 1)
				switch n := seen[t.number]; {
				case n >= repeatedWords:
					part = 0
				case n > 0:
					part *= repeatedWordPart
				}
				seen[t.number]++
				score += part * t.weight
			}
		}
		switch {
		case i == 0:
			score *= 1 + beginBonus
		case strings.Count(text[units[i-1].to:units[i].from], "\n") > 1:
			score *= 1 + paragraphBonus
		}
		if score > best {
			best, first, last = score, i, j
		}
	}
	// The rest of the size is filled with what precedes.
	for first > 0 && through[last]-before[first-1] <= size {
		first--
	}
	from, to = units[first].from, units[last].to
	if through[last]-before[first] > size { // one long line
		heaviest := term{at: from}
		for _, t := range terms[first] {
			if t.weight > heaviest.weight {
				heaviest = t
			}
		}
		return around(text, from, to, heaviest.at, size)
	}
	return from, to
}

// around returns the part of text[from:to] with at most size characters in which
// place at is, between words where possible.
func around(text string, from, to, at, size int) (int, int) {
	back := func(from, at, n int) int {
		for ; n > 0 && at > from; n-- {
			_, k := utf8.DecodeLastRuneInString(text[from:at])
			at -= k
		}
		return at
	}
	start := back(from, at, size/3)
	start = min(start, back(from, to, size)) // full size at the end, too
	if start > from {
		if i := strings.IndexByte(text[start:max(at, start)], ' '); i >= 0 && i < size/4 {
			start += i + 1
		}
	}
	return start, start + len(cutRunes(text[start:to], size))
}

// cutRunes returns the first n runes of s, cut after a word if there is one in
// the second half.
func cutRunes(s string, n int) string {
	end := len(s)
	for i := range s {
		if n == 0 {
			end = i
			break
		}
		n--
	}
	cut := s[:end]
	if end < len(s) {
		if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
			cut = cut[:i]
		}
	}
	return cut
}
