package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A scanner splits one text into tokens and yields them. At most one of word
// and run is not empty at a time.
type scanner struct {
	s        string
	language Language
	yield    func(Token) bool   // nil if indexed is not
	indexed  func(Indexed) bool // see Analyze
	first    *beginnings        // if not nil, words that begin otherwise are yielded without texts
	done     bool               // the loop over the tokens has ended
	skip     int                // offset up to which the text has already been consumed
	signed   int                // offset up to which signs were looked for
	norm     []byte             // normal form of a piece of the text

	word       []byte // folded letters of the current word
	wordRunes  int
	start, end int
	latin      bool // the last character was a Latin letter or a digit: its marks are dropped

	// With indexed: the letters of the current word as people write it.
	lower      []byte
	lowerRunes int

	prev  cjkRune // last character of the current CJK run
	inRun bool

	// With indexed: the part of the run in one script that is gathered.
	part   []byte
	script script
}

// A cjkRune is a character of a CJK run and its position in the text.
type cjkRune struct {
	r          rune
	start, end int
	raw        bool // the text contains exactly these bytes
}

// isWordByte reports whether c is an ASCII letter or digit.
func isWordByte(c byte) bool { return wordBytes[c] }

var wordBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
	}
	return is
}()

// scan yields all tokens.
func (sc *scanner) scan() {
	s := sc.s
	for i := 0; i < len(s) && !sc.done; {
		if s[i] >= utf8.RuneSelf {
			i = sc.scanWide(i)
			continue
		}
		if !isWordByte(s[i]) {
			if sc.indexed != nil && signBytes[s[i]] && i >= sc.signed {
				sc.sign(i)
			}
			if len(sc.word) == 0 && !sc.inRun {
				i++ // nothing ends here
				continue
			}
			i = sc.separator(rune(s[i]), i, i+1)
			continue
		}
		j := i + 1
		for j < len(s) && isWordByte(s[j]) {
			j++
		}
		if j < len(s) && s[j] >= utf8.RuneSelf {
			// The last letter may combine with the next character.
			sc.ascii(i, j-1)
			i = sc.scanWide(j - 1)
			continue
		}
		if len(sc.word) > 0 || sc.inRun || j < len(s) && s[j] == '\'' {
			sc.ascii(i, j)
		} else {
			sc.asciiWord(i, j)
		}
		i = j
	}
	sc.flush()
}

