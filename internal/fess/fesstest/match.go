package fesstest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// A doc is a document with its words.
type doc struct {
	document.Document
	more           More
	title, content wordList
}

func newDoc(d document.Document, m More) doc {
	return doc{d, m, newWordList(d.Title), newWordList(d.Text)}
}

// A wordList is the words of a text.
type wordList struct {
	all      []string // in their order
	distinct []string // sorted
}

func newWordList(text string) wordList {
	all := tokens(text)
	return wordList{all, slices.Compact(slices.Sorted(slices.Values(all)))}
}

// labels returns the document's labels.
func (d doc) labels() []string {
	if d.more.Labels != nil {
		return d.more.Labels
	}
	return []string{d.Label}
}

// keyword returns the value of a field that is not tokenized. ok is false if
// there is no such field.
func (d doc) keyword(field string) (string, bool) {
	switch field {
	case "label":
		return d.Label, true
	case "doc_id":
		return d.ID, true
	case "filetype":
		return d.FileType, true
	case "mimetype":
		return d.MIMEType, true
	case "filename":
		return d.Filename, true
	case "host":
		return d.Host, true
	case "url", "inurl":
		return d.URL, true
	case "site":
		return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(d.URL, "https://"), "http://"), "file:///"),
			true
	case "lang":
		return d.Lang, true
	case "content_length":
		return strconv.FormatInt(d.Size, 10), true
	case "created", "timestamp", "last_modified":
		return stamp(d.Modified), true
	case "click_count", "favorite_count":
		return "0", true
	case "segment", "anchor", "role":
		return "", true
	}
	return "", false
}

// stamp formats a time as Fess does.
func stamp(t time.Time) string { return t.UTC().Format(wire.TimeForm) }

// tokens returns the words of a text: runs of letters and digits in lower case,
// single symbols such as emoji, and runs of CJK characters as pairs.
func tokens(s string) []string {
	var all []string
	var run []rune
	wasCJK := false
	flush := func() {
		if !wasCJK || len(run) < 2 {
			if len(run) > 0 {
				all = append(all, string(run))
			}
		} else {
			for i := range len(run) - 1 {
				all = append(all, string(run[i:i+2]))
			}
		}
		run = run[:0]
	}
	for _, r := range strings.ToLower(s) {
		if ascii := r < utf8.RuneSelf; ascii && (r < 'a' || 'z' < r) && (r < '0' || '9' < r) ||
			!ascii && !unicode.In(r, unicode.L, unicode.Nd, unicode.M, unicode.So) {
			flush()
			continue
		}
		cjk := r == 'ー' || r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Hangul)
		if cjk != wasCJK {
			flush()
			wasCJK = cjk
		}
		run = append(run, r)
	}
	flush()
	return all
}

// matches reports whether the document matches a node.
func (d doc) matches(n node) bool {
	if n.kind != group {
		return d.matchesLeaf(n)
	}
	needed, found, optional := false, false, false
	for _, c := range n.clauses {
		ok := d.matches(c.node)
		switch c.occur {
		case must:
			needed = true
			if !ok {
				return false
			}
		case mustNot:
			if ok {
				return false
			}
		case should:
			optional = true
			found = found || ok
		}
	}
	return needed || found || !optional
}

// textFields are the fields that are tokenized.
var textFields = [...]string{"title", "content"}

// matchesLeaf reports whether the document matches a leaf, as Fess's query
// commands do.
func (d doc) matchesLeaf(n node) bool {
	if n.kind == everything || n.kind == phrase && n.field == "" && n.text == "" {
		return true
	}
	if n.field == "" || slices.Contains(textFields[:], n.field) {
		return n.field != "content" && matchesWords(n, d.title) || n.field != "title" && matchesWords(n, d.content)
	}
	if n.field == "label" && n.kind != interval {
		return slices.ContainsFunc(d.labels(), func(l string) bool { return d.matchesValue(n, l) })
	}
	value, ok := d.keyword(n.field)
	if !ok { // no such field: Fess searches for the whole text
		return d.matchesLeaf(node{kind: n.kind, text: n.field + ":" + n.text})
	}
	return d.matchesValue(n, value)
}

// matchesValue reports whether a value of a field that is not tokenized matches
// a leaf.
func (d doc) matchesValue(n node, value string) bool {
	switch {
	case n.kind == interval:
		low, high, _ := bounds(n, time.Now())
		value := sortable(n.field, value)
		return (low == "" || low < value || low == value && !n.open[0]) &&
			(high == "" || value < high || value == high && !n.open[1])
	case n.field == "inurl":
		return strings.Contains(value, n.text)
	case n.kind == prefix, n.field == "site":
		return strings.HasPrefix(value, n.text)
	case n.kind == wildcard:
		return glob(n.text).MatchString(value)
	}
	return value == n.text
}

