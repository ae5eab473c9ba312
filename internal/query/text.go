package query

import (
	"slices"
	"strings"
)

// A Text is the text of a query, read once. [Read] and [Parse] make it, so every
// Text can be evaluated. The zero Text asks for everything.
type Text struct {
	text    string // in the query language
	typed   string
	kind    Kind
	tree    Node
	words   []string
	options []string
	relaxed bool
	filter  filter
}

// A Kind classifies the text of a query.
type Kind int

// The kinds of texts.
const (
	Everything Kind = iota // all documents that meet the other conditions
	Words                  // words without operators, also those of a sentence
	Expression             // anything else
)

// Parse returns s, which is in the query language, without changing it. Fess 15.4
// reads queries in this way.
//
// Words are joined by AND. The operators are AND, OR and NOT in capitals, &&,
// ||, +, - and !, with the precedence of Lucene's classic parser (an operator
// changes the two clauses next to it; see [And] for "a OR b AND c").
// Parentheses, field:value for the search fields, quotes, ^n, ~n, ranges and
// the wildcards * and ? have their usual meaning. "allintitle:" and "allinurl:"
// at the very beginning change the field of all words without a field to title
// and inurl. A "sort:" clause is ignored. "" asks for everything.
//
// If a query has a syntax error, Parse escapes its reserved characters, so that
// they are text, and tries again. If that fails too (because of an unbalanced
// quote, or an operator without its clause), the error is of kind
// errkind.Invalid and contains the position. A query with more than 10,000
// bytes, 1,024 clauses or 64 levels of parentheses is also an error of this
// kind.
func Parse(s string) (Text, error) {
	n, err := parseTree(s)
	if err != nil {
		return Text{}, err
	}
	t := Text{text: s, tree: n, kind: Expression}
	if _, ok := n.(All); ok {
		t.kind = Everything
	} else if isPlain(s) {
		t.kind, t.words = Words, Fields(s)
	}
	return t, nil
}

// MustParse is like [Parse] but panics if s cannot be parsed. It is for texts that
// are part of a program.
func MustParse(s string) Text {
	t, err := Parse(s)
	if err != nil {
		panic("query: " + err.Error())
	}
	return t
}

// AnyOf returns a query for documents with any of some words, of which it uses the
// first 500. Repeated words count once. Without words, it asks for everything.
func AnyOf(words []string) Text { return anyWithin(words, nil, "") }

// anyWithin is AnyOf with phrases that are preferred and conditions in the query
// language, "" for none.
func anyWithin(words, phrases []string, conditions string) Text {
	words = words[:min(len(words), maxAny)]
	for {
		t, err := Parse(strings.TrimSpace(anyOf(words, phrases) + " " + conditions))
		switch {
		case err == nil:
			return t
		case phrases != nil: // the text is too long
			phrases = nil
		default:
			words = words[:len(words)/2]
		}
	}
}

// maxAny is how many words a query for any of them has at most. Fess accepts 1,024.
const maxAny = 500

// String returns the text in the query language.
func (t Text) String() string { return t.text }

// Typed returns the text as it was typed, with its signs. It returns "" if t was
// not made by [Read].
func (t Text) Typed() string { return t.typed }

// Kind returns what t consists of.
func (t Text) Kind() Kind { return t.kind }

// Tree returns the parsed query, with the conditions of [Text.Filter].
func (t Text) Tree() Node {
	if t.tree == nil {
		return All{}
	}
	return t.tree
}

// Words returns the words of a text of kind Words, in order and unchanged. The
// caller must not change them. It returns nil for other texts.
func (t Text) Words() []string { return t.words }

// SomeWords is the least number of words of a plain query for which some of them are enough.
const SomeWords = 3

// SomeSuffice reports whether the text has so many words that a document need not have
// all of them.
func (t Text) SomeSuffice() bool {
	_, divided := Divide(t.words)
	return t.kind == Words && (len(t.words) >= SomeWords || divided)
}

// Options returns the words with hyphens before them, such as -Xmx, that a document
// must have in this form; see [Text.Code].
func (t Text) Options() []string { return t.options }

// Relaxed reports whether the text could not be parsed, so that it consists of the
// words and the excluded words of what was typed.
func (t Text) Relaxed() bool { return t.relaxed }

// Equal reports whether two texts mean the same and were typed in the same way.
func (t Text) Equal(u Text) bool {
	return t.text == u.text && t.kind == u.kind && t.typed == u.typed && t.relaxed == u.relaxed &&
		slices.Equal(t.options, u.options)
}

