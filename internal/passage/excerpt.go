package passage

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"knowhow/internal/analysis"
)

// Weights of words and places in an excerpt.
const (
	repeatedWords    = 3 // occurrences of a word that count
	repeatedWordPart = 0.2
	laterWordPart    = 0.5 // what a word at the end of an excerpt counts less than one at its beginning
	beginBonus       = 0.4 // part of the weight of an excerpt that begins with the text
	paragraphBonus   = 0.2 // likewise with a paragraph
)

// excerptOf returns the run of lines and sentences of at most size characters
// with the greatest weight of different words, of those the first. The text
// behind a word explains it, and the beginning of a text says what it is about:
// so a word counts less near the end of the run, and the beginnings of the text
// and of paragraphs are preferred.
func excerptOf(text string, lang analysis.Language, words *words, size int) (from, to int) {
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
	for tok := range words.tokensOf(text, lang) {
		w := words.weight(tok)
		if w == 0 {
			continue
		}
		for at < len(units)-1 && tok.Start >= units[at+1].from {
			at++
		}
		add(at, tok.Text, w, tok.Start)
	}
	if words.signs {
		for i, u := range units {
			for _, sign := range analysis.Signs(text[u.from:u.to]) {
				if w := words.tokens[sign]; w > 0 {
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

// extended makes a passage longer until it has shortest characters: at its
// end, then at its beginning.
func extended(text string, from, to int) (int, int) {
	short := func() bool { return isShort(text[from:to]) }
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
