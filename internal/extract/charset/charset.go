// Package charset finds the character set and the language of a text by its bytes,
// its letters and its words.
package charset

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Lengths of the parts of a document that are used to determine its charset.
const (
	metaLen   = 4096  // browsers examine 1,024 bytes (HTML 13.2.3.2); generators put comments before the declaration
	detectLen = 32768 // the detector is slow and does not improve with more
)

// Options are what is known about a text.
type Options struct {
	Declared  string   // charset that the origin declared; "" if it declared none
	HTML      bool     // the text may declare its charset as a page does
	Languages []string // that the text may be in, ISO 639-1 codes; see [Hints]
}

// Decode returns data as valid UTF-8. The charset is that of the byte order
// mark, else the one that the origin declared, else the one that the document
// declares, else a detected one: valid UTF-8, UTF-16 without a mark, or that of
// detect, which never fails.
func Decode(ctx context.Context, data []byte, o Options) string {
	if name := bomOf(data); name != "" {
		return decodeAs(ctx, data, name)
	}
	for _, name := range []string{o.Declared, inDocument(data, o.HTML)} {
		if name == "" || isUTF8Name(name) && !mostlyUTF8(ctx, data) {
			continue
		}
		if _, err := htmlindex.Get(name); err == nil {
			return decodeAs(ctx, data, name)
		}
	}
	if name := utf16Without(data[:min(len(data), metaLen)]); name != "" {
		return decodeAs(ctx, data, name)
	}
	if valid(ctx, data) && !bytes.Contains(data, escJIS) && !bytes.Contains(data, escJISRoman) {
		return string(data)
	}
	return decodeAs(ctx, data, detect(ctx, data, o.Languages))
}

// Sequences that switch ISO-2022-JP to two-byte characters (RFC 1468).
var (
	escJIS      = []byte("\x1b$B")
	escJISRoman = []byte("\x1b$@")
)

// decodeAs decodes with an encoding of the WHATWG Encoding Standard. An unknown
// name means UTF-8. Invalid bytes become U+FFFD.
func decodeAs(ctx context.Context, data []byte, name string) string {
	e, err := htmlindex.Get(name)
	if err != nil || isUTF8Name(name) || e == encoding.Replacement {
		return strings.TrimPrefix(toValid(ctx, data), "\ufeff")
	}
	copyTo := func(w io.Writer) error {
		_, err := io.Copy(w, transform.NewReader(plain.NewReader(ctx, bytes.NewReader(data)), e.NewDecoder()))
		return err
	}
	// A byte may become three, and a builder that grows takes twice as much memory.
	var size counter
	if err := copyTo(&size); err != nil {
		return toValid(ctx, data)
	}
	var b strings.Builder
	b.Grow(int(size))
	if err := copyTo(&b); err != nil {
		return toValid(ctx, data)
	}
	return strings.TrimPrefix(strings.ToValidUTF8(b.String(), "\ufffd"), "\ufeff")
}

// A counter counts the bytes that are written to it.
type counter int64

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// valid reports whether data is UTF-8.
func valid(ctx context.Context, data []byte) bool {
	for _, piece := range plain.Pieces(ctx, data) {
		if !utf8.Valid(piece) {
			return false
		}
	}
	return true
}

// toValid returns data with U+FFFD in place of every run of invalid bytes.
func toValid(ctx context.Context, data []byte) string {
	if valid(ctx, data) {
		return string(data)
	}
	var b strings.Builder
	b.Grow(len(data))
	inRun := false // the last piece ended with an invalid run
	for _, piece := range plain.Pieces(ctx, data) {
		s := strings.ToValidUTF8(string(piece), "\ufffd")
		if r, n := utf8.DecodeRune(piece); inRun && r == utf8.RuneError && n == 1 {
			s = strings.TrimPrefix(s, "\ufffd")
		}
		b.WriteString(s)
		r, n := utf8.DecodeLastRune(piece)
		inRun = r == utf8.RuneError && n == 1
	}
	return b.String()
}

// bomOf returns the charset of a byte order mark, or "" if there is none.
func bomOf(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "utf-8"
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "utf-16le"
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return "utf-16be"
	}
	return ""
}

func isUTF8Name(name string) bool {
	n := strings.ToLower(strings.TrimSpace(name))
	return n == "utf-8" || n == "utf8"
}

// mostlyUTF8 reports whether a declaration of UTF-8 is plausible: at most one
// byte in a hundred is invalid. Servers add the charset to every file.
func mostlyUTF8(ctx context.Context, data []byte) bool {
	bad := 0
	for _, b := range plain.Pieces(ctx, data) {
		for len(b) > 0 {
			r, n := utf8.DecodeRune(b)
			if r == utf8.RuneError && n == 1 {
				bad++
			}
			b = b[n:]
		}
	}
	return bad*100 <= len(data)
}

