package analysis

import (
	"unicode"
	"unicode/utf8"
)

// Lengths of words as people write them, in runes.
const (
	minWord    = 2
	maxWritten = 40
	maxRun     = 20 // of CJK
)

// gather adds a character to the part of the run in one script.
func (sc *scanner) gather(r rune) {
	if is := scriptOf(r, sc.script); is != sc.script {
		sc.endPart()
		sc.script = is
	}
	if len(sc.part) <= utf8.UTFMax*maxRun {
		sc.part = utf8.AppendRune(sc.part, r)
	}
}

// endPart yields the part of the run unless it is hiragana.
func (sc *scanner) endPart() {
	if n := utf8.RuneCount(sc.part); n >= minWord && n <= maxRun && sc.script != hiraganaScript {
		sc.emitIndexed(Indexed{Word: string(sc.part)})
	}
	sc.part = sc.part[:0]
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
