package analysis

import (
	"strings"
	"unicode/utf8"
)

// overlapSize is how many bytes of the next chunk are indexed with a chunk.
const overlapSize = 96

// Overlapped returns the text that is indexed for the chunk text[from:to]: its own
// text and, if it ends inside a paragraph, the beginning of the next chunk, so
// that a phrase or a Japanese word across the border is found.
func Overlapped(text string, from, to int) string {
	own, rest := text[from:to], text[to:]
	if rest == "" || strings.HasSuffix(own, "\n\n") || strings.HasPrefix(rest, "\n\n") {
		return own
	}
	n := min(len(rest), overlapSize)
	for n > 0 && n < len(rest) && !utf8.RuneStart(rest[n]) {
		n--
	}
	tail := rest[:n]
	if para, _, ok := strings.Cut(tail, "\n\n"); ok {
		return text[from : to+len(para)]
	}
	if r, _ := utf8.DecodeLastRuneInString(tail); len(tail) < len(rest) && !IsCJK(r) {
		tail = tail[:strings.LastIndexAny(tail, " \n\t")+1] // whole words only
	}
	return text[from : to+len(tail)]
}