// lazily compiles a pattern when it is first used. Patterns with large counts
// take milliseconds to compile, which a program that reads no document should
// not spend.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var (
	metaCharset = lazily(`(?is)<meta\s[^>]{0,200}charset\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})`)
	xmlEncoding = lazily(`^\s*<\?xml\s[^>]{0,100}encoding\s*=\s*["']([A-Za-z0-9_:.-]{2,40})["']`)
)

// inDocument returns the charset that a document declares in its first bytes. A
// declaration that is readable as ASCII cannot be in UTF-16, so a declaration
// of UTF-16 means UTF-8 (HTML 13.2.3.2).
func inDocument(data []byte, isHTML bool) string {
	head := data[:min(len(data), metaLen)]
	var name string
	if m := xmlEncoding().FindSubmatch(head); m != nil {
		name = string(m[1])
	}
	if isHTML {
		if m := metaCharset().FindSubmatch(head); m != nil {
			name = string(m[1])
		}
	}
	if strings.HasPrefix(strings.ToLower(name), "utf-16") {
		return "utf-8"
	}
	return name
}

// utf16Without detects UTF-16 without a byte order mark: either every other
// byte of Latin text is zero, or blanks, newlines, kana, CJK punctuation and
// Cyrillic letters are frequent in one byte order and rare in the other. It
// returns "utf-16le", "utf-16be" or "".
func utf16Without(b []byte) string {
	n := len(b) / 2
	valid := utf8.Valid(b)
	if n < 8 || valid && !slices.ContainsFunc(b, isOdd) || mostlyLetters(b) {
		return ""
	}
	var zero, typical [2]int // little endian, big endian
	controls := 0
	for i := range n {
		lo, hi := b[2*i], b[2*i+1]
		if lo > 0 && isOdd(lo) || hi > 0 && isOdd(hi) {
			controls++
		}
		for order, c := range [2][2]byte{{hi, lo}, {lo, hi}} {
			if c[0] == 0 && c[1] != 0 {
				zero[order]++
			}
			if isTypical(rune(c[0])<<8 | rune(c[1])) {
				typical[order]++
			}
		}
	}
	text := valid && controls*8 < n // Cyrillic in UTF-16 is valid UTF-8
	for order, name := range [2]string{"utf-16le", "utf-16be"} {
		other := 1 - order
		if zero[order]*2 >= n && zero[other]*20 <= n {
			return name
		}
		if !text && typical[order]*12 >= n && typical[other]*4 <= typical[order] {
			return name
		}
	}
	return ""
}

// mostlyLetters reports whether more than five of eight bytes are ASCII letters or blanks.
// Of Latin text in UTF-16, at most half are, and of Chinese and Japanese text little more.
func mostlyLetters(b []byte) bool {
	n := 0
	for _, c := range b {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c == ' ' {
			n++
		}
	}
	return n*8 > len(b)*5
}

// isOdd reports whether b is very rare in eight-bit text.
func isOdd(b byte) bool { return b < '\b' }

// isTypical reports whether a UTF-16 unit is typical of UTF-16 and very rare in
// eight-bit text that is read as UTF-16.
func isTypical(u rune) bool {
	return u == ' ' || u == '\n' || u == '\r' || u == 0x3001 || u == 0x3002 ||
		u >= 0x3081 && u <= 0x30ff || u >= 0x0400 && u <= 0x04ff || u >= 0xff01 && u <= 0xff60
}

// detect guesses a charset by escape sequences, by the letters and words of
// languages, and for languages with other scripts by statistics. It is UTF-8 for
// a text that is mostly UTF-8. hints are the languages that the name of a document
// and its neighbours suggest.
func detect(ctx context.Context, data []byte, hints []string) string {
	if bytes.Contains(data, escJIS) || bytes.Contains(data, escJISRoman) {
		return "iso-2022-jp"
	}
	// The text of a page is more significant than its tags. Long runs of ASCII
	// only slow the detector down.
	sample := highLines(data)
	if mostlySequences(sample) {
		return "utf-8"
	}
	for _, h := range hints {
		for _, name := range asianCharsets[h] {
			if plausible(sample, name) {
				return name
			}
		}
	}
	guess, fit := guessCharset(data, sample, hints)
	if fit > clearFit {
		return guess
	}
	name := strings.ToLower(chardet.Detect(sample).Encoding)
	switch name {
	case "cp949":
		name = "euc-kr" // the standard's euc-kr is cp949
	case "gb2312":
		name = "gb18030" // a superset
	}
	if multibyte[name] && plausible(sample, name) {
		return name
	}
	if name == "tis-620" && fit < 0 {
		return "windows-874"
	}
	for _, name := range asianCharsets["ja"] {
		if fit < 0 && plausible(sample, name) && hasKana(charsetText(sample, name)) {
			return name
		}
	}
	return guess
}