// matchesWords reports whether words match a leaf of a text field.
func matchesWords(n node, words wordList) bool {
	switch n.kind {
	case wildcard:
		return n.text == "*" || slices.ContainsFunc(words.distinct, glob(n.text).MatchString)
	case fuzzy:
		return slices.ContainsFunc(words.distinct, func(w string) bool { return within(strings.ToLower(n.text), w, 2) })
	}
	if words.phrase(tokens(n.text), n.kind == prefix) {
		return true
	}
	// Fess adds a fuzzy query to every term of four or more letters.
	if length := len([]rune(n.text)); n.kind == term && length >= 4 && len(tokens(n.text)) > 0 {
		edits := 1
		if length > 5 {
			edits = 2
		}
		text := strings.ToLower(n.text)
		return slices.ContainsFunc(words.distinct, func(w string) bool { return within(text, w, edits) })
	}
	return false
}

// phrase reports whether the list contains the words next to each other and in
// this order. If begins is true, the last one need only be a prefix.
func (l wordList) phrase(want []string, begins bool) bool {
	last := len(want) - 1
	if last < 0 {
		return false
	}
	for _, w := range want[:last] {
		if _, ok := slices.BinarySearch(l.distinct, w); !ok {
			return false
		}
	}
	at, ok := slices.BinarySearch(l.distinct, want[last])
	if !ok && (!begins || at == len(l.distinct) || !strings.HasPrefix(l.distinct[at], want[last])) {
		return false
	}
	for i := range len(l.all) - last {
		end := l.all[i+last] == want[last] || begins && strings.HasPrefix(l.all[i+last], want[last])
		if end && slices.Equal(l.all[i:i+last], want[:last]) {
			return true
		}
	}
	return false
}

// glob returns a regular expression for a pattern with * and ?.
func glob(pattern string) *regexp.Regexp {
	p := regexp.QuoteMeta(strings.ToValidUTF8(unescape(pattern), "\uFFFD"))
	return regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(p) + "$")
}

// within reports whether two words differ by at most n edits. A transposition
// of two neighbours is one edit, as in OpenSearch's fuzzy queries.
func within(a, b string, n int) bool {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > n || len(y)-len(x) > n {
		return false
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case x[i-1] == y[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(x)][len(y)] <= n
}

// sortable returns a value in a form whose order as a string is the order of
// the values.
func sortable(field, value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && field != "timestamp" {
		return fmt.Sprintf("%020d", n)
	}
	return value
}

// bounds returns the ends of a range in the form of sortable, "" for an open
// end. A day as the upper end means its last moment.
func bounds(n node, now time.Time) (low, high string, err error) {
	ends := [2]string{n.text, n.high}
	for i, s := range ends {
		switch {
		case s == "*":
			ends[i] = ""
		case n.field == "timestamp" || n.field == "last_modified" || n.field == "created":
			t, unit, ok := readTime(s, now)
			if !ok {
				return "", "", errSyntax
			}
			if i == 1 && unit > 0 || i == 0 && unit > 0 && n.open[0] {
				t = t.Add(unit - time.Millisecond)
			}
			ends[i] = stamp(t)
		case n.field == "content_length" || n.field == "click_count" || n.field == "favorite_count":
			if _, err := strconv.ParseInt(s, 10, 64); err != nil {
				return "", "", errSyntax
			}
			ends[i] = sortable(n.field, s)
		}
	}
	return ends[0], ends[1], nil
}

// nowForm matches OpenSearch's date arithmetic, as far as the tests use it.
var nowForm = regexp.MustCompile(`^now(/d)?(?:([+-]\d{1,5})([dMy]))?$`)

// readTime parses a time. It also returns the length of the time's unit.
func readTime(s string, now time.Time) (time.Time, time.Duration, bool) {
	if m := nowForm.FindStringSubmatch(s); m != nil {
		if m[1] != "" {
			now = now.Truncate(24 * time.Hour)
		}
		count, _ := strconv.Atoi(m[2])
		switch m[3] {
		case "d":
			return now.AddDate(0, 0, count), 0, true
		case "M":
			return now.AddDate(0, count, 0), 0, true
		}
		return now.AddDate(count, 0, 0), 0, true
	}
	if t, err := time.Parse("2006-01-02", s); err == nil {
		return t, 24 * time.Hour, true
	}
	t, err := time.Parse(time.RFC3339, s)
	return t, 0, err == nil
}
