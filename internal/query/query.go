// Package query parses the query language of Fess.
//
// It is the language of Lucene's classic parser with AND as the default
// operator (Fess 15.4, QueryParser and the *QueryCommand classes). [Parse]
// returns a tree, which package index evaluates. [Guard] makes a query safe to
// be sent to a Fess server, which appends a label condition to the query as
// text; package fess uses it.
//
// All functions are safe for concurrent use.
package query

import (
	"iter"
	"slices"
)

// A Node is a part of a parsed query: an And, Or, Not, Term, Phrase, Prefix,
// Wildcard, Fuzzy, Range, Boost or All (not a pointer to one).
type Node interface{ node() }

// An And matches documents that all its nodes match.
type And struct {
	Nodes []Node // at least one
	// Optional nodes only raise the rank of the documents that they match.
	// They come from mixed operators without parentheses, such as
	// "a OR b AND c", where Lucene requires b and c.
	Optional []Node
}

// An Or matches documents that at least one of its nodes matches.
type Or struct {
	Nodes []Node // at least two
}

// A Not matches documents that its node does not match. It is the whole query
// or one of the Nodes of an And.
type Not struct {
	Node Node
}

// A Term matches the words of Text in sequence. Mostly this is one word, but
// "full-text" is two, and "-" is none.
type Term struct {
	Field string // one of the search fields; "" means title and content
	Text  string // unescaped, never empty
}

// A Phrase matches the words of Text in sequence.
type Phrase struct {
	Field string // as in Term
	Text  string // unescaped, without the quotes, never empty
	Slop  int    // how many other words may be between them, 0 to 1000
}

// A Prefix matches words that begin with Text.
type Prefix struct {
	Field string // as in Term
	Text  string // unescaped, without the asterisk, never empty
}

// A Wildcard matches words that match a pattern.
type Wildcard struct {
	Field string // as in Term
	// Pattern is not converted to lower case. An asterisk matches any run
	// of characters, a question mark any one character, and a backslash
	// escapes the character after it.
	Pattern string
}

// A Fuzzy matches words within a number of edits of Text.
type Fuzzy struct {
	Field string // as in Term
	Text  string // unescaped, never empty
	Edits int    // 0, 1 or 2
}

// A Range matches values between two bounds.
type Range struct {
	Field             string // never ""
	Low, High         string // unescaped; "" means open
	LowExcl, HighExcl bool   // whether the bound itself is excluded
}

// A Boost matches what its node matches, with a different weight.
type Boost struct {
	Node   Node
	Factor float64 // 0 to 1e6
}

// An All matches every document.
type All struct{}

func (And) node()      {}
func (Or) node()       {}
func (Not) node()      {}
func (Term) node()     {}
func (Phrase) node()   {}
func (Prefix) node()   {}
func (Wildcard) node() {}
func (Fuzzy) node()    {}
func (Range) node()    {}
func (Boost) node()    {}
func (All) node()      {}

// isField reports whether name is a search field (Fess 15.4, QueryFieldConfig).
// Any other name before a colon is text.
func isField(name string) bool {
	switch name {
	case "inurl", "url", "doc_id", "host", "site", "title", "content", "content_length", "last_modified",
		"timestamp", "mimetype", "filetype", "filename", "label", "segment", "anchor", "click_count",
		"favorite_count", "lang":
		return true
	}
	return false
}

// Conditions returns the conditions that a field has one value, without those that
// must not be met.
func (t Text) Conditions() []Term {
	var all []Term
	for n := range leaves(t.Tree()) {
		switch n := n.(type) {
		case Term:
			if n.Field != "" {
				all = append(all, n)
			}
		case Phrase:
			if n.Field != "" {
				all = append(all, Term{Field: n.Field, Text: n.Text})
			}
		}
	}
	return all
}

// FieldOf returns the field of a condition, and its text or pattern; "" for the field of
// other nodes, and for the text of a Range.
func FieldOf(n Node) (field, text string) {
	switch n := n.(type) {
	case Term:
		return n.Field, n.Text
	case Phrase:
		return n.Field, n.Text
	case Prefix:
		return n.Field, n.Text
	case Wildcard:
		return n.Field, n.Pattern
	case Fuzzy:
		return n.Field, n.Text
	case Range:
		return n.Field, ""
	}
	return "", ""
}

// leaves returns the conditions in a tree, without those that must not be met and those
// that only raise a rank.
func leaves(n Node) iter.Seq[Node] {
	return func(yield func(Node) bool) { visitLeaves(n, yield) }
}

// visitLeaves calls yield for the leaves of a tree until it returns false, and reports
// whether it did not.
func visitLeaves(n Node, yield func(Node) bool) bool {
	each := func(nodes []Node) bool {
		return !slices.ContainsFunc(nodes, func(m Node) bool { return !visitLeaves(m, yield) })
	}
	switch n := n.(type) {
	case nil, Not:
		return true
	case And:
		return each(n.Nodes)
	case Or:
		return each(n.Nodes)
	case Boost:
		return visitLeaves(n.Node, yield)
	}
	return yield(n)
}

// FileType returns the value of the field filetype that a user means: Fess's name of
// a format, also for the usual ending of its files, such as excel for xlsx.
func FileType(name string) string {
	switch name {
	case "htm", "xhtml":
		return "html"
	case "doc", "docx":
		return "word"
	case "xls", "xlsx":
		return "excel"
	case "ppt", "pptx":
		return "powerpoint"
	case "text":
		return "txt"
	}
	return name
}

// partsWeight is the weight of the parts of an identifier, beside its own.
const partsWeight = 0.3

// Identifier returns the condition for a word of a plain query: the word or, with
// less weight, all of its parts. Without parts, it is the word.
func Identifier(word string, parts []string) Node {
	n := Node(Term{Text: word})
	if len(parts) == 0 {
		return n
	}
	var all And
	for _, p := range parts {
		all.Nodes = append(all.Nodes, Term{Text: p})
	}
	return Or{Nodes: []Node{n, Boost{Node: all, Factor: partsWeight}}}
}

// MaxFuzzyWord is the greatest length in runes of a word that is compared with
// other words.
const MaxFuzzyWord = 40