// hasKana reports whether a third of the characters of a text are Japanese
// syllables.
func hasKana(text []rune) bool {
	n := 0
	for _, r := range text {
		if r >= 0x3041 && r <= 0x30ff {
			n++
		}
	}
	return n*3 >= len(text)
}

// asianCharsets are the charsets of languages with characters of several bytes.
var asianCharsets = map[string][]string{"ja": {"shift_jis", "euc-jp"}, "zh": {"gb18030", "big5"}, "ko": {"euc-kr"}}

// multibyte are the charsets with characters of two bytes or more.
var multibyte = map[string]bool{"shift_jis": true, "euc-jp": true, "gb18030": true, "big5": true, "euc-kr": true}

// frequentLeads are the first and last of the first bytes of the frequent
// characters in each of multibyte: punctuation, syllables, and the characters that
// the standards list first because they are frequent.
var frequentLeads = map[string][][2]byte{
	"shift_jis": {{0x81, 0x83}, {0x88, 0x97}},
	"euc-jp":    {{0xa1, 0xa1}, {0xa3, 0xa5}, {0xb0, 0xcf}},
	"gb18030":   {{0xa1, 0xa3}, {0xb0, 0xd7}},
	"big5":      {{0xa1, 0xa3}, {0xa4, 0xc6}},
	"euc-kr":    {{0xa1, 0xa3}, {0xb0, 0xc8}},
}

// plausible reports whether a sample in one of multibyte has almost only characters
// that exist, and mostly frequent ones, and whether they do not stand alone inside
// of words.
func plausible(sample []byte, name string) bool {
	text := charsetText(sample, name)
	if text == nil || countRune(text, utf8.RuneError)*20 > len(text) {
		return false
	}
	wide, frequent, alone := 0, 0, 0
	run := 0 // wide characters up to i
	for i := 0; i < len(sample); i++ {
		c := sample[i]
		single := c < utf8.RuneSelf || name == "shift_jis" && c >= 0xa0 && c <= 0xdf
		if single {
			if run == 1 && isLetter(rune(c)) {
				alone++
			}
			run = 0
			continue
		}
		run++
		wide++
		for _, r := range frequentLeads[name] {
			if c >= r[0] && c <= r[1] {
				frequent++
				break
			}
		}
		i++ // the second byte
	}
	return wide > 0 && frequent*4 >= wide*3 && alone*3 <= wide
}

func countRune(text []rune, r rune) int {
	n := 0
	for _, c := range text {
		if c == r {
			n++
		}
	}
	return n
}

// mostlySequences reports whether most bytes of a sample that are not ASCII are
// parts of characters in UTF-8, so that it is damaged or has parts in UTF-8.
func mostlySequences(sample []byte) bool {
	good, bad := 0, 0
	for len(sample) > 0 {
		r, n := utf8.DecodeRune(sample)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case r >= utf8.RuneSelf:
			good++
		}
		sample = sample[n:]
	}
	return good > 2 && good > bad
}

// highLines returns the lines of data that contain a non-ASCII byte, at most
// detectLen bytes of them.
func highLines(data []byte) []byte {
	out := make([]byte, 0, min(len(data), detectLen))
	for len(data) > 0 && len(out) < detectLen {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line = data[:i+1]
		}
		data = data[len(line):]
		if slices.ContainsFunc(line, func(b byte) bool { return b >= utf8.RuneSelf }) {
			out = append(out, line[:min(len(line), detectLen-len(out))]...)
		}
	}
	return out
}

// LooksLikeText reports whether head can be the beginning of a text. A file
// with a text extension may contain a few stray control bytes. With cut, the
// text continues after head, which may then end inside a character.
func LooksLikeText(head []byte, known, cut bool) bool {
	if bomOf(head) != "" || utf16Without(head) != "" {
		return true
	}
	nul, control, high := 0, 0, 0
	for _, b := range head {
		switch {
		case b == 0:
			nul++
		case b < 0x20 && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\b' && b != 0x1b, b == 0x7f:
			control++
		case b >= 0x80:
			high++
		}
	}
	if known {
		return (nul+control)*10 <= len(head)
	}
	if nul > 0 || control*50 > len(head) {
		return false
	}
	// Text that is not UTF-8 may be in an old charset, in which any other
	// control byte is unlikely.
	return high == 0 || validUTF8(head, cut) || control == 0
}

// validUTF8 reports whether b is UTF-8. If it was cut, its last character may
// be incomplete.
func validUTF8(b []byte, cut bool) bool {
	if cut {
		for i := 1; i <= utf8.UTFMax-1 && i <= len(b); i++ {
			if c := b[len(b)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(b[len(b)-i:]) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(b)
}
