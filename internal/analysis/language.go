package analysis

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// A Language determines the endings that words lose. The zero Language is
// English, which also stands for all languages without a stemmer.
type Language uint8

// English is the zero Language.
const English Language = 0

// russianLanguage is the only language with a stemmer for words of Cyrillic
// letters. Its texts have Latin words, too, which are stemmed as English.
const russianLanguage Language = 1

// A language describes a Language.
type language struct {
	code string // ISO 639-1
	stem func(*snowballstem.Env) bool

	// endings are pairs of an ending without accents and what it is
	// replaced with before a word is stemmed. A stemmer does not know some
	// endings without their accents.
	endings []string
}

// languages has the languages with stemmers. The order must not change without
// a new [Version].
var languages = [...]language{
	English:         {code: "en", stem: english.Stem},
	russianLanguage: {code: "ru", stem: russian.Stem},
	{code: "da", stem: danish.Stem},
	{code: "de", stem: german.Stem},
	{code: "es", stem: spanish.Stem, endings: []string{
		"cion", "ción", "sion", "sión", "logia", "logía", "logias", "logías", "abamos", "ábamos", "iamos", "íamos",
	}},
	{code: "fi", stem: finnish.Stem},
	{code: "fr", stem: french.Stem, endings: []string{
		"ee", "ée", "ees", "ées", "erent", "èrent", "iere", "ière", "ieres", "ières", "ite", "ité", "ites", "ités",
	}},
	{code: "hu", stem: hungarian.Stem, endings: []string{
		"bol", "ból", "rol", "ról", "tol", "tól", "nal", "nál", "nel", "nél", "ert", "ért", "kent", "ként",
	}},
	{code: "it", stem: italian.Stem},
	{code: "nl", stem: dutch.Stem},
	{code: "no", stem: norwegian.Stem},
	{code: "pt", stem: portuguese.Stem, endings: []string{
		"cao", "ção", "coes", "ção", "ao", "ão", "oes", "ão", "aes", "ão", "avel", "ável", "aveis", "ável", "ivel",
		"ível", "iveis", "ível",
		"ancia", "ância", "ancias", "ância", "encia", "ência", "encias", "ência",
	}},
	{code: "ro", stem: romanian.Stem, endings: []string{"atie", "aţie", "atii", "aţii"}},
	{code: "sv", stem: swedish.Stem},
	{code: "tr", stem: turkish.Stem},
}

// LanguageOf returns the language with an ISO 639-1 code, and English for ""
// and for languages without a stemmer.
func LanguageOf(code string) Language {
	for l := range languages {
		if languages[l].code == code {
			return Language(l)
		}
	}
	return English
}

// Stemmed returns the languages except English that have a stemmer.
func Stemmed() []Language {
	all := make([]Language, 0, len(languages)-1)
	for l := 1; l < len(languages); l++ {
		all = append(all, Language(l))
	}
	return all
}

// String returns the ISO 639-1 code.
func (l Language) String() string { return languages[l].code }

// Prefix returns what stems of the language begin with in the texts of tokens:
// the code and a colon, which no word has. It is "" for English. So equal stems
// of different languages are different tokens: "news" finds nothing that is
// "new" only because the stem of news is new in another language.
func (l Language) Prefix() string {
	if l == English {
		return ""
	}
	return languages[l].code + ":"
}

// A scriptClass says which stemmers can be used for a word.
type scriptClass int

const (
	noLetters    scriptClass = iota // nothing but an empty word
	latinWord                       // letters a to z
	cyrillicWord                    // letters а to я
	otherWord
)

// classOf returns the class of a folded word.
func classOf[T string | []byte](word T) scriptClass {
	class := noLetters
	for i := 0; i < len(word); i++ {
		c := latinWord
		if b := word[i]; b < 'a' || b > 'z' {
			// а to п are D0 B0 to D0 BF, р to я are D1 80 to D1 8F.
			if i+1 == len(word) || !(b == 0xD0 && word[i+1] >= 0xB0 && word[i+1] <= 0xBF || b == 0xD1 &&
				word[i+1] >= 0x80 && word[i+1] <= 0x8F) {
				return otherWord
			}
			c = cyrillicWord
			i++
		}
		if class != noLetters && class != c {
			return otherWord
		}
		class = c
	}
	return class
}

// stemmerOf returns the language whose stemmer is used for a word of a class in
// a text in language l. ok is false if there is none.
func stemmerOf(class scriptClass, l Language) (stemmer Language, ok bool) {
	switch {
	case class == latinWord && l == russianLanguage:
		return English, true
	case class == latinWord:
		return l, true
	case class == cyrillicWord && l == russianLanguage:
		return l, true
	}
	return English, false
}

