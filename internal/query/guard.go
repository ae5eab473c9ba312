package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"knowhow/internal/errkind"
)

// The prefixes that move a whole query to one field. Fess honours them only at
// the very start.
const (
	allInTitle = "allintitle:"
	allInURL   = "allinurl:"
)

// Plain reports whether s is words only: at least one word and no operator,
// field, quote, wildcard or other reserved character. "don't", "C", "full-text",
// "Node.js, Deno" and Japanese words are plain; "C++", "why?" and "a OR b" are
// not.
//
// It takes more than letters, digits and underscores, but only signs that are
// ordinary characters of a word in Lucene's grammar (QueryParser.jj): signs of
// punctuation that it does not know, and a hyphen or an ampersand between two
// letters or digits, where it begins no token. Parsed by Fess, a plain query is
// therefore a sequence of terms and nothing else.
func Plain(s string) bool {
	if len(s) > maxBytes {
		return false
	}
	words := Words(s)
	for _, w := range words {
		if !plainWord(w) {
			return false
		}
	}
	return len(words) > 0
}

// plainWord reports whether one word is plain.
func plainWord(w string) bool {
	switch w {
	case "AND", "OR", "NOT", "TO":
		return false
	}
	seen := false   // a letter or a digit
	after := false  // the character before is one
	inside := false // the character before must be followed by one
	for _, r := range w {
		switch {
		case isWordRune(r):
			if !unicode.IsMark(r) {
				seen = true
			}
			after, inside = true, false
			continue
		case inside:
			return false
		case r == '-' || r == '&':
			if !after {
				return false
			}
			inside = true
		case !isPlain(r):
			return false
		}
		after = false
	}
	return seen && !inside
}

// isWordRune reports whether words are made of r.
func isWordRune(r rune) bool { return isLetter(r) || unicode.IsMark(r) || r == '_' }

// isPlain reports whether r is an ordinary character of a word in Lucene's
// grammar wherever it stands.
func isPlain(r rune) bool {
	return isWordRune(r) || strings.ContainsRune("'’.,#@%$、。・「」", r)
}

// Words returns the words of a plain query, in order, as they are written. For
// another query it returns the pieces between its blanks.
func Words(s string) []string {
	return strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), isBlank)
}

// isBlank reports whether r parts words: white space of any kind, control
// characters included.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Guarded is a query in a form that cannot leave its label.
type Guarded struct {
	Q     string // value for Fess's parameter q
	Extra string // value for its parameter ex_q, "" if it is not needed
}

// Guard makes a query safe to be sent to a Fess server together with a label.
//
// Fess writes the label condition behind the query, as text, and parses both
// as one, so that "a OR" would ask for the documents of every label. Guard
// folds white space and drops operators that have nothing to work on and an odd
// backslash at the end, and puts the rest into parentheses. Plain queries stay
// as they are, and queries that begin with allintitle: or allinurl:, which
// parentheses would break, come with an extra condition that any operator at
// their end meets instead of the label's. Parentheses of a query that are not
// in pairs are escaped. What is a valid query before means the same after.
//
// An empty query, one of operators only, and one of more than 10,000 bytes is
// an error of kind errkind.Invalid. Other errors of syntax are left for Fess to
// find.
func Guard(q string) (Guarded, error) {
	if len(q) > maxBytes {
		return Guarded{}, tooLong(q)
	}
	q = trim(q)
	switch {
	case q == "":
		return Guarded{}, fmt.Errorf("query: there is no word to search for: %w", errkind.Invalid)
	case Plain(q):
		return Guarded{Q: q}, nil
	case strings.HasPrefix(q, allInTitle), strings.HasPrefix(q, allInURL):
		return Guarded{Q: q, Extra: "*:*"}, nil
	}
	return Guarded{Q: enclose(q)}, nil
}

// trim folds white space and drops stray operators until nothing changes.
func trim(q string) string {
	words := Words(q)
	for len(words) > 0 {
		last := len(words) - 1
		w := trimWord(words[last])
		switch {
		case w == "" || strayEnd(w) && (last == 0 || !endsEscaped(words[last-1])): // `\ OR` is one word
			words = words[:last]
		case w != words[last]:
			words[last] = w
		case strayStart(words[0]):
			words = words[1:]
		default:
			return strings.Join(words, " ")
		}
	}
	return ""
}