// scanWide scans the text from i to the next ASCII character after i and
// returns where it stopped.
func (sc *scanner) scanWide(i int) int {
	to := i + 1
	if sc.s[i] >= utf8.RuneSelf {
		to = i
	}
	// An invalid byte ends the piece, because package norm treats the text
	// after one as normal.
	for to < len(sc.s) && sc.s[to] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(sc.s[to:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		to += n
	}
	if to == i {
		return sc.separator(utf8.RuneError, i, i+1)
	}
	for i < to && !sc.done {
		// Text that is already normal is read unchanged.
		n := i + norm.NFKC.QuickSpanString(sc.s[i:to])
		for i < n {
			r, size := utf8.DecodeRuneInString(sc.s[i:n])
			sc.feed(cjkRune{r, i, i + size, true})
			i += size
		}
		if i >= to {
			break
		}
		end := i + max(1, norm.NFKC.NextBoundaryInString(sc.s[i:to], true))
		sc.norm = norm.NFKC.AppendString(sc.norm[:0], sc.s[i:end])
		for seg := sc.norm; len(seg) > 0; {
			r, size := utf8.DecodeRune(seg)
			sc.feed(cjkRune{r, i, end, false})
			seg = seg[size:]
		}
		i = end
	}
	return max(to, sc.skip)
}

// ascii feeds the letters and digits s[i:j].
func (sc *scanner) ascii(i, j int) {
	for ; i < j; i++ {
		sc.feed(cjkRune{rune(sc.s[i]), i, i + 1, true})
	}
}

// asciiWord yields the whole word s[i:j] of ASCII letters and digits. It is a
// fast path that does not use feed.
func (sc *scanner) asciiWord(i, j int) {
	w := sc.s[i:min(j, i+maxWord)]
	if sc.first != nil && !sc.first.mayBegin(w) {
		sc.emit(Token{Start: i, End: j})
		return
	}
	var buf [maxWord]byte
	letters, lower := true, true
	for k := range len(w) {
		c := w[k]
		switch {
		case 'A' <= c && c <= 'Z':
			c |= 0x20
			lower = false
		case c < 'A':
			letters = false
		}
		buf[k] = c
	}
	t := Token{Start: i, End: j}
	stemmer, ok := stemmerOf(latinWord, sc.language)
	switch {
	case letters && ok:
		e := stemOf(buf[:len(w)], stemmer)
		t.Text, t.Surface = e.token, e.word
	case lower:
		t.Text, t.Surface = w, w
	default:
		t.Text = string(buf[:len(w)])
		t.Surface = t.Text
	}
	if sc.indexed == nil {
		sc.emit(t)
		return
	}
	word := ""
	if n := j - i; n >= minWord && n <= maxWritten {
		word = t.Surface
	}
	sc.emitIndexed(Indexed{Token: t.Text, Word: word})
	if !lower {
		sc.parts(w)
	}
}

// feed processes one normalized character.
func (sc *scanner) feed(c cjkRune) {
	switch {
	case sc.done || c.start < sc.skip || isIgnorable(c.r):
	case IsCJK(c.r):
		sc.flushWord()
		sc.cjk(c)
	case unicode.IsLetter(c.r) || unicode.IsDigit(c.r):
		sc.flushRun()
		sc.letter(c)
	case unicode.IsMark(c.r):
		sc.mark(c)
	default:
		sc.separator(c.r, c.start, c.end)
	}
}

// letter adds a letter or digit to the current word.
func (sc *scanner) letter(c cjkRune) {
	if len(sc.word) == 0 {
		sc.start, sc.wordRunes = c.start, 0
	}
	sc.end = c.end
	sc.latin = isLatin(c.r) || c.r < utf8.RuneSelf
	if sc.indexed != nil && sc.lowerRunes <= maxWritten {
		sc.lower = utf8.AppendRune(sc.lower, unicode.ToLower(c.r))
		sc.lowerRunes++
	}
	if sc.wordRunes >= maxWord {
		return
	}
	n := len(sc.word)
	sc.word = appendFolded(sc.word, c.r)
	sc.wordRunes += utf8.RuneCount(sc.word[n:])
	if sc.wordRunes > maxWord { // letters such as ß are folded to two
		sc.word, sc.wordRunes = sc.word[:len(sc.word)-1], maxWord
	}
}

// mark adds a combining mark to the preceding character.
func (sc *scanner) mark(c cjkRune) {
	switch {
	case sc.inRun:
		sc.prev.end, sc.prev.raw = c.end, false
	case len(sc.word) == 0: // no preceding character
	default:
		sc.end = c.end
		if sc.indexed != nil && sc.lowerRunes <= maxWritten {
			sc.lower = utf8.AppendRune(sc.lower, c.r)
			sc.lowerRunes++
		}
		if !sc.latin && sc.wordRunes < maxWord {
			sc.word = utf8.AppendRune(sc.word, c.r)
			sc.wordRunes++
		}
	}
}

// separator ends the current word or run at a character that does not belong to
// a word, and returns where to continue. After an apostrophe, it consumes an
// English ending.
func (sc *scanner) separator(r rune, start, end int) int {
	if (r == '\'' || r == '’') && len(sc.word) > 0 && sc.latin && sc.end == start {
		if n, joined := contraction(sc.s[end:]); n > 0 {
			if joined {
				sc.letter(cjkRune{rune(sc.s[end]), end, end + n, true})
			}
			sc.end = end + n
			sc.skip = sc.end
			end = sc.end
		}
	}
	sc.flush()
	return end
}

// contraction returns the length of the English ending at the beginning of s,
// which follows an apostrophe as in don't or it's, and whether the ending is
// part of the word.
func contraction(s string) (n int, joined bool) {
	for n < len(s) && n < 3 && isWordByte(s[n]) {
		n++
	}
	if r, _ := utf8.DecodeRuneInString(s[n:]); n < len(s) && !IsCJK(r) &&
		(unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || isIgnorable(r)) {
		return 0, false
	}
	switch strings.ToLower(s[:n]) {
	case "t":
		return n, true
	case "s", "d", "m", "ll", "re", "ve":
		return n, false
	}
	return 0, false
}

// cjk adds a character to the current CJK run.
func (sc *scanner) cjk(c cjkRune) {
	if sc.indexed != nil {
		sc.gather(c.r)
	}
	if sc.inRun {
		p := sc.prev
		t := Token{Start: p.start, End: c.end, CJK: true}
		if p.raw && c.raw && p.end == c.start {
			t.Text = sc.s[p.start:c.end]
		} else {
			t.Text = string([]rune{p.r, c.r})
		}
		t.Surface = t.Text
		sc.emit(t)
	}
	sc.prev, sc.inRun = c, true
}

// flush ends the current word or run.
func (sc *scanner) flush() {
	sc.flushWord()
	sc.flushRun()
}

// flushRun yields the last character of the current CJK run.
func (sc *scanner) flushRun() {
	if !sc.inRun {
		return
	}
	sc.inRun = false
	p := sc.prev
	text := string(p.r)
	if p.raw {
		text = sc.s[p.start:p.end]
	}
	sc.emit(Token{Text: text, Surface: text, Start: p.start, End: p.end, CJK: true})
	sc.endPart()
	sc.script = otherScript
}

// flushWord yields the current word.
func (sc *scanner) flushWord() {
	if len(sc.word) == 0 {
		return
	}
	t := Token{Start: sc.start, End: sc.end}
	switch stemmer, ok := stemmerOf(classOf(sc.word), sc.language); {
	case sc.first != nil && !sc.first.mayBegin(string(sc.word[:min(len(sc.word), 2)])):
	case ok:
		e := stemOf(sc.word, stemmer)
		t.Text, t.Surface = e.token, e.word
	default:
		t.Text = string(sc.word)
		t.Surface = t.Text
	}
	sc.word = sc.word[:0]
	if sc.indexed == nil {
		sc.emit(t)
		return
	}
	word := ""
	if sc.lowerRunes >= minWord && sc.lowerRunes <= maxWritten {
		if word = t.Surface; word != string(sc.lower) {
			word = string(sc.lower)
		}
	}
	sc.lower, sc.lowerRunes = sc.lower[:0], 0
	sc.emitIndexed(Indexed{Token: t.Text, Word: word})
}

// emit yields a token unless the loop over the tokens has ended.
func (sc *scanner) emit(t Token) {
	if sc.indexed != nil {
		sc.emitIndexed(Indexed{Token: t.Text})
		return
	}
	if !sc.done && !sc.yield(t) {
		sc.done = true
	}
}

// emitIndexed is emit for Analyze.
func (sc *scanner) emitIndexed(x Indexed) {
	if !sc.done && !sc.indexed(x) {
		sc.done = true
	}
}
