package query

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Read returns how to search for s, which a person or an agent typed. It may be a
// sentence or a query.
//
// A sentence is a text of four or more words without an operator in capitals, a
// known field with its value, a word that ends with *, ~, ~ and a number or ^ and a
// number, or + or - before the first word. No other character is an operator in a
// sentence, and Read returns its words. From two or three words, and from one in a
// script without blanks between words, Read removes the punctuation at their ends,
// because in the query language "LDAP timeout?" requires one more letter. Any other
// text is a query and is not changed.
//
// If a query cannot be parsed, Read returns its words without the operators, except
// that words that must not occur are still excluded. A slash, which would begin a
// regular expression, is an ordinary character there. Of a text of more than 10,000
// bytes, Read returns the words of the first 10,000 bytes that begin with a word. A
// text without a letter or digit, unless it asks for everything with an asterisk, is
// an error of kind errkind.Invalid.
//
// Beside such words or such a sentence, a text may have conditions on fields without
// words of documents, such as filetype:pdf, or label:a in parentheses with OR and
// label:b: these are [Text.Filter], and the words mean what they mean without them.
func Read(s string) (Text, error) {
	if t, ok := readFiltered(s); ok {
		return t, nil
	}
	text, relaxed, err := read(s)
	if err != nil {
		return Text{}, err
	}
	t := relaxedText(text)
	if relaxed {
		t = withoutExcluded(t)
	}
	t.typed, t.relaxed = s, relaxed
	return t, nil
}

// withoutExcluded returns a text of words and excluded words, at its end, as the words
// with the filter that a document has none of the excluded ones. Other texts stay.
func withoutExcluded(t Text) Text {
	parts := Fields(t.text)
	n := slices.IndexFunc(parts, func(w string) bool { return strings.ContainsAny(w[:1], "-!") })
	if n <= 0 || !isPlain(strings.Join(parts[:n], " ")) {
		return t
	}
	filtered, err := withFilter(parts[:n], strings.Join(parts[n:], " "))
	if err != nil {
		return t
	}
	filtered.filter.typed = strings.Join(parts[:n], " ")
	return filtered
}

// read is Read before the text is parsed. relaxed reports whether s cannot be parsed.
func read(s string) (text string, relaxed bool, err error) {
	first := strings.IndexFunc(s, isLetter)
	if first < 0 {
		if n, err := parseOnce(s); err == nil && n == (All{}) && strings.ContainsRune(s, '*') {
			return s, false, nil
		}
		return "", false, &limitError{"it has no letter and no digit; write a word, or * for all documents"}
	}
	if len(s) > maxBytes {
		return withoutOperators(s[first:min(first+maxBytes, len(s))]), true, nil
	}
	if sentence := isSentence(s); sentence || isPunctuated(s) {
		unparsable := !sentence && strings.Count(s, "(") != strings.Count(s, ")")
		return strings.Join(plainWords(s), " "), unparsable, nil
	}
	everything := strings.ContainsRune(s, '*') || strings.Contains(s,
		"sort:") // may be asked for, but not with empty quotes
	for _, text := range []string{s, strings.ReplaceAll(strings.ReplaceAll(s, `\/`, "/"), "/", `\/`)} {
		if n, err := parseOnce(text); err == nil && (n != (All{}) || everything) {
			return text, false, nil
		}
	}
	return withoutOperators(s), true, nil
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
	quoted := isUnspaced(s) && strings.ContainsRune(s, '"') // a phrase without blanks is one word
	n := 0
	for _, w := range Fields(s) {
		if hasOperator(w) || hasField(w) || hasEnd(w) {
			return false
		}
		if quoted && strings.ContainsFunc(w, isLetter) {
			n++
		} else {
			n += countWords(w)
		}
	}
	return n >= minSentence
}

