package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A script is a group of characters that form words together.
type script int

const (
	noScript    script = iota // separators
	otherScript               // scripts with blanks between words, and digits
	hanScript
	hiraganaScript
	katakanaScript
	hangulScript
	asianScript // scripts of South-East Asia without blanks between words
)

// asian are the scripts of South-East Asia without blanks between words.
var asian = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer}

// unspaced are the scripts that [Divide] divides.
var unspaced = append([]*unicode.RangeTable{unicode.Han, unicode.Bopomofo, unicode.Hiragana, unicode.Katakana,
	unicode.Hangul}, asian...)

// isUnspaced reports whether a text has characters of a script without blanks
// between words, or of Hangul, whose words have endings.
func isUnspaced(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x0E00 && unicode.In(r, unspaced...) })
}

// scriptOf returns the script of r. before is that of the character before it.
func scriptOf(r rune, before script) script {
	switch {
	case unicode.IsMark(r), r == 'ー', r == 'ｰ', r == 'ﾞ', r == 'ﾟ':
		return before
	case r == '々', r == '〆', r == '〇', r == 'ヶ', r == 'ヵ', unicode.In(r, unicode.Han, unicode.Bopomofo):
		return hanScript
	case unicode.Is(unicode.Hiragana, r):
		return hiraganaScript
	case unicode.Is(unicode.Katakana, r):
		return katakanaScript
	case unicode.Is(unicode.Hangul, r):
		return hangulScript
	case unicode.In(r, asian...):
		return asianScript
	case isLetter(r), r < utf8.RuneSelf:
		return otherScript
	}
	return noScript
}

// A run is a part of a word in one script.
type run struct {
	text   string
	script script
}

// runes returns the number of characters of a run.
func (r run) runes() int { return utf8.RuneCountInString(r.text) }

// runsOf returns the runs of a word. Each has a letter or a digit.
func runsOf(word string) []run {
	var runs []run
	from, in := 0, noScript
	end := func(to int) {
		text := word[from:to]
		if in == otherScript {
			text = strings.TrimFunc(text, func(r rune) bool { return !isWordRune(r) })
		}
		if in != noScript && strings.ContainsFunc(text, isLetter) {
			runs = append(runs, run{text, in})
		}
		from = to
	}
	for i, r := range word {
		if is := scriptOf(r, in); is != in {
			end(i)
			in = is
		}
	}
	end(len(word))
	return runs
}

// Divide returns the words that the words of a plain query consist of: in scripts
// without blanks between words, the runs of Han, of Katakana, of Hangul and of
// other letters. Runs of Hiragana are particles and endings and are omitted, unless
// a word has nothing else. A Hangul run loses a particle at its end. Digits before
// one or two Han characters belong to them, as in 3月, and so does one Hiragana
// character between two Han characters that is part of a verb, as in 作り方.
//
// divided reports whether some word consists of several ones. Other words are
// returned unchanged.
func Divide(words []string) (parts []string, divided bool) {
	for _, w := range words {
		if !isUnspaced(w) {
			parts = append(parts, w)
			continue
		}
		n := len(parts)
		for _, r := range joined(runsOf(w)) {
			switch r.script {
			case hiraganaScript:
				continue
			case hangulScript:
				r.text = withoutParticle(r.text)
			}
			parts = append(parts, r.text)
		}
		switch len(parts) - n {
		case 0:
			parts = append(parts, w)
		case 1:
		default:
			divided = true
		}
	}
	return parts, divided
}

// joined joins the runs of a word that belong together; see [Divide].
func joined(runs []run) []run {
	for i := 0; i < len(runs); i++ {
		r := runs[i]
		if i > 0 && r.script == hanScript && r.runes() <= 2 && runs[i-1].script == otherScript &&
			strings.TrimFunc(runs[i-1].text, unicode.IsDigit) == "" {
			runs[i-1] = run{runs[i-1].text + r.text, hanScript}
			runs = slices.Delete(runs, i, i+1)
			i--
		}
	}
	for i := 0; i+2 < len(runs); i++ {
		a, b, c := runs[i], runs[i+1], runs[i+2]
		verb := a.runes() == 1 || strings.ContainsFunc(a.text, isHiragana) // joined before
		if a.script == hanScript && verb && b.script == hiraganaScript && b.runes() == 1 &&
			strings.Contains(stemEndings, b.text) &&
			c.script == hanScript && c.runes() == 1 {
			runs[i].text += b.text + c.text
			runs = slices.Delete(runs, i+1, i+3)
			i--
		}
	}
	return runs
}

func isHiragana(r rune) bool { return unicode.Is(unicode.Hiragana, r) }

// stemEndings are the characters at the end of the stems of Japanese verbs, which
// compounds are formed with.
const stemEndings = "いきぎしじちみりえけげせぜべめれっ"

// particles are Korean particles, the longest first.
var particles = []string{"에서", "으로", "에게", "까지", "부터", "처럼", "보다", "이나", "이란", "은", "는", "이", "가", "을", "를", "의", "에",
	"도", "로", "와", "과", "만", "란"}

// withoutParticle returns a Hangul word without the particle at its end. At least
// two syllables are left.
func withoutParticle(word string) string {
	for _, p := range particles {
		if rest, ok := strings.CutSuffix(word, p); ok && utf8.RuneCountInString(rest) >= 2 {
			return rest
		}
	}
	return word
}

// Pieces returns what a word of [Divide] that no document has may consist of, or
// nil. A word such as a path or Mon..Fri consists of the words between its signs. One
// in a script without blanks between words consists of its runs, and of the pairs of
// characters of long runs. A question in Chinese or Thai is such a run.
func Pieces(word string) []string {
	var pieces []string
	if !isUnspaced(word) {
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return !isWordRune(r) && !unicode.IsDigit(r) }) {
			if len(pieces) < maxPairs && plainWord(part) && !slices.Contains(pieces, part) {
				pieces = append(pieces, part)
			}
		}
		if len(pieces) < 2 {
			return nil
		}
		return pieces
	}
	for _, r := range runsOf(word) {
		least := 0 // length of a run that is divided into pairs
		switch r.script {
		case hiraganaScript:
			continue
		case hanScript:
			least = 4
		case hangulScript, asianScript:
			least = 3
		}
		if least == 0 || r.runes() < least {
			pieces = append(pieces, r.text)
			continue
		}
		characters := []rune(r.text)
		for i := range characters[1:min(len(characters), maxPairs)] {
			pieces = append(pieces, string(characters[i:i+2]))
		}
	}
	if len(pieces) == 1 {
		return nil
	}
	slices.Sort(pieces)
	return slices.Compact(pieces)
}

// maxPairs is how many characters of a run [Pieces] divides into pairs.
const maxPairs = 64
