package query_test

import (
	"slices"
	"strings"
	"unicode"
)

// This file is the part of the second implementation that follows Fess 15.4: the
// meaning of terms, and how a query string is built (QueryStringBuilder.build).

// leaf matches one term of a kind.
func leaf(kind, field, text string) (matcher, error) {
	if field == "sort" {
		_, err := discardEscapes(text)
		return nil, err
	}
	if kind == "*" && (field == "" || field == "*") {
		return func(doc) bool { return true }, nil
	}
	if kind != "WILD" {
		var err error
		if text, err = discardEscapes(text); err != nil {
			return nil, err
		}
	}
	if kind == "QUOTED" && strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if kind == "TERM" && len(text) > 1 && strings.HasSuffix(text, "*") {
		kind = "PREFIX"
	}
	switch field {
	case "label":
		return func(d doc) bool {
			return text == d.label || kind == "*" || kind == "PREFIX" && strings.HasPrefix(d.label, text[:len(text)-1])
		}, nil
	case "", "title", "content":
		return func(d doc) bool {
			switch kind {
			case "*":
				return true
			case "PREFIX":
				return strings.Contains(d.words, " "+text[:len(text)-1])
			}
			return hasWords(d, text)
		}, nil
	}
	if kind == "*" || kind == "WILD" || kind == "PREFIX" || slices.Contains(otherFields, field) {
		return func(doc) bool { return false }, nil
	}
	return func(d doc) bool { return hasWords(d, field+":"+text) }, nil // unknown fields are text
}

// otherFields are the search fields that the documents of these tests do not
// have.
var otherFields = strings.Fields("inurl url doc_id host site content_length last_modified timestamp mimetype filetype filename " +
	"segment anchor click_count favorite_count lang")

// hasWords reports whether a document contains the words of text, without
// regard to punctuation.
func hasWords(d doc, text string) bool {
	text = strings.Trim(text, "\"()[]{}!^~:;/\\+-&|")
	return text != "" && strings.Contains(d.words, " "+text+" ")
}

// reserved is Fess's Constants.RESERVED.
var reserved = []string{`\`, "+", "-", "&&", "||", "!", "(", ")", "{", "}", "[", "]", "^", "~", "*", "?", ";", ":", "/"}

// fessMatch returns which documents Fess 15.4 would find for the parameters q,
// ex_q and fields.label. Fess joins them to one query and parses it. On an
// error it tries again with the reserved characters of q escaped. A second
// error is status 400.
func fessMatch(q, extra string, labels ...string) (matcher, error) {
	group := func(s string) string {
		folded := strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return ' '
			}
			return r
		}, s)
		if strings.Contains(folded, " OR ") || strings.Contains(folded, " || ") {
			return "(" + s + ")"
		}
		return s
	}
	base := strings.TrimFunc(group(q), func(r rune) bool { return r <= ' ' })
	build := func(base string) string {
		if extra != "" {
			base += " " + group(extra)
		}
		var ls []string
		for _, l := range labels {
			ls = append(ls, `label:"`+l+`"`)
		}
		switch len(ls) {
		case 0:
		case 1:
			base += " " + ls[0]
		default:
			base += " (" + strings.Join(ls, " OR ") + ")"
		}
		base = strings.TrimFunc(base, func(r rune) bool { return r <= ' ' })
		return base
	}
	m, err := readQuery(build(base))
	if err == nil {
		return m, nil
	}
	return readQuery(build(escaped(base)))
}

// escaped implements QueryStringBuilder.escapeQuery.
func escaped(s string) string {
	for _, r := range reserved {
		s = strings.ReplaceAll(s, r, `\`+strings.Join(strings.Split(r, ""), `\`))
	}
	return s
}

// readQuery parses a query with the prefixes of Fess.
func readQuery(s string) (matcher, error) {
	field := ""
	if rest, ok := strings.CutPrefix(s, "allintitle:"); ok {
		s, field = rest, "title"
	} else if rest, ok := strings.CutPrefix(s, "allinurl:"); ok {
		s, field = rest, "url"
	}
	m, err := luceneParse(s, field)
	if m == nil && err == nil {
		m = func(doc) bool { return true }
	}
	return m, err
}
