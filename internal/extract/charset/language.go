package charset

import (
	_ "embed" // stopwords.txt
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// langSample is the number of bytes that determine the language, half of them
// from the start of the text and half from the middle.
const langSample = 16384

// Language returns the ISO 639-1 code of a text's language. declared is the
// language that the document declares (a BCP 47 tag or ""). It is used if the
// text is ambiguous, because templates often declare a language that was never
// changed.
func Language(text, declared string) string {
	sample := text
	if len(text) > langSample {
		mid := len(text) / 2
		sample = text[:langSample/2] + " " + text[mid:mid+langSample/2]
	}
	declared = primaryTag(declared)
	if lang, clear := byScript(sample); lang != "" {
		if !clear && declared != "" {
			return declared
		}
		return lang
	}
	lang, hits, second := byStopWords(sample)
	if declared == "" {
		return lang
	}
	if lang == "" || hits < 8 || hits < 2*second {
		return declared
	}
	return lang
}

// primaryTag returns the two-letter language of a BCP 47 tag, or "" if it has
// none.
func primaryTag(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	if len(tag) != 2 || tag[0] < 'a' || tag[0] > 'z' || tag[1] < 'a' || tag[1] > 'z' {
		return ""
	}
	return tag
}

// scriptCounts are the letters of a text by script.
type scriptCounts struct {
	latin, kana, han, hangul, cyrillic, greek, arabic, hebrew, thai, devanagari int
	ukrainian, bulgarian, russian, persian                                      int
}

func countScripts(s string) scriptCounts {
	var c scriptCounts
	for _, r := range s {
		switch {
		case r < 0x80:
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				c.latin++
			}
		case r < 0x250:
			c.latin++
		case r >= 0x3041 && r <= 0x30ff:
			c.kana++
		case r >= 0x4e00 && r <= 0x9fff:
			c.han++
		case r >= 0xac00 && r <= 0xd7a3:
			c.hangul++
		case r >= 0x400 && r <= 0x4ff:
			c.cyrillic++
			switch unicode.ToLower(r) {
			case 'і', 'ї', 'є':
				c.ukrainian++
			case 'ъ':
				c.bulgarian++
			case 'ы', 'э':
				c.russian++
			}
		case r >= 0x370 && r <= 0x3ff:
			c.greek++
		case r >= 0x590 && r <= 0x5ff:
			c.hebrew++
		case r >= 0x600 && r <= 0x6ff:
			c.arabic++
			if r == 'پ' || r == 'چ' || r == 'ژ' || r == 'گ' {
				c.persian++
			}
		case r >= 0xe00 && r <= 0xe7f:
			c.thai++
		case r >= 0x900 && r <= 0x97f:
			c.devanagari++
		}
	}
	return c
}

// byScript detects languages with their own script. A text with many Latin
// words, such as a page of commands, is in the other language if at least about
// one letter in ten belongs to its script. clear is false if several languages
// share the script.
func byScript(s string) (lang string, clear bool) {
	c := countScripts(s)
	enough := func(n int) bool { return n > 5 && n*10 > c.latin }
	cjk := c.kana + c.han + c.hangul
	switch {
	case cjk > 2 && cjk*10 > c.latin:
		switch {
		case c.hangul > c.kana+c.han/2:
			return "ko", true
		case c.kana > 2 && c.kana*20 > c.han:
			return "ja", true
		}
		return "zh", c.han > 50
	case enough(c.cyrillic):
		switch {
		case c.ukrainian > c.russian && c.ukrainian*100 > c.cyrillic:
			return "uk", true
		case c.bulgarian > 2*c.russian && c.bulgarian*200 > c.cyrillic:
			return "bg", true
		}
		return "ru", c.russian > 0
	case enough(c.greek):
		return "el", true
	case enough(c.hebrew):
		return "he", true
	case enough(c.arabic):
		if c.persian > 0 {
			return "fa", true
		}
		return "ar", true
	case enough(c.thai):
		return "th", true
	case enough(c.devanagari):
		return "hi", false
	}
	return "", false
}

// byStopWords detects languages with Latin script by their most frequent words.
// It returns the best one, the number of its words that were found, and the
// number for the second best. Text with very few such words, such as data, has
// no language.
func byStopWords(s string) (lang string, hits, second int) {
	frequent := frequentWords()
	counts, words := make([]int, len(frequent.langs)), 0
	var buf [maxStopWord + utf8.UTFMax]byte
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !isLetter(r) }) {
		if words++; len(w) > maxStopWord {
			continue
		}
		lower := buf[:0]
		for _, r := range w {
			lower = utf8.AppendRune(lower, unicode.ToLower(r))
		}
		for _, l := range frequent.of[string(lower)] {
			counts[l]++
		}
	}
	for i, n := range counts {
		if n > hits {
			lang, hits, second = frequent.langs[i], n, hits
		} else if n > second {
			second = n
		}
	}
	if hits*10 < words {
		return "", 0, 0
	}
	return lang, hits, second
}

// isLetter is unicode.IsLetter, and faster for ASCII.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r)
}

//go:embed stopwords.txt
var stopWordsFile string

// A stopWords is the frequent words of languages with Latin script.
type stopWords struct {
	langs []string
	of    map[string][]int // places in langs of the languages of a word
}

// frequentWords returns the words of stopwords.txt.
var frequentWords = sync.OnceValue(func() stopWords {
	words := stopWords{of: map[string][]int{}}
	for line := range strings.Lines(stopWordsFile) {
		for i, w := range strings.Fields(line) {
			switch {
			case line[0] == '#':
			case i == 0:
				words.langs = append(words.langs, w)
			default:
				words.of[w] = append(words.of[w], len(words.langs)-1)
			}
		}
	}
	return words
})

// maxStopWord is the length in bytes of the longest stop word.
const maxStopWord = 9
