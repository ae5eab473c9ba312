package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Prefixes that set the field of a whole query. Fess recognizes them only at
// the very beginning.
const (
	allInTitle = "allintitle:"
	allInURL   = "allinurl:"
)

// isPlain reports whether s consists only of words: at least one word, and no
// operator, field, quote, wildcard or other reserved character. "don't", "C",
// "full-text", "Node.js, Deno" and Japanese words are plain; "C++", "why?" and
// "a OR b" are not.
//
// Besides letters, digits and underscores, a plain query may contain only
// characters that are ordinary characters of a word in Lucene's grammar
// (QueryParser.jj): punctuation without a meaning there, and a hyphen or an
// ampersand between two letters or digits, where it does not begin a token. So
// Fess parses a plain query as a sequence of terms.
func isPlain(s string) bool {
	if len(s) > maxBytes {
		return false
	}
	words := Fields(s)
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
	seen := false   // a letter or a digit was found
	after := false  // the previous character is a letter or a digit
	inside := false // the previous character must be followed by a letter or a digit
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
		case !isWordSign(r):
			return false
		}
		after = false
	}
	return seen && !inside
}

// isWordRune reports whether r is a character of words.
func isWordRune(r rune) bool { return isLetter(r) || unicode.IsMark(r) || r == '_' }

// isWordSign reports whether r is an ordinary character of a word in Lucene's
// grammar in any position.
func isWordSign(r rune) bool {
	return isWordRune(r) || strings.ContainsRune("'’.,#@%$、。・「」", r)
}

// isBlank reports whether r separates words: white space of any kind or a
// control character.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// A Guarded is a query in a form that cannot match documents of other labels.
type Guarded struct {
	Q     string // value for Fess's parameter q
	Extra string // value for its parameter ex_q, "" if it is not needed
}

// Guard makes a query safe to be sent to a Fess server together with a label.
//
// Fess appends the label condition to the query as text and parses both
// together, so that "a OR" would find the documents of every label. Guard
// normalizes white space, removes operators without operands and an unpaired
// backslash at the end, and encloses the rest in parentheses. Plain queries are
// not changed. Parentheses would break queries that begin with allintitle: or
// allinurl:, so these get an extra condition, which an operator at the end of
// the query applies to instead of the label. Unbalanced parentheses are
// escaped. Guard does not change the meaning of a valid query.
//
// An empty query, one with only operators, and one of more than 10,000 bytes is
// an error of kind errkind.Invalid. Guard does not detect other syntax errors.
func Guard(q string) (Guarded, error) {
	if len(q) > maxBytes {
		return Guarded{}, tooLong(q)
	}
	q = trim(q)
	switch {
	case q == "":
		return Guarded{}, fmt.Errorf("query: there is no word to search for: %w", errkind.Invalid)
	case isPlain(q):
		return Guarded{Q: q}, nil
	case strings.HasPrefix(q, allInTitle), strings.HasPrefix(q, allInURL):
		return Guarded{Q: q, Extra: "*:*"}, nil
	}
	return Guarded{Q: enclose(q)}, nil
}

// trim normalizes white space and removes stray operators until nothing
// changes.
func trim(q string) string {
	words := Fields(q)
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

// strayEnd reports whether a word is an operator that needs a clause after it.
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

// trimWord removes a stray end from the last word of a query: a backslash that
// escapes nothing, an exclamation mark, which means NOT, and an operator
// character after the end of a phrase, a group or a range.
func trimWord(w string) string {
	n := len(w) - len(strings.TrimRight(w, `\`))
	if n%2 == 1 {
		return w[:len(w)-1]
	}
	if rest, ok := strings.CutSuffix(w, "!"); ok && !endsEscaped(rest) {
		return rest
	}
	if rest := strings.TrimRight(w, "+-"); rest != w && rest != "" &&
		strings.ContainsRune(`")]}`, rune(rest[len(rest)-1])) &&
		!endsEscaped(rest[:len(rest)-1]) {
		return rest
	}
	return w
}

// endsEscaped reports whether a character appended to s would be escaped.
func endsEscaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// enclose encloses a query in parentheses unless it already is.
//
// If the query cannot be split into tokens, Fess parses it again with all
// reserved characters escaped. Then the last parenthesis is part of a word, and
// nothing before it can affect the label condition.
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

// insertBackslashes inserts a backslash before the bytes of s at the offsets.
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

// phraseBoost is the boost of quoted words of a sentence where they stand together. Fess
// counts words in the title ten times as much as those in the text, where the phrase must
// outweigh them.
const phraseBoost = "^30"

// anyOf returns a query for documents with any of some words, in the form in which
// [Guard] returns it. Repeated words count once. Without words it returns "". Phrases of
// these words count more than their words do.
func anyOf(words, phrases []string) string {
	var parts []string
	for _, w := range words {
		w = strings.Join(Fields(w), " ")
		if w == "" {
			continue
		}
		if w = Literal(w); !slices.Contains(parts, w) {
			parts = append(parts, w)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if len(parts) == 1 && isPlain(parts[0]) {
		return parts[0]
	}
	for _, p := range phrases {
		parts = append(parts, Quote(p)+phraseBoost)
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// Literal returns a condition for one word or phrase: s if it is a plain word,
// otherwise s in quotes.
func Literal(s string) string {
	if plainWord(s) {
		return s
	}
	return Quote(s)
}

// Quote returns s as one phrase: in quotes, with quotes and backslashes escaped
// and white space normalized.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(Fields(s), " ")) + `"`
}

// escape inserts a backslash before every reserved character, as Fess does
// before it parses an invalid query again (Constants.RESERVED). Quotes are not
// reserved.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `+`, `\+`, `-`, `\-`, `&&`, `\&\&`, `||`, `\|\|`, `!`, `\!`, `(`, `\(`, `)`,
		`\)`,
		`{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `~`, `\~`, `*`, `\*`, `?`, `\?`, `;`, `\;`, `:`, `\:`,
		`/`, `\/`).Replace(s)
}
