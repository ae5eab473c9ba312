package query

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Reading is how to search for a text that a person or an agent typed.
type Reading struct {
	Text    string // in the query language: the unchanged text, or its words
	Relaxed bool   // the text cannot be parsed, and Text is its words
}

// Read returns how to search for s, which may be a sentence or a query.
//
// A sentence is a text of four or more words without an operator in capitals, a
// known field with its value, a word with ^, ~ or * attached, or + or - before
// the first word. No other character is an operator in a sentence, and Read
// returns its words. From two or three words, Read removes the punctuation at
// their ends, because in the query language "LDAP timeout?" requires one more
// letter. Any other text is a query and is not changed.
//
// If a query cannot be parsed, Read returns its words without the operators. A
// slash, which would begin a regular expression, is an ordinary character
// there. Of a text of more than 10,000 bytes, Read returns the words of the first
// 10,000 bytes. A text without a word, unless it is empty or asks for everything
// with an asterisk, is an error of kind errkind.Invalid.
func Read(s string) (Reading, error) {
	if len(s) > maxBytes {
		if words := plainWords(s[:maxBytes]); len(words) > 0 {
			return Reading{Text: strings.Join(words, " "), Relaxed: true}, nil
		}
		return Reading{}, tooLong(s)
	}
	if isSentence(s) || isPunctuated(s) {
		return Reading{Text: strings.Join(plainWords(s), " ")}, nil
	}
	n, err := parseOnce(s)
	if _, all := n.(All); all && strings.Contains(s, `"`) && !strings.ContainsRune(s, '*') && !strings.Contains(s, "sort:") {
		return Reading{}, &limitError{"it has empty quotes and no word; write a word, or * for all documents"}
	}
	if strings.ContainsRune(s, '?') && strings.TrimFunc(s, func(r rune) bool { return r == '?' || unicode.IsSpace(r) }) == "" {
		return Reading{}, &limitError{"it has question marks and no word; write a word, or * for all documents"}
	}
	if err == nil {
		return Reading{Text: s}, nil
	}
	slashed := strings.ReplaceAll(strings.ReplaceAll(s, `\/`, "/"), "/", `\/`)
	if _, err := parseOnce(slashed); err == nil {
		return Reading{Text: slashed}, nil
	}
	if words := plainWords(s); len(words) > 0 {
		return Reading{Text: strings.Join(words, " "), Relaxed: true}, nil
	}
	return Reading{}, err
}

// minSentence is the least number of words in a sentence.
const minSentence = 4

// isSentence reports whether s is a sentence as defined by [Read].
func isSentence(s string) bool {
	if field, _ := wholeField(s); field != "" {
		return false
	}
	first := strings.IndexFunc(s, isLetter)
	if first < 0 || strings.ContainsAny(s[:first], "+-") {
		return false
	}
	n := 0
	for _, w := range Words(s) {
		if hasOperator(w) || hasField(w) {
			return false
		}
		if strings.ContainsFunc(w, isLetter) {
			if strings.ContainsAny(w, "^~*") {
				return false
			}
			n++
		}
	}
	return n >= minSentence
}

// isLetter reports whether r is a letter or a digit of any script.
func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// hasOperator reports whether a part between blanks contains an operator in
// capitals.
func hasOperator(w string) bool {
	for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune(`():^[]"{}~!/`, r) }) {
		switch strings.TrimLeft(part, "+-") {
		case "AND", "OR", "NOT":
			return true
		}
	}
	return false
}

// hasField reports whether a part between blanks begins with a search field, a
// colon and a value.
func hasField(w string) bool {
	name, value, _ := strings.Cut(w, ":")
	name = strings.TrimLeft(name, "(+-!")
	return (isField(name) || name == "sort") && !isSigns(value)
}

// isPunctuated reports whether s is two or three words with punctuation at
// their ends and no operator.
func isPunctuated(s string) bool {
	words := Words(s)
	if field, _ := wholeField(s); field != "" || strings.ContainsAny(s, "\"*~^[]{}\\|&+/") || len(words) > 0 && strings.HasPrefix(words[0], "(") ||
		Plain(s) && !slices.ContainsFunc(words, isSigns) {
		return false
	}
	n := 0
	for _, w := range words {
		if hasOperator(w) || strings.IndexAny(w, "-!") == 0 && !isSigns(w) {
			return false
		}
		if i := strings.IndexAny(w, "?:"); i >= 0 && !isSigns(w[i:]) {
			return false // a wildcard or a field
		}
		if strings.ContainsFunc(w, isLetter) {
			n++
		}
	}
	return 1 < n && n < minSentence
}

// Code returns the words of a query that contains code and no other operators,
// as in "java -Xmx" and "strftime('%s','now')": a hyphen before a word that is not
// the first may begin an option of a program and not a word that must not occur,
// and parentheses that follow a word may be those of a call and not a group. ok is
// false for other queries.
func Code(s string) (words string, ok bool) {
	if called := calls.ReplaceAllString(s, "$1 "); called != s {
		s, ok = strings.NewReplacer(")", " ", "'", " ", ",", " ").Replace(called), true
	}
	for i, w := range Words(s) {
		rest, hyphen := strings.CutPrefix(w, "-")
		if !plainWord(rest) || hyphen && i == 0 {
			return "", false
		}
		ok = ok || hyphen
	}
	return strings.Join(plainWords(s), " "), ok
}

// calls matches the parenthesis of a call and the letter or digit before it.
var calls = regexp.MustCompile(`([\pL\pN_])\(`)

// isSign reports whether r is punctuation that separates sentences and their
// parts.
func isSign(r rune) bool {
	return strings.ContainsRune("()?!.,;:-–—…'？！。、，；：（）", r)
}

// isSigns reports whether w consists of such punctuation.
func isSigns(w string) bool { return strings.TrimFunc(w, isSign) == "" }

// AsWords returns the words of a query as a plain query. It reports whether there
// are any and the query is another one.
func AsWords(s string) (string, bool) {
	words := strings.Join(plainWords(s[:min(len(s), maxBytes)]), " ")
	return words, words != "" && words != s
}

// plainWords returns the words of any text as they may be in a plain query:
// without reserved characters, without punctuation at the end, and with TO in
// lower case. AND, OR and NOT are omitted unless there is no other word.
func plainWords(s string) []string {
	var words, operators []string
	for piece := range strings.FieldsFuncSeq(strings.ToValidUTF8(s, " "), func(r rune) bool { return !isPlain(r) && r != '-' && r != '&' }) {
		parts := []string{piece}
		if !plainWord(piece) {
			parts = strings.FieldsFunc(piece, func(r rune) bool { return r == '-' || r == '&' })
		}
		for _, w := range parts {
			switch w = strings.TrimRight(w, ".,'’、。"); w {
			case "AND", "OR", "NOT":
				operators = append(operators, strings.ToLower(w))
				continue
			case "TO":
				w = "to"
			}
			if plainWord(w) {
				words = append(words, w)
			}
		}
	}
	if len(words) == 0 {
		return operators
	}
	return words
}