// stem returns the token of a folded word of the language's letters.
func (l Language) stem(word string) string {
	info := &languages[l]
	stem := word
	if len(word) >= 3 {
		env := snowballstem.NewEnv(info.restore(word))
		info.stem(env)
		stem = foldLatin(env.Current())
	}
	// The beginning does not change, so that a digest can tell most words that
	// it does not look for without stemming them.
	if stem == "" || stem[0] != word[0] || len(stem) > 1 && second(stem[1]) != second(word[1]) {
		stem = word
	}
	if l == English {
		return stem
	}
	return l.Prefix() + stem
}

// restore gives a word the accents that the stemmer needs.
func (info *language) restore(word string) string {
	best := -1
	for i := 0; i < len(info.endings); i += 2 {
		if e := info.endings[i]; len(word) > len(e) && strings.HasSuffix(word, e) &&
			(best < 0 || len(e) > len(info.endings[best])) {
			best = i
		}
	}
	if best < 0 {
		return word
	}
	return strings.TrimSuffix(word, info.endings[best]) + info.endings[best+1]
}

// foldLatin removes the accents that a stem still has.
func foldLatin(stem string) string {
	if isLowerASCII(stem) {
		return stem
	}
	var b []byte
	for _, r := range stem {
		b = appendFolded(b, r)
	}
	return string(b)
}

// functionWords are the words that do not matter in a language, and those that
// only do not matter in questions.
type functionWords struct{ common, question map[string]bool }

// functionWordsOf returns the lists for a language with one. The words are
// folded.
var functionWordsOf = sync.OnceValue(func() map[string]functionWords {
	all := map[string]functionWords{}
	for code, l := range functionWordLists {
		f := functionWords{map[string]bool{}, map[string]bool{}}
		for i, list := range []string{l.common, l.question} {
			for w := range strings.FieldsSeq(list) {
				w = fold(w)
				if i == 0 {
					f.common[w] = true
				}
				f.question[w] = true
			}
		}
		all[code] = f
	}
	return all
})

// stopTokens returns the tokens of the common function words of all languages.
var stopTokens = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for code, f := range functionWordsOf() {
		l := LanguageOf(code)
		if l == English && code != "en" {
			continue
		}
		for w := range f.common {
			if l == English {
				all[w] = true // each is its own stem
				continue
			}
			for t := range Tokens(w, l) {
				all[t.Text] = true
			}
		}
	}
	return all
})

// StopToken reports whether the text of a token is one of the most common
// function words of its language. Such tokens are indexed like all others, but
// excerpts do not look for them.
func StopToken(text string) bool { return stopTokens()[text] }

// FunctionWord reports whether a word is one of the most common function words
// of one of some languages. English is always one of them.
func FunctionWord(word string, among []Language) bool {
	word = fold(word)
	lists := functionWordsOf()
	if lists["en"].common[word] {
		return true
	}
	for _, l := range among {
		if lists[l.String()].common[word] {
			return true
		}
	}
	return false
}

// Significant returns the words of a question without those that most questions
// contain. The lists are those of the languages, and English, that have the most of
// the words, and those of Japanese and Korean. It returns all words if there are no others.
func Significant(words []string, among []Language) []string {
	lists := functionWordsOf()
	folded := make([]string, len(words))
	for i, w := range words {
		folded[i] = fold(w)
	}
	japanese, korean := lists["ja"].question, lists["ko"].question // no other language has these words
	var used []map[string]bool
	for _, code := range questionLanguages(folded, among) {
		used = append(used, lists[code].question)
	}
	var out []string
next:
	for i, w := range folded {
		if japanese[w] || korean[w] {
			continue
		}
		for _, list := range used {
			if list[w] {
				continue next
			}
		}
		out = append(out, words[i])
	}
	if len(out) == 0 {
		return words
	}
	return out
}

// QuestionLanguage returns the ISO 639-1 code of the language that the words of a
// question are in, or "" if it is not clear: that of English and some languages
// whose function words the question has the most of, otherwise Japanese if it has
// kana, and Korean if it has Hangul.
func QuestionLanguage(words []string, among []Language) string {
	folded := make([]string, len(words))
	for i, w := range words {
		folded[i] = fold(w)
	}
	switch codes := questionLanguages(folded, among); {
	case len(codes) == 1:
		return codes[0]
	case len(codes) > 1:
		return ""
	case anyIn(words, unicode.Hiragana, unicode.Katakana):
		return "ja"
	case anyIn(words, unicode.Hangul):
		return "ko"
	}
	return ""
}

