package query

import (
	"strings"
	"unicode/utf8"
)

// Literals returns the words of a plain text that are in its literal parts alone, and
// what was typed without these parts. In a literal part, signs join several words
// without a blank, as in /etc/fstab, %Y-%m-%d and Mon..Fri. Words with one sign, such
// as --amend, $HOME, TCP/IP and key=value, are names.
func (t Text) Literals() (words map[string]bool, rest string) {
	if t.kind != Words {
		return nil, t.Question()
	}
	var others []string
	words = map[string]bool{}
	for _, part := range Fields(t.Question()) {
		if !isLiteral(part) {
			others = append(others, part)
			continue
		}
		for _, w := range plainWords(part) {
			words[w] = true
		}
	}
	for _, part := range others {
		for _, w := range plainWords(part) {
			delete(words, w)
		}
	}
	return words, strings.Join(others, " ")
}

// Signs that join the words of paths, formats and other literal parts, and the least
// number of words that one precedes.
const (
	joints    = `/\=%$@<>{}[]|~^*+#&:;`
	minJoints = 2
)

// isLiteral reports whether a part between blanks is literal. Two dots, as between
// the ends of a range, are enough.
func isLiteral(part string) bool {
	n, end := 0, 0 // end is that of the word before
	for i, r := range part {
		if !isWordRune(r) {
			continue
		}
		switch signs := part[end:i]; {
		case strings.ContainsAny(signs, joints):
			n++
		case end > 0 && strings.Contains(signs, ".."):
			return true
		}
		end = i + utf8.RuneLen(r)
	}
	return n >= minJoints
}
