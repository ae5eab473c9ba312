package charset

import (
	_ "embed" // words.txt
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// guessLen is the number of bytes of which a charset is guessed.
const guessLen = 1024

// Weights of what makes a guess more or less likely. They are for one letter, if
// nothing else is said. They were chosen so that the frequent words of each
// language are read correctly in its charsets.
const (
	weightRank     = 0.8  // for the most frequent letter of a language; the rarest has a third of it
	weightForeign  = -2.5 // a letter that the language does not have
	weightPair     = 0.35 // two letters that are usual in the language
	weightNoPair   = -0.2
	weightWord     = 1.5  // a whole frequent word
	weightLone     = -1   // a word of one letter that is no frequent word
	weightDigit    = -1.5 // a letter beside a digit
	weightMixed    = -4   // two letters of different scripts in a word
	weightCase     = -2   // a capital after a small letter
	weightCapitals = -0.3 // a word of capitals
	weightInside   = -3   // a sign between two letters
	weightAfter    = -2   // a sign of those that follow no letter
	weightSign     = -0.7 // a sign that is rare in texts
	weightNone     = -10  // a byte that the charset does not have

	weightStopWord = 0.8 // one of the language's frequent words without such letters, for the whole text
	maxStopWords   = 4
	weightHint     = 2.5 // the name or the neighbours of the file suggest the language, for the whole text
)

// charsetWeights are how much more or less frequent texts in a charset are, for the
// whole text.
var charsetWeights = map[string]float64{
	"windows-1252": 0.3, "windows-1250": 0.2, "iso-8859-2": -0.1, "windows-1254": 0.1, "windows-1257": -0.4,
	"windows-1251": 0.2, "koi8-r": -0.1, "koi8-u": -0.1, "ibm866": -0.5, "iso-8859-5": -0.6, "iso-8859-7": -0.2,
}

// A pair is two letters one after the other. The first or the second is 0 at the
// start or the end of a word.
type pair struct{ first, second rune }

// A charsetLanguage is a language of texts in old charsets.
type charsetLanguage struct {
	lang     string
	charsets []string         // the more frequent ones first
	weights  map[rune]float64 // of its small letters that are not ASCII
	words    map[string]bool  // frequent words with such letters
	pairs    map[pair]bool    // of letters in these words
}

//go:embed words.txt
var wordsFile string

// charsetLanguages returns the languages of words.txt.
var charsetLanguages = sync.OnceValue(func() []charsetLanguage {
	var list []charsetLanguage
	for block := range strings.SplitSeq(wordsFile, "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		f := strings.Fields(block)
		l := charsetLanguage{f[0], strings.Split(f[1], ","), map[rune]float64{}, map[string]bool{}, map[pair]bool{}}
		n := float64(utf8.RuneCountInString(f[2]))
		rank := 0.0
		for _, r := range f[2] {
			l.weights[r] = weightRank * (1 - rank/n*2/3)
			rank++
		}
		for _, w := range f[3:] {
			l.words[w] = true
			var before rune
			for _, r := range w {
				l.pairs[pair{before, r}] = true
				before = r
			}
			l.pairs[pair{before, 0}] = true
		}
		list = append(list, l)
	}
	return list
})

// guessCharset returns the charset in which a sample of data makes words of a
// language, and how well they fit, for each byte that is not ASCII. hints are the
// languages that the name of the document and its neighbours suggest.
func guessCharset(data, sample []byte, hints []string) (name string, fit float64) {
	sample = sample[:min(len(sample), guessLen)]
	stops := stopWordsOf(data[:min(len(data), langSample)])
	texts := map[string][]rune{}
	best := 0.0
	for _, l := range charsetLanguages() {
		bonus := weightStopWord * float64(min(stops[l.lang], maxStopWords))
		for _, h := range hints {
			if h == l.lang {
				bonus += weightHint
			}
		}
		for _, c := range l.charsets {
			text, ok := texts[c]
			if !ok {
				text = charsetText(sample, c)
				texts[c] = text
			}
			if score := l.score(text) + bonus + charsetWeights[c]; name == "" || score > best {
				best, name = score, c
			}
		}
	}
	high := 0
	for _, c := range sample {
		if c >= utf8.RuneSelf {
			high++
		}
	}
	return name, best / float64(max(high, 1))
}

// clearFit is the fit from which no other language is considered.
const clearFit = 0.7

// charsetText returns a sample in a charset, in characters.
func charsetText(sample []byte, charset string) []rune {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil
	}
	out, err := e.NewDecoder().Bytes(sample)
	if err != nil {
		return nil
	}
	return []rune(string(out))
}

// stopWordsOf counts the frequent words of languages that consist of ASCII letters.
func stopWordsOf(data []byte) map[string]int {
	counts, frequent := map[string]int{}, frequentWords()
	for w := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r < utf8.RuneSelf && !isLetter(r) }) {
		for _, l := range frequent.of[strings.ToLower(w)] {
			counts[frequent.langs[l]]++
		}
	}
	return counts
}