// anyIn reports whether words contain a character of some scripts.
func anyIn(words []string, scripts ...*unicode.RangeTable) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, scripts...) })
	})
}

// questionLanguages returns the codes of those of English and some languages that
// have the most of the folded words in their lists, none without such a word.
func questionLanguages(folded []string, among []Language) (codes []string) {
	lists := functionWordsOf()
	most := 1
	for _, l := range slices.Compact(append([]Language{English}, among...)) {
		code := l.String()
		n := 0
		for _, w := range folded {
			if lists[code].question[w] {
				n++
			}
		}
		if n > most {
			codes, most = nil, n
		}
		if n == most {
			codes = append(codes, code)
		}
	}
	return codes
}

// fold returns a word of a query in the form of [Token.Surface].
func fold(word string) string {
	if isLowerASCII(word) {
		return word
	}
	var b []byte
	for t := range Tokens(word, English) {
		if t.CJK {
			return Lower(word)
		}
		b = append(b, t.Surface...)
	}
	return string(b)
}

// functionWordLists are the function words of languages: the most common ones,
// and those that only questions have. Those of English are the 33 of Lucene's
// StandardAnalyzer.
var functionWordLists = map[string]struct{ common, question string }{
	"en": {
		"a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with",
		"how do does did i we you my me our your what which when where who why can could should would has have had from its been were am so than them about any some",
	},
	"de": {
		"der die das den dem des ein eine einen einem einer eines und oder aber nicht in im ins an am auf aus bei beim mit nach von vom vor zu zum zur für über unter um " +
			"ist sind war waren wird werden wurde es er sie ihr als auch wie so dass sich nur noch durch",
		"ich wir du mich mir uns mein meine meinen unser unsere was wer wo wann warum wieso weshalb welche welcher welches welchen wohin woher kann können könnte soll sollte muss müssen darf " +
			"hat habe haben hatte man bin bist sein gibt dieser diese dieses diesen wenn ob",
	},
	"fr": {
		"le la les l un une des du de d et ou mais ne pas en dans sur sous par pour avec sans au aux à ce cet cette ces il elle ils elles on se s y n qu que qui est sont était être a ont plus",
		"je j nous vous tu me m te t mon ma mes notre nos votre vos comment quoi quel quelle quels quelles quand où pourquoi combien peut puis peux dois doit faut fait faire ai as avons avez si c ça cela dont lequel laquelle",
	},
	"es": {
		"el la los las lo un una unos unas de del al a y e o u pero no ni en por para con sin sobre entre se su sus le les es son era ser está están que como más este esta estos estas ha han",
		"yo nosotros tú usted me te nos mi mis tu tus nuestro nuestra cómo qué quién quiénes cuál cuáles cuándo cuánto cuántos cuánta cuántas dónde puedo puede pueden debo debe hay he hacer hago si porque eso esto",
	},
	"it": {
		"il lo la i gli le l un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dallo dalla dai dagli dalle in nel nello nella nei negli nelle su sul sullo sulla sui sugli sulle " +
			"con per tra fra e ed o ma non si se che è sono era essere come più anche d c",
		"io noi tu voi mi ti ci vi mio mia miei tuo tua nostro nostra cosa chi quale quali quando dove perché quanto quanti quanta quante posso può possono devo deve ho ha hanno abbiamo fare questo questa questi queste",
	},
	"pt": {
		"o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas para com sem sobre e ou mas não que se é são era ser está estão como mais ao aos à às seu sua seus suas",
		"eu nós você vocês tu me te meu minha meus minhas nosso nossa quê quem qual quais quando onde quanto quantos quanta quantas posso pode podem devo deve há tem ter tenho fazer faço isso isto este esta porque",
	},
	"nl": {
		"de het een en of maar niet geen in op aan uit bij met naar van voor door over onder om te tot is zijn was waren wordt worden werd er dat die dit deze als ook zo dan nog",
		"ik wij we jij je u mij me ons mijn onze hoe wat wie waar wanneer waarom welke welk hoeveel kan kunnen kun moet moeten mag mogen heb heeft hebben had zal men",
	},
	"ja": {
		"",
		"の は が を に で と も へ から まで より や か ね よ です ます でしょうか ですか ますか した する して ください これ それ あれ この その あの どの どれ どう どうやって どのように " +
			"何 なに なぜ いつ どこ 誰 だれ について ため とは 何日 何時 何人 何回 何年 何円 何故",
	},
	"ko": {
		"",
		"무엇 무엇을 무엇인가요 뭐 어디 어디서 어디에 어디에서 언제 왜 누가 누구 어떻게 얼마 얼마나 며칠 며칠인가요 있나요 하나요 되나요 인가요 입니까 합니까 있습니까",
	},
}
