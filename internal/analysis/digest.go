package analysis

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// Bounds of the work for one digest.
const (
	digestMatches = 4096 // matches that are looked at
	digestTokens  = 4000 // tokens that are read once every term was seen
)

// A match is a wanted token in a text.
type match struct {
	start, end int // bytes
	runes      int // runes of the text before start
	term       int // number of the wanted term
}

// A Wanted is the set of words that excerpts should contain. It is made once for many
// texts. It is not safe for concurrent use.
type Wanted struct {
	terms    map[string]int // the number of each
	prefixes []string
	match    []func(word string) bool
	lone     bool // some term is to be matched as a prefix

	// Function words are only wanted if there is nothing else.
	ordinary bool // some term is no function word

	first [len(languages)]*beginnings // of words, if they are known
}

// NewWanted returns the terms, which are texts of tokens, all tokens that begin
// with one of the prefixes, and all words for whose [Token.Surface] one of the
// functions returns true. A term that is a single CJK character stands
// for every token that begins with it.
func NewWanted(terms, prefixes []string, match ...func(word string) bool) *Wanted {
	w := &Wanted{terms: make(map[string]int, len(terms)), prefixes: prefixes, match: match}
	w.ordinary = slices.ContainsFunc(terms, func(t string) bool { return !StopToken(t) })
	for _, t := range terms {
		if _, ok := w.terms[t]; ok || w.ordinary && StopToken(t) {
			continue
		}
		w.terms[t] = len(w.terms)
		w.lone = w.lone || Lone(t)
	}
	return w
}

// beginnings are the first two bytes of words, in lower case: by the first byte,
// the lowest five bits of the second.
type beginnings [256]uint32

// second returns the number of the bit of a second byte. A stem may have an i
// in place of a y.
func second(c byte) byte {
	if c |= 0x20; c == 'y' {
		c = 'i'
	}
	return c & 31
}

// add adds the beginning of a folded word or of its stem.
func (f *beginnings) add(word string) {
	if len(word) == 1 {
		f[word[0]] = math.MaxUint32
	} else if word != "" {
		f[word[0]] |= 1 << second(word[1])
	}
}

// mayBegin reports whether a word may begin like one that was added.
func (f *beginnings) mayBegin(word string) bool {
	c := word[0]
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return len(word) == 1 && f[c] != 0 || len(word) > 1 && f[c]>>second(word[1])&1 != 0
}

// beginnings returns what wanted words in a text of a language begin with.
func (w *Wanted) beginnings(l Language) *beginnings {
	if w.first[l] != nil {
		return w.first[l]
	}
	var first beginnings
	for t := range w.terms {
		first.add(strings.TrimPrefix(t, l.Prefix()))
	}
	for _, t := range w.prefixes {
		first.add(strings.TrimPrefix(t, l.Prefix()))
	}
	w.first[l] = &first
	return &first
}

// Digest returns the part of a text that says most about what is wanted, and
// where it has it. The digest is the window with the most different terms, of
// those the one with the most matches, and of those the first. Without a match
// it is the beginning of the text. w may be nil, if nothing is wanted.
//
// White space and control characters become single blanks, words are kept whole
// where possible, and "…" stands where the text continues. The digest is valid
// UTF-8 of at most size runes, not counting the ellipses. The spans are in order;
// matches next to each other share one.
func Digest(text string, l Language, w *Wanted, size int) (string, []Span) {
	ms := w.matches(text, l)
	first, last := bestWindow(ms, size)
	from := 0
	if len(ms) > 0 {
		from = windowStart(text, ms[first], ms[last], size)
	}
	from += blankPrefix(text[from:])
	to := windowEnd(text, from, size)
	if to == len(text) && from > 0 && len(ms) > 0 {
		// The text ends before the window is full: begin earlier.
		spare := size - foldedRunes(text[from:to])
		from = stepBack(text, from, spare)
		from += blankPrefix(text[from:])
		to = windowEnd(text, from, size)
	}
	return render(text, from, to, ms)
}

