package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer prepares text as the BertNormalizer of the Hugging Face
// tokenizers library does.
type normalizer struct {
	clean        bool // remove control characters, and make every space a blank
	cjk          bool // put blanks around CJK ideographs
	stripAccents bool // decompose characters and remove their accents
	lower        bool // convert to lower case
}

// apply returns the normalized text.
func (n normalizer) apply(s string) string {
	if isPlain(s) {
		if n.lower {
			return strings.ToLower(s)
		}
		return s
	}
	if n.clean || n.cjk {
		var b strings.Builder
		for _, r := range s {
			switch {
			case n.clean && removed(r):
			case n.clean && (r == '\t' || r == '\n' || r == '\r' || unicode.IsSpace(r)):
				b.WriteByte(' ')
			case n.cjk && ideograph(r):
				b.WriteByte(' ')
				b.WriteRune(r)
				b.WriteByte(' ')
			default:
				b.WriteRune(r)
			}
		}
		s = b.String()
	}
	if n.stripAccents {
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(s))
	}
	if n.lower {
		s = strings.ToLower(s)
	}
	return s
}

// isPlain reports whether s consists of printable ASCII characters.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// removed reports whether cleaning removes a character: control, format and
// private characters, and the replacement character, which also stands for
// invalid UTF-8.
func removed(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	case 0, utf8.RuneError:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// ideograph reports whether r is in a block of CJK ideographs. The blocks are
// those of the tokenizers library, whose gap after U+2B81F is an error that
// models were trained with.
func ideograph(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B73F || 0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// punctuation reports whether r is a word of its own: Unicode punctuation, and
// everything in ASCII that is not a letter, a digit, a blank or a control
// character.
func punctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}