// score returns how well a text fits a language. Characters of ASCII count only
// beside others.
func (l *charsetLanguage) score(text []rune) float64 {
	if text == nil {
		return weightNone * guessLen
	}
	score := 0.0
	for i := 0; i < len(text); {
		if !isWordLetter(text[i]) {
			if r := text[i]; r >= utf8.RuneSelf {
				score += signScore(text, i)
			}
			i++
			continue
		}
		end := i + 1
		for end < len(text) && isWordLetter(text[end]) {
			end++
		}
		score += l.wordScore(text, i, end)
		i = end
	}
	return score
}

// wordScore returns how well the word from start to end fits.
func (l *charsetLanguage) wordScore(text []rune, start, end int) float64 {
	word := text[start:end]
	high, capitals := 0, 0
	score := 0.0
	var before rune // in small letters
	for i, r := range word {
		lower := unicode.ToLower(r)
		if lower != r {
			capitals++
		}
		after := rune(0)
		if i+1 < len(word) {
			after = unicode.ToLower(word[i+1])
		}
		if i > 0 && lower != r && unicode.IsLower(word[i-1]) && (r >= utf8.RuneSelf || word[i-1] >= utf8.RuneSelf) {
			score += weightCase
		}
		if i > 0 && isLatin(r) != isLatin(word[i-1]) {
			score += weightMixed
		}
		if r >= utf8.RuneSelf {
			high++
			if w, ok := l.weights[lower]; ok {
				score += w
			} else if r == 'İ' && l.lang == "tr" {
				score += weightRank
			} else {
				score += weightForeign
			}
			score += l.pairScore(before, lower)
			if after < utf8.RuneSelf {
				score += l.pairScore(lower, after)
			}
		}
		before = lower
	}
	if high == 0 {
		return 0
	}
	beside := func(i int) bool { return i >= 0 && i < len(text) && unicode.IsDigit(text[i]) }
	if word[0] >= utf8.RuneSelf && beside(start-1) || word[len(word)-1] >= utf8.RuneSelf && beside(end) {
		score += weightDigit
	}
	if capitals == len(word) && len(word) > 2 {
		score += weightCapitals * float64(high)
	}
	switch {
	case l.words[strings.ToLower(string(word))]:
		score += weightWord
	case len(word) == 1:
		score += weightLone
	}
	return score
}

func (l *charsetLanguage) pairScore(first, second rune) float64 {
	if l.pairs[pair{first, second}] {
		return weightPair
	}
	return weightNoPair
}

// signScore returns how likely the character at i is, which is no letter.
func signScore(text []rune, i int) float64 {
	r := text[i]
	if r == utf8.RuneError || plain.IsControl(r) {
		return weightNone
	}
	letter := func(i int) bool { return i >= 0 && i < len(text) && isWordLetter(text[i]) }
	usual := strings.ContainsRune("„“”‘’‚‹›«»–—…€§°±µ©®™·•×½¼¾²³¿¡\u00a0\u00ad", r)
	switch {
	case letter(i-1) && letter(i+1) && !strings.ContainsRune("’·–—\u00ad\u00a0…", r):
		return weightInside
	case r >= 0x2500 && r < 0x2600 && (letter(i-1) || letter(i+1)): // a part of a box
		return weightInside
	case letter(i-1) && strings.ContainsRune("¿¡¼½¾±¶¹„‚", r):
		return weightAfter
	case !usual:
		return weightSign
	}
	return 0
}

// isWordLetter reports whether r is a letter of words. The signs for ordinals and
// for micro are none, although Unicode counts them as letters.
func isWordLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return isLetter(r)
	}
	return unicode.IsLetter(r) && r != 'ª' && r != 'º' && r != 'µ' && r != 'ƒ' || unicode.Is(unicode.Mn, r)
}

// isLatin reports whether a letter is Latin.
func isLatin(r rune) bool { return r < 0x250 || r >= 0x1e00 && r < 0x1f00 }

// Hints returns the languages that the name of a document and its neighbours, which
// have the language neighbours or "", suggest. Codes stand at the end of a name, as
// in notes.pl.txt and notes_de.txt, and are names of folders, as in docs/pt-BR.
func Hints(name, neighbours string) []string {
	var langs []string
	if neighbours != "" {
		langs = append(langs, neighbours)
	}
	parts := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
	last := len(parts) - 1
	base := strings.TrimSuffix(parts[last], path.Ext(parts[last]))
	if i := strings.LastIndexAny(base, "._-"); i >= 0 {
		parts[last] = base[i+1:]
	} else {
		parts = parts[:last]
	}
	for _, p := range parts {
		if lang := primaryTag(p); lang != "" && (len(p) == 2 || len(p) == 5) && !slices.Contains(langs, lang) {
			langs = append(langs, lang)
		}
	}
	return langs
}
