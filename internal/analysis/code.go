package analysis

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// parts yields the parts of a word in mixed case.
func (sc *scanner) parts(word string) {
	for p := range mixed(word) {
		t := strings.ToLower(p)
		x := Indexed{Token: t, Word: t, Beside: true}
		if stemmer, ok := stemmerOf(classOf(t), sc.language); ok {
			x.Token = stemOf(t, stemmer).token
		}
		sc.emitIndexed(x)
	}
}

// mixed returns the parts of two letters or more of an ASCII word in mixed case:
// "parseHTTPResponse2" is parse, HTTP and Response. It returns none if the word
// has no border inside.
func mixed(word string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := 0
		for i := 1; i <= len(word); i++ {
			if i < len(word) && !borderAt(word, i) || from == 0 && i == len(word) {
				continue
			}
			if p := word[from:i]; len(p) >= minWord && isASCIILetter(p[0]) && !yield(p) {
				return
			}
			from = i
		}
	}
}

// borderAt reports whether a part of an identifier begins at word[i], i > 0.
func borderAt(word string, i int) bool {
	before, here := word[i-1], word[i]
	switch {
	case isCapital(here):
		return !isCapital(before) || i+1 < len(word) && isASCIILetter(word[i+1]) && !isCapital(word[i+1])
	case isASCIILetter(here):
		return false
	}
	return isASCIILetter(before) // a digit
}

func isCapital(c byte) bool     { return 'A' <= c && c <= 'Z' }
func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Parts returns the names that an identifier of a query is made of, at least two
// of two letters or more, or nil: those between dots, underscores and borders of
// case. "InvoicePrinter.printAll" is Invoice, Printer, print and All.
func Parts(word string) []string {
	var all []string
	for name := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == '.' || r == '_' }) {
		n := len(all)
		for p := range mixed(name) {
			all = append(all, p)
		}
		if len(all) == n && len(name) >= minWord && strings.ContainsFunc(name, isIdentifierLetter) {
			all = append(all, name)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

func isIdentifierLetter(r rune) bool { return r < utf8.RuneSelf && isASCIILetter(byte(r)) }

// signPrefix is what the tokens of signs begin with. No word has it.
const signPrefix = "="

// operators are the characters that runs of signs consist of.
const operators = "!=<>&|:+*%^~@#$?-"

// maxSigns is the greatest length of a run of signs, and maxSigned that of a name
// with a sign, in bytes.
const (
	maxSigns  = 4
	maxSigned = 40
)

// signBytes are the characters at which signs may begin.
var signBytes = func() (is [256]bool) {
	for i := range len(operators) {
		is[operators[i]] = true
	}
	is['.'] = true
	return is
}()

// Signs returns the tokens of signs in s, which [Analyze] yields beside words, as
// they are indexed: options with their hyphens (-Xmx, --amend), names with a sign
// before or behind them (%02d, $HOME, @property, <b, .NET, C++, C#), and runs of
// two to four operators (::, !=, ->). They begin with a sign, and so differ from
// words. They are in lower case, except options of one letter. None is repeated.
func Signs(s string) []string {
	var all []string
	seen := map[string]bool{}
	for x := range Analyze(s, English) {
		if IsSign(x.Token) && !seen[x.Token] {
			seen[x.Token] = true
			all = append(all, x.Token)
		}
	}
	return all
}

// OptionSign returns the token of [Signs] for a word with hyphens before it, such
// as -Xmx or --amend. ok is false if the word does not have exactly this token.
func OptionSign(word string) (token string, ok bool) {
	signs := Signs(word)
	if len(signs) != 1 || !strings.EqualFold(signs[0], signPrefix+word) {
		return "", false
	}
	return signs[0], true
}

// IsSign reports whether a token is one of [Signs].
func IsSign(token string) bool { return strings.HasPrefix(token, signPrefix) }

// sign yields the token of the signs at s[i], which is one of signBytes, if they
// mean something.
func (sc *scanner) sign(i int) {
	s, c := sc.s, sc.s[i]
	before := byte(' ')
	if i > 0 {
		before = s[i-1]
	}
	inWord := isWordByte(before) || before == '_' || before >= utf8.RuneSelf
	end := i
	for end < len(s) && strings.IndexByte(operators, s[end]) >= 0 {
		end++
	}
	run := s[i:end]
	sc.signed = max(end, i+1)
	from := i
	switch {
	case isASCIILetter(before) && (run == "++" || run == "#") && !nameAt(s, end): // C++, C#
		for from > 0 && isWordByte(s[from-1]) && end-from < maxSigned {
			from--
		}
	case !inWord && (run == "-" || run == "--") && end < len(s) && isASCIILetter(s[end]): // --amend
		for end < len(s) && end-i < maxSigned && (nameAt(s, end) || s[end] == '-') {
			end++
		}
		for s[end-1] == '-' {
			end--
		}
	case !inWord && before != '.' && len(run) <= 1 && strings.IndexByte("%$@<.", c) >= 0 && sc.named(i): // $HOME, .NET
		for end = i + 1; end < len(s) && end-i < maxSigned && nameAt(s, end); {
			end++
		}
	case len(run) < 2 || len(run) > maxSigns:
		return
	}
	token := s[from:end]
	if c != '-' || len(token) != 2 { // not an option of one letter
		token = strings.ToLower(token)
	}
	sc.emitIndexed(Indexed{Token: signPrefix + token, Beside: true})
}

// named reports whether a name follows the sign at s[i].
func (sc *scanner) named(i int) bool {
	i++
	return i < len(sc.s) && (isASCIILetter(sc.s[i]) || sc.s[i-1] == '%' && isWordByte(sc.s[i]))
}

// nameAt reports whether s[i] is a letter, a digit or an underscore.
func nameAt(s string, i int) bool { return i < len(s) && (isWordByte(s[i]) || s[i] == '_') }