// countWords returns how many words a part between blanks has: the runs of a text
// in a script without blanks between words, otherwise one if it has a letter or a
// digit.
func countWords(w string) int {
	if isUnspaced(w) {
		parts, _ := Divide([]string{w})
		return len(parts)
	}
	if strings.ContainsFunc(w, isLetter) {
		return 1
	}
	return 0
}

// hasEnd reports whether a part between blanks is a word of two letters or more
// that ends with an operator character: *, ~, ~ and a number, or ^ and a number.
// Parentheses that close a group which another part opens may follow.
func hasEnd(w string) bool {
	for strings.HasSuffix(w, ")") && strings.Count(w, ")") > strings.Count(w, "(") {
		w = w[:len(w)-1]
	}
	word := strings.TrimRight(w, "0123456789.")
	switch {
	case strings.HasSuffix(word, "^"):
		if word == w {
			return false
		}
	case strings.HasSuffix(w, "*"), strings.HasSuffix(word, "~"):
	default:
		return false
	}
	letters := 0
	for _, r := range w {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 2
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

// isPunctuated reports whether s is two or three words, or one in a script without
// blanks between words, with punctuation at their ends and no operator.
func isPunctuated(s string) bool {
	words := Fields(s)
	if field, _ := wholeField(s); field != "" || strings.ContainsAny(s, "\"*~^[]{}\\|&+/") || len(words) > 0 &&
		strings.HasPrefix(words[0], "(") ||
		isPlain(s) && !slices.ContainsFunc(words, isSigns) {
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
	return n < minSentence && (n > 1 || isUnspaced(s))
}

// codeWords returns the words and options of a query with code; see [Text.Code].
func codeWords(s string) (words string, options []string, ok bool) {
	if called := calls.ReplaceAllString(s, "$1 "); called != s {
		s, ok = strings.NewReplacer(")", " ", "'", " ", ",", " ").Replace(called), true
	}
	for i, w := range Fields(s) {
		rest, hyphen := strings.CutPrefix(w, "-")
		if !plainWord(rest) || hyphen && i == 0 {
			return "", nil, false
		}
		if hyphen {
			options, ok = append(options, w), true
		}
	}
	return strings.Join(plainWords(s), " "), options, ok
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

// withoutOperators returns the words of any text as a plain query. If it excludes
// words, with a hyphen, an exclamation mark or NOT before them, the result excludes
// them, too, with a hyphen if the text has one and with an exclamation mark otherwise:
// [Text.Code] reads only hyphens as those of options.
func withoutOperators(s string) string {
	var kept, excluded []string
	not := false
	for _, w := range Fields(s) {
		bare := strings.TrimLeft(w, `("[{`)
		sign := ""
		switch {
		case not || strings.HasPrefix(bare, "!"):
			sign = "!"
		case strings.HasPrefix(bare, "-") && !strings.HasPrefix(bare, "--"):
			sign = "-"
		}
		not = strings.Trim(w, `()"`) == "NOT"
		switch words := plainWords(w); {
		case hasOnlyOperators(w):
			kept = append(kept, w)
		case sign != "":
			for _, x := range words {
				excluded = append(excluded, sign+x)
			}
		default:
			kept = append(kept, w)
		}
	}
	return strings.Join(append(plainWords(strings.Join(kept, " ")), excluded...), " ")
}

// hasOnlyOperators reports whether a part between blanks has operators in capitals
// and no word.
func hasOnlyOperators(w string) bool {
	switch strings.TrimFunc(w, func(r rune) bool { return !isLetter(r) }) {
	case "AND", "OR", "NOT":
		return true
	}
	return false
}

// plainWords returns the words of any text as they may be in a plain query:
// without reserved characters, without punctuation at the end, and with TO in
// lower case. AND, OR and NOT are omitted unless there is no other word.
func plainWords(s string) []string {
	var words, operators []string
	for piece := range strings.FieldsFuncSeq(strings.ToValidUTF8(s, " "),
		func(r rune) bool { return !isWordSign(r) && r != '-' && r != '&' }) {
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
