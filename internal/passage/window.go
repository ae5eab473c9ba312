package passage

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
)

// A text is the text of a chunk.
type text struct {
	chunk    Chunk
	text     string // valid UTF-8; with some of the text around the chunk if it is short
	start    int64  // of text in the document
	from, to int    // the chunk in text, without white space around it
	whole    bool   // text is the whole text of the document
	heading  string
	lang     analysis.Language
}

// newText returns the text of a chunk, which is empty if the store is damaged.
func newText(c Chunk, x Content) *text {
	t := &text{chunk: c, heading: x.Heading, lang: analysis.LanguageOf(x.Lang)}
	end := min(x.Offset+min(x.Length, MaxChunk), x.TextSize)
	s, start := x.Text, x.Start
	if x.Offset < start || end < x.Offset || start+int64(len(s)) < end {
		return t
	}
	for s != "" && !utf8.RuneStart(s[0]) { // what precedes the chunk may begin inside of a rune
		s, start = s[1:], start+1
	}
	chunk := s[x.Offset-start : end-start]
	after := strings.ToValidUTF8(s[end-start:], "")
	// The length stays the same unless the text is damaged.
	t.text = strings.ToValidUTF8(s[:x.Offset-start], " ") + strings.ToValidUTF8(chunk, " ") + after
	t.start, t.whole = start, start == 0 && start+int64(len(s)) >= x.TextSize
	from := int(x.Offset - start)
	t.from, t.to = trimmed(t.text, from, min(from+len(chunk), len(t.text)))
	return t
}

// A window is a run of lines and sentences of a chunk.
type window struct {
	text     *text
	from, to int
	value    float64 // the score of the chunk times the weight of the different words, and of baseValue
	only     bool    // it is for a document without another passage
}

func byValue(a, b window) int { return cmp.Compare(a.value, b.value) }

// windows returns runs of at most size characters, each of which begins windowStep
// bytes or more after the one before. A word counts once in each, and less if it is only in the
// heading. The chunk is one window if it has no more than size characters.
func (t *text) windows(words *words, size int) []window {
	units := unitsOf(t.text[t.from:t.to], size)
	if len(units) == 0 {
		return nil
	}
	var weights []float64
	numbers := map[string]int{} // of words, in weights
	number := func(token string, weight float32) int {
		n, ok := numbers[token]
		if !ok {
			n = len(weights)
			numbers[token], weights = n, append(weights, float64(weight))
		}
		return n
	}
	in := make([][]int, len(units)) // the words of each unit
	unit := 0
	for tok := range words.tokensOf(t.text[t.from:t.to], t.lang) {
		if w := words.weight(tok); w > 0 {
			for unit < len(units)-1 && tok.Start >= units[unit+1].from {
				unit++
			}
			in[unit] = append(in[unit], number(tok.Text, w))
		}
	}
	if words.signs {
		for i, u := range units {
			for _, sign := range analysis.Signs(t.text[t.from+u.from : t.from+u.to]) {
				if w := words.tokens[sign]; w > 0 {
					in[i] = append(in[i], number(sign, w))
				}
			}
		}
	}
	var heading []int
	for tok := range words.tokensOf(t.heading, t.lang) {
		if w := words.weight(tok); w > 0 {
			heading = append(heading, number(tok.Text, w))
		}
	}
	slices.Sort(heading)
	heading = slices.Compact(heading)

	var out []window
	seen := make([]bool, len(weights))
	next, end, characters := 0, 0, 0 // end and characters are those of the run from unit i
	for i, u := range units {
		for end < len(units) {
			from := u.from
			if end > i {
				from = units[end-1].to
			}
			n := utf8.RuneCountInString(t.text[t.from+from : t.from+units[end].to])
			if end > i && characters+n > size {
				break
			}
			characters += n
			end++
		}
		if u.from >= next {
			next = u.from + windowStep
			clear(seen)
			value := 0.0
			for k, list := range in[i:end] {
				before := float64(units[i+k].from-u.from) / float64(size)
				for _, n := range list {
					if !seen[n] {
						seen[n] = true
						value += weights[n] * (1 - laterPart*min(before, 1))
					}
				}
			}
			if value > 0 {
				for _, n := range heading {
					if !seen[n] {
						value += headingPart * weights[n]
					}
				}
				value += baseValue * words.all
			}
			out = append(out, window{t, t.from + u.from, t.from + units[end-1].to, t.chunk.Score * value, false})
			if i == 0 && end == len(units) {
				break
			}
		}
		switch {
		case end == i+1:
			characters = 0
		case i+1 < len(units):
			characters -= utf8.RuneCountInString(t.text[t.from+u.from : t.from+units[i+1].from])
		}
	}
	return out
}

// extended makes a passage longer until it has shortest characters: at its
// end, then at its beginning.
func extended(text string, from, to int) (int, int) {
	short := func() bool { return isShort(text[from:to]) }
	end := to
	for _, u := range unitsOf(text[end:], shortest) {
		if short() {
			to = end + u.to
		}
	}
	for _, u := range slices.Backward(unitsOf(text[:from], shortest)) {
		if short() {
			from = u.from
		}
	}
	return from, to
}

// A unit is a line or a sentence of a text, without white space around it.
type unit struct{ from, to int }

// unitsOf returns the lines and sentences of a text. Those of more than size
// characters are cut between words where possible.
func unitsOf(text string, size int) []unit {
	var units []unit
	add := func(from, to int) {
		for from, to = trimmed(text, from, to); from < to; from, to = trimmed(text, from, to) {
			end := to
			if to-from > size {
				end = from + len(cutRunes(text[from:to], size))
			}
			units = append(units, unit{from, end})
			from = end
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