// Matches returns where a text has what is wanted, in order and without overlap.
// It returns at most digestMatches spans. w may be nil, if nothing is wanted.
func Matches(text string, l Language, w *Wanted) []Span {
	var spans []Span
	for _, m := range w.matches(text, l) {
		if n := len(spans); n > 0 && m.start < spans[n-1].End {
			spans[n-1].End = max(spans[n-1].End, m.end)
			continue
		}
		spans = append(spans, Span{Start: m.start, End: m.end})
	}
	return spans
}

// matches returns the wanted tokens of a text in order.
func (w *Wanted) matches(text string, l Language) []match {
	if w == nil || len(w.terms) == 0 && len(w.prefixes) == 0 && len(w.match) == 0 {
		return nil
	}
	open := len(w.prefixes) > 0 || len(w.match) > 0 // for words that are not known
	var ms []match
	var stop []bool           // of each match, if words are not known: it is a function word
	var others map[string]int // numbers of tokens that are not in terms
	ordinary := w.ordinary
	seen := make([]bool, len(w.terms))
	missing := len(w.terms)
	tokens, runes, at := 0, 0, 0
	sc := scanner{s: text, language: l}
	if len(w.match) == 0 {
		sc.first = w.beginnings(l)
	}
	sc.yield = func(t Token) bool {
		if tokens++; missing == 0 && tokens > digestTokens && !open || len(ms) >= digestMatches {
			return false
		}
		if t.Text == "" {
			return true
		}
		term, ok := w.terms[t.Text]
		end := t.End
		if !ok && w.lone && t.CJK {
			r, n := utf8.DecodeRuneInString(t.Text)
			if term, ok = w.terms[string(r)]; ok && n < len(t.Text) {
				end = firstCharacter(text, t)
			}
		}
		if ok && !seen[term] {
			seen[term] = true
			missing--
		}
		if !ok && open && w.means(t) {
			if others == nil {
				others = map[string]int{}
			}
			if term, ok = others[t.Text]; !ok {
				term, ok = len(w.terms)+len(others), true
				others[t.Text] = term
			}
		}
		if !ok {
			return true
		}
		if open {
			isStop := StopToken(t.Text)
			if isStop && ordinary {
				return true
			}
			stop = append(stop, isStop)
			ordinary = ordinary || !isStop
		}
		runes += utf8.RuneCountInString(text[at:t.Start])
		at = t.Start
		ms = append(ms, match{start: t.Start, end: end, runes: runes, term: term})
		return true
	}
	sc.scan()
	if ordinary && len(stop) > 0 {
		kept := ms[:0]
		for i, m := range ms {
			if !stop[i] {
				kept = append(kept, m)
			}
		}
		ms = kept
	}
	return ms
}

// means reports whether a token is wanted because of its prefix or its surface.
func (w *Wanted) means(t Token) bool {
	return slices.ContainsFunc(w.prefixes, func(p string) bool { return strings.HasPrefix(t.Text, p) }) ||
		slices.ContainsFunc(w.match, func(match func(string) bool) bool { return match(t.Surface) })
}

// firstCharacter returns the end in the text of the first character of a CJK token.
// Half-width kana have a separate character for voicing.
func firstCharacter(text string, t Token) int {
	_, n := utf8.DecodeRuneInString(text[t.Start:])
	switch r, m := utf8.DecodeRuneInString(text[t.Start+n:]); r {
	case 'ﾞ', 'ﾟ', '\u3099', '\u309A':
		n += m
	}
	return min(t.Start+n, t.End)
}

