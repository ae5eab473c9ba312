package query

import (
	"slices"
	"strings"
)

// A filter is the conditions on fields beside plain words.
type filter struct {
	text  string // in the query language, "" for none
	tree  Node   // nil for none
	typed string // what was typed without the conditions
}

// Filter returns the conditions that a document must meet and that do not count in the
// ranking, or nil. Only a text of kind Words that [Read] made has some: [Text.Tree]
// contains them, and [Text.Words] does not.
func (t Text) Filter() Node { return t.filter.tree }

// Question returns what was typed, with its signs and without the conditions of
// [Text.Filter]. It returns "" if t was not made by [Read].
func (t Text) Question() string {
	if t.filter.tree != nil {
		return t.filter.typed
	}
	return t.typed
}

// Plain returns the text in the query language without the conditions of [Text.Filter].
func (t Text) Plain() string {
	if t.filter.tree != nil {
		return strings.Join(t.words, " ")
	}
	return t.text
}

// AnyOf returns a query for documents with any of some words that meet the conditions
// of [Text.Filter]; see the function [AnyOf]. Those with [Text.Phrases] are preferred.
func (t Text) AnyOf(words []string) Text { return anyWithin(words, t.Phrases(), t.filter.text) }

// AllOf returns a query for documents with all of some words, which may contain
// operators and are not read as such, that meet the conditions of [Text.Filter].
func (t Text) AllOf(words []string) (Text, error) {
	parts := make([]string, len(words), len(words)+1)
	for i, w := range words {
		parts[i] = Quote(w)
	}
	if t.filter.text != "" {
		parts = append(parts, t.filter.text)
	}
	return Parse(strings.Join(parts, " "))
}

// readFiltered returns the text for s if it consists of words, which may be a sentence,
// and of conditions on fields that have no words of documents, such as filetype:pdf or
// timestamp:[now-7d TO *], in any order. ok is false for other texts.
func readFiltered(s string) (t Text, ok bool) {
	if len(s) > maxBytes {
		return Text{}, false
	}
	clauses, ok := divided(s)
	if !ok {
		return Text{}, false
	}
	var rest, conditions []string
	for _, c := range clauses {
		if isCondition(c) {
			conditions = append(conditions, c)
		} else {
			rest = append(rest, c)
		}
	}
	typed := strings.Join(rest, " ")
	question := isPlain(typed) || isPunctuated(typed) || isSentence(typed) && !strings.ContainsRune(typed, '"')
	if conditions == nil || !question {
		return Text{}, false
	}
	t, err := withFilter(plainWords(typed), strings.Join(conditions, " "))
	t.typed, t.filter.typed = s, typed
	return t, err == nil
}

// withFilter returns the text for words and for conditions in the query language.
func withFilter(words []string, conditions string) (Text, error) {
	tree, err := parseOnce(conditions)
	if err != nil {
		return Text{}, err
	}
	t, err := Parse(strings.Join(words, " ") + " " + conditions)
	if err != nil {
		return Text{}, err
	}
	t.kind, t.words, t.filter = Words, words, filter{text: conditions, tree: tree}
	return t, nil
}

// isCondition reports whether a clause is a condition on fields of which none has words
// of documents.
func isCondition(clause string) bool {
	if !strings.ContainsRune(clause, ':') {
		return false
	}
	n, err := parseOnce(clause)
	return err == nil && onFields(n)
}

// onFields reports whether a tree has conditions and all are on fields without words of
// documents.
func onFields(n Node) bool {
	switch n := n.(type) {
	case And:
		return n.Optional == nil && !slices.ContainsFunc(n.Nodes, notOnFields)
	case Or:
		return !slices.ContainsFunc(n.Nodes, notOnFields)
	case Not:
		return onFields(n.Node)
	}
	field, _ := FieldOf(n)
	return isFilterField(field)
}

func notOnFields(n Node) bool { return !onFields(n) }

// isFilterField reports whether a field has no words of documents.
func isFilterField(field string) bool { return field != "" && field != "title" && field != "content" }

// divided returns the parts of s between blanks that are outside of quotes, parentheses
// and brackets. ok is false if one of these does not end.
func divided(s string) (parts []string, ok bool) {
	var closing []rune // of what is open
	quoted, escaped := false, false
	from := 0
	end := func(to int) {
		if from < to {
			parts = append(parts, s[from:to])
		}
	}
	for i, r := range s {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case len(closing) > 0 && strings.ContainsRune(closingOf(closing[len(closing)-1]), r):
			closing = closing[:len(closing)-1]
		case closingOf(r) != "":
			closing = append(closing, r)
		case isBlank(r) && len(closing) == 0:
			end(i)
			from = i + len(string(r))
		}
	}
	end(len(s))
	return parts, !quoted && len(closing) == 0
}

// closingOf returns the characters that end what r begins, "" if it begins nothing. A
// range may include one end and exclude the other.
func closingOf(r rune) string {
	switch r {
	case '(':
		return ")"
	case '[', '{':
		return "]}"
	}
	return ""
}
