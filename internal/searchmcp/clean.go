package searchmcp

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// Documents are foreign text, so titles, excerpts, words and texts are cleaned
// by package sanitize.

// textOf returns a part of the text of a document in its lines, without
// invisible characters. A text without any is returned as it is.
func textOf(s string) string {
	hidden := func(r rune) bool { return r != '\n' && r != '\r' && r != '\t' && sanitize.Invisible(r) }
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return sanitize.Lines(s)
}

// title, digest and word return their text cleaned and shortened for lists.
func title(s string) string { return sanitize.Short(s, 200, 600) }

func digest(s string, runes int) string { return sanitize.Short(s, runes, runes*3/2) }

func word(s string) string { return sanitize.Short(s, 100, 300) }

func words(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = word(s)
	}
	return out
}

// link returns a URL in which all invisible characters are percent-encoded, so
// that the URL still leads to its document.
func link(s string) string {
	if strings.IndexFunc(s, isHidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !isHidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isHidden(r rune) bool { return sanitize.Invisible(r) || r != ' ' && unicode.IsSpace(r) }
