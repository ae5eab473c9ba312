// Package query reads the query language of Fess.
//
// The language is that of Lucene's classic parser with AND as the operator
// between words (Fess 15.4, QueryParser and the *QueryCommand classes).
// [Parse] gives its tree, which package index evaluates. [Guard] makes a
// query safe to be sent to a Fess server, which appends the label condition to
// it as text; package fess uses that.
//
// The package is pure and all its functions are safe for concurrent use.
package query

// A Node is a part of a parsed query: one of And, Or, Not, Term, Phrase,
// Prefix, Wildcard, Fuzzy, Range, Boost and All, as values, not pointers.
type Node interface{ node() }

// An And matches what all its nodes match.
type And struct {
	Nodes []Node // at least one
	// Optional nodes raise the rank of what they match and change nothing
	// else. They come from mixed operators without parentheses, such as
	// "a OR b AND c", where Lucene asks for b and c.
	Optional []Node
}

// An Or matches what one of its nodes matches.
type Or struct {
	Nodes []Node // at least two
}

// A Not matches what its node does not match. It stands alone, where a query
// only excludes, or among the Nodes of an And.
type Not struct {
	Node Node
}

// A Term matches the words of Text one after the other (one word, mostly, but
// "full-text" is two). It may hold no word at all, as "-" does.
type Term struct {
	Field string // one of the search fields; "" means title and content
	Text  string // unescaped, never empty
}

// A Phrase matches the words of Text one after the other.
type Phrase struct {
	Field string // as in Term
	Text  string // unescaped, without the quotes, never empty
	Slop  int    // how many words may stand between, 0 to 1000
}

// A Prefix matches words that begin with Text.
type Prefix struct {
	Field string // as in Term
	Text  string // unescaped, without the asterisk, never empty
}

// A Wildcard matches words of a pattern.
type Wildcard struct {
	Field string // as in Term
	// Pattern is not lower-cased. An asterisk stands for any run of
	// characters, a question mark for any one, a backslash takes the
	// meaning from the character behind it.
	Pattern string
}

// A Fuzzy matches words that become Text by a few edits.
type Fuzzy struct {
	Field string // as in Term
	Text  string // unescaped, never empty
	Edits int    // 0, 1 or 2
}

// A Range matches values between two bounds.
type Range struct {
	Field             string // never ""
	Low, High         string // unescaped; "" means open
	LowExcl, HighExcl bool   // whether the bound itself is out
}

// A Boost matches what its node matches, with another weight.
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

// isField reports whether a name is one of the search fields (Fess 15.4,
// QueryFieldConfig). What stands before a colon and is no search field is
// text.
func isField(name string) bool {
	switch name {
	case "inurl", "url", "doc_id", "host", "site", "title", "content", "content_length", "last_modified",
		"timestamp", "mimetype", "filetype", "filename", "label", "segment", "anchor", "click_count",
		"favorite_count", "lang":
		return true
	}
	return false
}
