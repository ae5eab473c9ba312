package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// IsCJK reports whether r belongs to a script that is indexed as pairs of
// characters: Han, kana, Bopomofo and Hangul, and the scripts of South-East
// Asia without blanks between words (Thai, Lao, Myanmar, Khmer).
func IsCJK(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3: // Han, Hangul syllables
		return true
	case r >= 0x3040 && r <= 0x30FF: // kana, with the prolonged sound mark but not the middle dot
		return unicode.IsLetter(r)
	case r <= 0x0EFF, // Thai, Lao
		r >= 0x1000 && r <= 0x109F, // Myanmar
		r >= 0x1780 && r <= 0x17D3: // Khmer
		return unicode.IsLetter(r) || unicode.IsMark(r)
	case r == '々', r == '〆', r == '〇', r == '〻':
		return true
	case r >= 0x1100 && r <= 0x11FF, r >= 0x3105 && r <= 0x318E,
		r >= 0x31A0 && r <= 0x31FF, // jamo, Bopomofo, small kana
		r >= 0x3400 && r <= 0x4DBF, r >= 0xA960 && r <= 0xA97F, r >= 0xD7B0 && r <= 0xD7FF,
		r >= 0xF900 && r <= 0xFAFF, r >= 0x1AFF0 && r <= 0x1B16F, r >= 0x20000 && r <= 0x3FFFD:
		return unicode.IsLetter(r)
	}
	return false
}

// Lower returns s in the form of the words of [Analyze]: NFKC and lower case,
// with accents.
func Lower(s string) string {
	if isLowerASCII(s) {
		return s
	}
	return strings.Map(unicode.ToLower, norm.NFKC.String(s))
}

// isLowerASCII reports whether s is ASCII without capitals.
func isLowerASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// isLatin reports whether r is a Latin letter.
func isLatin(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.Is(unicode.Latin, r)
}

// appendFolded appends r, which is not a mark, in lower case, without accents if
// it is Latin or Greek, and as one of the forms of a letter that has two.
func appendFolded(dst []byte, r rune) []byte {
	r = unicode.ToLower(r)
	if r < utf8.RuneSelf {
		return append(dst, byte(r))
	}
	switch r {
	case 'ς': // at the end of a word
		r = 'σ'
	case 'ё': // mostly written as е
		r = 'е'
	}
	if !isLatin(r) && !unicode.Is(unicode.Greek, r) { // Greek capitals have no accents
		return utf8.AppendRune(dst, r)
	}
	// Letters without a decomposition in Unicode are folded as in Lucene's
	// ASCIIFoldingFilter, which Fess uses.
	switch r {
	case 'ß':
		return append(dst, "ss"...)
	case 'æ':
		return append(dst, "ae"...)
	case 'œ':
		return append(dst, "oe"...)
	case 'þ':
		return append(dst, "th"...)
	case 'ø':
		return append(dst, 'o')
	case 'ł':
		return append(dst, 'l')
	case 'đ', 'ð':
		return append(dst, 'd')
	case 'ı':
		return append(dst, 'i')
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if d := norm.NFD.Properties(buf[:n]).Decomposition(); len(d) > 0 {
		base, _ := utf8.DecodeRune(d)
		return utf8.AppendRune(dst, unicode.ToLower(base))
	}
	return utf8.AppendRune(dst, r)
}

// isIgnorable reports whether r only changes the appearance of adjacent
// characters. It neither ends a word nor is part of it.
func isIgnorable(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x200C, r == 0x200D, r == 0x2060, r == 0xFEFF:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF: // variation selectors
		return true
	}
	return false
}
