package fess

import (
	"html"
	"strings"
)

// plain returns the text of an excerpt that Fess prepared for an HTML page.
func plain(s string) string {
	return strings.TrimSpace(html.UnescapeString(untag(s)))
}

// untag removes tags from a text. Other words between angle brackets are kept,
// for example the type parameters of a program.
func untag(s string) string {
	i := strings.IndexByte(s, '<')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		n := tagLen(s[i:])
		if n == 0 {
			b.WriteString(s[:i+1])
			n = 1
		} else {
			b.WriteString(s[:i])
		}
		s = s[i+n:]
		i = strings.IndexByte(s, '<')
	}
	b.WriteString(s)
	return b.String()
}

// tagLen returns the length of the tag at the beginning of s, or 0 if there is
// none. A tag is < or </, the name of an element, optional attributes after
// white space, and > or />.
func tagLen(s string) int {
	i := 1
	if strings.HasPrefix(s, "</") {
		i = 2
	}
	end := i
	for end < len(s) && (s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z' || s[end] >= '1' && s[end] <= '6') {
		end++
	}
	if end-i > maxElement || end == len(s) || !isElement(s[i:end]) {
		return 0
	}
	rest := s[end:]
	if strings.IndexByte("\t\n\f\r ", rest[0]) >= 0 {
		// Attributes contain no angle brackets.
		if n := strings.IndexAny(rest, "<>"); n >= 0 && rest[n] == '>' {
			return end + n + 1
		}
		return 0
	}
	switch {
	case rest[0] == '>':
		return end + 1
	case strings.HasPrefix(rest, "/>"):
		return end + 2
	}
	return 0
}

// maxElement is the length of the longest name of an element in isElement.
const maxElement = len("strong")

// isElement reports whether a name, in any case, is that of an element that
// Fess writes around matches, or of one that an excerpt may still contain.
func isElement(name string) bool {
	switch strings.ToLower(name) {
	case "a", "b", "br", "code", "dd", "div", "dl", "dt", "em", "font", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "mark",
		"ol", "p", "pre", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul":
		return true
	}
	return false
}