// strayEnd reports whether a word is an operator that needs a clause behind it.
func strayEnd(w string) bool {
	switch w {
	case "AND", "OR", "NOT", "&&", "||", "+", "-", "!":
		return true
	}
	return false
}

// strayStart reports whether a word is an operator that needs a clause before
// it.
func strayStart(w string) bool {
	switch w {
	case "AND", "OR", "&&", "||":
		return true
	}
	return false
}

// trimWord drops what the last word of a query must not end with: a backslash
// that escapes nothing, an exclamation mark, which is NOT, and a sign behind
// the end of a phrase, a group or a range.
func trimWord(w string) string {
	n := len(w) - len(strings.TrimRight(w, `\`))
	if n%2 == 1 {
		return w[:len(w)-1]
	}
	if rest, ok := strings.CutSuffix(w, "!"); ok && !endsEscaped(rest) {
		return rest
	}
	if rest := strings.TrimRight(w, "+-"); rest != w && rest != "" && strings.ContainsRune(`")]}`, rune(rest[len(rest)-1])) &&
		!endsEscaped(rest[:len(rest)-1]) {
		return rest
	}
	return w
}

// endsEscaped reports whether a character behind s would be escaped.
func endsEscaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// enclose puts a query into parentheses unless it is in some already.
//
// Where the query does not even fall into tokens, Fess reads it once more with
// all reserved characters escaped; then the last parenthesis is part of a word,
// and nothing that stands before it can reach the label.
func enclose(q string) string {
	toks, err := lex(q)
	if err != nil {
		if strings.HasPrefix(q, "(") && strings.HasSuffix(q, ")") {
			return q
		}
		return "(" + q + ")"
	}
	depth, whole, paired := 0, toks[0].kind == tokLParen, true
	var parens []int
	for i, t := range toks {
		switch t.kind {
		case tokLParen:
			depth++
			parens = append(parens, t.pos)
		case tokRParen:
			depth--
			parens = append(parens, t.pos)
		}
		if depth < 0 {
			paired = false
		}
		if depth == 0 && i < len(toks)-2 { // the last token is the end
			whole = false
		}
	}
	switch {
	case depth != 0 || !paired:
		return "(" + insertBackslashes(q, parens) + ")"
	case whole:
		return q
	}
	return "(" + q + ")"
}

// insertBackslashes puts a backslash before the bytes of s at the offsets.
func insertBackslashes(s string, offsets []int) string {
	var b strings.Builder
	last := 0
	for _, at := range offsets {
		b.WriteString(s[last:at])
		b.WriteByte('\\')
		last = at
	}
	b.WriteString(s[last:])
	return b.String()
}

// AnyOf returns a query for documents with any of the words of a plain query,
// in the form in which [Guard] sends it. Words that are said twice count once;
// no word gives "".
func AnyOf(words []string) string {
	var parts []string
	for _, w := range words {
		w = strings.Join(Words(w), " ")
		if w == "" {
			continue
		}
		if strings.Contains(w, " ") || !plainWord(w) {
			w = Quote(w)
		}
		if !slices.Contains(parts, w) {
			parts = append(parts, w)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if len(parts) == 1 && Plain(parts[0]) {
		return parts[0]
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// Quote returns s as one phrase: in quotes, with quotes and backslashes inside
// escaped and white space folded.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(Words(s), " ")) + `"`
}

// escape puts a backslash before every reserved character, as Fess does before
// it reads a query with an error once more (Constants.RESERVED). Quotes are not
// among them.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `+`, `\+`, `-`, `\-`, `&&`, `\&\&`, `||`, `\|\|`, `!`, `\!`, `(`, `\(`, `)`, `\)`,
		`{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `~`, `\~`, `*`, `\*`, `?`, `\?`, `;`, `\;`, `:`, `\:`, `/`, `\/`).Replace(s)
}