// bestWindow returns the first and the last match of the best window of size runes;
// 0, 0 if there is no match.
func bestWindow(ms []match, size int) (first, last int) {
	terms := 0
	for _, m := range ms {
		terms = max(terms, m.term+1)
	}
	count := make([]int, terms) // matches in the window, by term
	best, different, lo := -1, 0, 0
	for hi := range ms {
		if count[ms[hi].term]++; count[ms[hi].term] == 1 {
			different++
		}
		for lo < hi && ms[hi].runes-ms[lo].runes+(ms[hi].end-ms[hi].start) > size {
			if count[ms[lo].term]--; count[ms[lo].term] == 0 {
				different--
			}
			lo++
		}
		if score := different*digestMatches + hi - lo; score > best {
			best, first, last = score, lo, hi
		}
	}
	return first, last
}

// windowStart returns the start of a window that has the matches and some of the
// text before them.
func windowStart(text string, first, last match, size int) int {
	spare := size - (last.runes - first.runes) - (last.end - last.start)
	return stepBack(text, first.start, min(spare/2, size/4))
}

// stepBack returns a word border at most n runes before the offset at, or the
// beginning of the text if that is as near. It returns at if no border is near.
func stepBack(text string, at, n int) int {
	from := at
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from == 0 {
		return 0
	}
	for from < at {
		if isBorder(text, from) {
			return from
		}
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	return at
}

// isBorder reports whether a text may be cut at the offset i: next to white space or
// between CJK characters.
func isBorder(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	if isSpace(before) || isSpace(after) {
		return true
	}
	return (IsCJK(before) || IsCJK(after)) && !unicode.IsMark(after)
}

// isSpace reports whether r becomes a blank.
func isSpace(r rune) bool { return r <= ' ' || r >= 0x7f && isWideSpace(r) }

// isWideSpace is isSpace for characters above '~'.
func isWideSpace(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// blankPrefix returns the length of the white space that s begins with.
func blankPrefix(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// windowEnd returns the end of a window of size runes that begins at from, at a word
// border if there is one after from.
func windowEnd(text string, from, size int) int {
	border := from // last place to cut
	n := 0
	space := false
	for i, r := range text[from:] {
		i += from
		if isSpace(r) {
			if !space && n > 0 {
				border = i
			}
			space = true
			continue
		}
		if space {
			n++ // the blank before r
		}
		if n >= size {
			if !space && isBorder(text, i) {
				border = i
			}
			if border == from {
				return i
			}
			return border
		}
		ascii := i > from && r < utf8.RuneSelf && text[i-1] < utf8.RuneSelf // not white space
		if i > from && !space && !ascii && isBorder(text, i) {
			border = i
		}
		space = false
		n++
	}
	return len(text)
}

// foldedRunes counts the runes of s with white space folded.
func foldedRunes(s string) int {
	n, space := 0, true
	for _, r := range s {
		if isSpace(r) {
			space = true
			continue
		}
		if space && n > 0 {
			n++
		}
		space = false
		n++
	}
	return n
}

// render returns text[from:to] with white space folded, and the matches in it.
func render(text string, from, to int, ms []match) (string, []Span) {
	var b strings.Builder
	b.Grow(to - from + 2*len("…"))
	if from > blankPrefix(text) {
		b.WriteString("…")
	}
	var spans []Span
	open := 0 // end in text of the last span, 0 once its End is set
	space := false
	for i, r := range text[from:to] {
		i += from
		if open > 0 && i >= open && (len(ms) == 0 || ms[0].start > i) {
			spans[len(spans)-1].End = b.Len()
			open = 0
		}
		if isSpace(r) {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		for len(ms) > 0 && ms[0].start <= i {
			if ms[0].end > i {
				if open == 0 {
					spans = append(spans, Span{Start: b.Len()})
				}
				open = max(open, ms[0].end)
			}
			ms = ms[1:]
		}
		b.WriteRune(r)
	}
	if open > 0 {
		spans[len(spans)-1].End = b.Len()
	}
	if blankPrefix(text[to:]) < len(text)-to {
		b.WriteString("…")
	}
	return b.String(), spans
}