// Bare returns the words of a query that cannot be evaluated, and the words that it
// excludes, as a query that can be. It reports whether there are any words and the
// query is another one.
func (t Text) Bare() (Text, bool) {
	words := withoutOperators(t.text)
	if words == "" || words == t.text {
		return Text{}, false
	}
	return t.replaced(words), true
}

// Code returns the words of a query that contains code and no other operators,
// as in "java -Xmx" and "strftime('%s','now')": a hyphen before a word that is not
// the first may begin an option of a program and not a word that must not occur,
// and parentheses that follow a word may be those of a call and not a group. The
// words with such a hyphen are options of the result. ok is false for other queries.
func (t Text) Code() (code Text, ok bool) {
	words, options, ok := codeWords(t.text)
	if !ok {
		return Text{}, false
	}
	code = t.replaced(words)
	code.options = options
	return code, true
}

// Unsigned returns the words between the signs of a query that has no operator,
// although its signs could be some, such as a path or "OnCalendar=Mon..Fri 09:00". ok
// is false for other queries.
func (t Text) Unsigned() (words Text, ok bool) {
	if t.kind != Expression {
		return Text{}, false
	}
	nodes := []Node{t.tree}
	if and, ok := t.tree.(And); ok && and.Optional == nil {
		nodes = and.Nodes
	}
	var terms []string
	for _, n := range nodes {
		if term, ok := n.(Term); ok && term.Field == "" {
			terms = append(terms, term.Text)
		}
	}
	if !slices.Equal(terms, Fields(strings.ReplaceAll(t.text, `\`, ""))) { // signs may be escaped
		return Text{}, false
	}
	return t.Bare()
}

// replaced returns a text with other words, which are plain or excluded.
func (t Text) replaced(words string) Text {
	u := relaxedText(words)
	u.typed = t.typed
	return u
}

// relaxedText returns the Text for words of which some are excluded, at the end. Of
// more words than a query may have, it has the first and the last.
func relaxedText(words string) Text {
	t, err := Parse(words)
	if err != nil {
		parts := Fields(words)
		t, err = Parse(strings.Join(slices.Concat(parts[:min(len(parts), maxAny)], parts[max(len(parts)-maxAny, 0):]),
			" "))
	}
	if err != nil {
		return Text{}
	}
	return t
}

// maxPhrases is how many quoted parts of a sentence are used.
const maxPhrases = 8

// quotes are the marks of quotations other than the quotation mark of ASCII.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "「", `"`, "」", `"`)

// Phrases returns the quoted parts of a sentence that have several words, without
// signs. Documents in which such words stand together are preferred.
func (t Text) Phrases() (phrases []string) {
	if t.kind != Words {
		return nil
	}
	parts := strings.Split(quotes.Replace(t.Question()), `"`)
	for i := 1; i+1 < len(parts) && len(phrases) < maxPhrases; i += 2 {
		words := plainWords(parts[i])
		if divided, _ := Divide(words); len(divided) > 1 {
			phrases = append(phrases, strings.Join(words, " "))
		}
	}
	return phrases
}

// Any returns a query for documents with any of the words of t, which has two or
// more. Those with its [Text.Phrases] are preferred. Words in scripts without blanks
// between words are those of [Divide] and their [Pieces]. pieces reports whether there
// are such pieces. ok is false if t has no words or only one.
func (t Text) Any() (some Text, pieces, ok bool) {
	words, _ := Divide(t.words)
	n := len(words)
	for _, w := range words[:n] {
		words = append(words, Pieces(w)...)
	}
	if len(words) < 2 {
		return Text{}, false, false
	}
	some = t.AnyOf(words)
	some.typed, some.options = t.typed, t.options
	return some, len(words) > n, true
}

// Fields returns the parts of s between white space of any kind and control
// characters.
func Fields(s string) []string {
	return strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), isBlank)
}

// Terms returns the words of the text that a document may have because of a condition:
// its words, or those of an expression in the text or the title of a document, without
// those that must not occur.
func (t Text) Terms() []string {
	if t.kind != Expression {
		return t.words
	}
	var words []string
	add := func(field, text string) {
		if field == "" || field == "title" || field == "content" {
			words = append(words, strings.Fields(text)...)
		}
	}
	for n := range leaves(t.Tree()) {
		switch n := n.(type) {
		case Term:
			add(n.Field, n.Text)
		case Phrase:
			add(n.Field, n.Text)
		case Prefix:
			add(n.Field, n.Text)
		case Fuzzy:
			add(n.Field, n.Text)
		}
	}
	return words
}
