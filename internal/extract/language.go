package extract

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// langSample is the number of bytes that determine the language, half of them
// from the start of the text and half from the middle.
const langSample = 16384

// language returns the ISO 639-1 code of a text's language. declared is the
// language that the document declares (a BCP 47 tag or ""). It is used if the
// text is ambiguous, because templates often declare a language that was never
// changed.
func language(text, declared string) string {
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
	counts, words := make([]int, len(stopWords)), 0
	var buf [maxStopWord + utf8.UTFMax]byte
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !isLetter(r) }) {
		if words++; len(w) > maxStopWord {
			continue
		}
		lower := buf[:0]
		for _, r := range w {
			lower = utf8.AppendRune(lower, unicode.ToLower(r))
		}
		for _, l := range languagesOf()[string(lower)] {
			counts[l]++
		}
	}
	for i, n := range counts {
		if n > hits {
			lang, hits, second = stopWords[i].lang, n, hits
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

// languagesOf returns the places in stopWords of the languages of each word.
var languagesOf = sync.OnceValue(func() map[string][]int {
	of := map[string][]int{}
	for i, l := range stopWords {
		for w := range strings.FieldsSeq(l.words) {
			of[w] = append(of[w], i)
		}
	}
	return of
})

// maxStopWord is the length in bytes of the longest stop word.
const maxStopWord = 9

// stopWords are the frequent words of languages with Latin script. Each list
// has about thirty words, so that no language is favoured. Single letters are
// not included, because they are frequent in programs.
var stopWords = [...]struct{ lang, words string }{
	{"en", "the of and to in is that for it with as was on are be this by you not or from have an which can if will has all"},
	{"de", "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus bei oder sind wird"},
	{"fr", "de la le et les des en un du une que est pour qui dans par sur au ce pas plus avec il sont ou cette aux être vous nous"},
	{"es", "de la que el en los se del las un por con no una su para es al lo como más este está son pero sus también cuando"},
	{"it", "di il la che in un per una del con le si da non dei al sono della come più gli nel alla delle questo anche ma essere"},
	{"pt", "de que do da em um para com não uma se na por mais dos como está muito pela ou ao foi são seu sua pelo mas quando também"},
	{"nl", "de van het een en in is dat op te zijn met voor niet aan er om ook als door worden dit of bij naar wordt maar kan"},
	{"pl", "na do nie się że jest to jak za od po przez dla lub być może oraz który są tym tylko także gdy ma można jego przy"},
	{"sv", "och att det som en på är av för den med till inte om ett kan har de eller du från vid så där när jag vi ska"},
	{"da", "og at det som en på er af for den med til ikke om et kan har de eller du fra ved så der når jeg vi skal"},
	{"no", "og det som en på er av for den med til ikke om et kan har de eller du fra ved så der når jeg vi skal å"},
	{"cs", "se na je že do jako pro za po by ale to které nebo být jsou aby jen tak ještě však pouze při než jeho může jste"},
	{"sk", "sa na je že do ako pre za po by ale to ktoré alebo byť sú aby len tak ešte však iba pri než jeho môže ste"},
	{"fi", "ja on ei se että oli hän mutta ovat kun niin myös jos tai voi mukaan sekä joka ole sen tämä ovat sitä"},
	{"hu", "az és hogy nem is egy ez van meg de csak már vagy volt mint ha el ki azt lehet kell ezt még"},
	{"id", "dan yang di untuk dengan ini dari pada tidak adalah atau dapat akan dalam ke anda itu oleh sebagai juga"},
	{"tr", "ve bir bu için ile da de olarak olan daha çok gibi veya en kadar ne değil ancak sonra olduğu her"},
	{"vi", "và của là các có được cho trong một này không với để bạn khi những như đã thì"},
	{"ro", "de în la cu pentru care este un din pe nu sau se mai să ca sunt fi prin cele dacă"},
}

// Language returns the language of a text of which head is the beginning, an ISO
// 639-1 code, or "" if it is unknown or the file is no plain text. name is as in
// [Input].
func Language(ctx context.Context, name string, head []byte) string {
	f, err := formatOf(Input{Name: name, Data: head})
	if err != nil || f.kind.binary() {
		return ""
	}
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)/2 {
		head = head[:i] // the rest may end inside a character
	}
	return language(decode(ctx, head, "", f.kind == kindHTML), "")
}
