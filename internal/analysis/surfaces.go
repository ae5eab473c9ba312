package analysis

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// Lengths of the words that Surfaces returns, in runes.
const (
	minSurface    = 2
	maxSurface    = 40
	maxSurfaceCJK = 20
)

// Surfaces returns the words of s as people write them, for suggestions: in the
// form of [Lower] and not stemmed. Words of scripts that use blanks have 2 to
// 40 runes. CJK runs are split where the script changes, and parts of 2 to 20
// runes are words. Parts in hiragana, which are mostly endings and particles,
// are omitted. A word that Surfaces omits may still be a token.
func Surfaces(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		sc := scanner{s: s, runs: true}
		sc.yield = func(t Token) bool {
			most := maxSurface
			if t.CJK {
				most = maxSurfaceCJK
			}
			if n := utf8.RuneCountInString(t.Text); n < minSurface || n > most {
				return true
			}
			return yield(t.Text)
		}
		sc.scan()
	}
}

// gather adds a character to the run of one script.
func (sc *scanner) gather(c cjkRune) {
	is := scriptOf(c.r, sc.script)
	if sc.inRun && is != sc.script {
		sc.endGather()
		sc.inRun = false
	}
	if !sc.inRun {
		sc.runFrom, sc.script = c.start, is
	}
	if len(sc.runText) <= utf8.UTFMax*maxSurfaceCJK {
		sc.runText += string(c.r)
	}
	sc.prev, sc.inRun = c, true
}

// endGather yields the gathered run unless it is hiragana.
func (sc *scanner) endGather() {
	text := sc.runText
	sc.runText = ""
	if sc.script == hiraganaScript {
		return
	}
	sc.emit(Token{Text: text, Surface: text, Start: sc.runFrom, End: sc.prev.end, CJK: true})
}

// A script is a group of characters that form words together.
type script int

const (
	otherScript script = iota
	hanScript
	hiraganaScript
	katakanaScript
	hangulScript
	thaiScript
)

// scriptOf returns the script of r. For the prolonged sound mark after
// hiragana, it is that of the character before it.
func scriptOf(r rune, before script) script {
	switch {
	case r == 'ー' && before == hiraganaScript:
		return hiraganaScript
	case r == 'ー' || unicode.Is(unicode.Katakana, r):
		return katakanaScript
	case unicode.Is(unicode.Hiragana, r):
		return hiraganaScript
	case unicode.Is(unicode.Hangul, r):
		return hangulScript
	case unicode.Is(unicode.Thai, r):
		return thaiScript
	case r == '々' || r == '〆' || r == '〇' || unicode.Is(unicode.Han, r):
		return hanScript
	}
	return otherScript
}
