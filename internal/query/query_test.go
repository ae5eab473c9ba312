package query_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestParse(t *testing.T) {
	type (
		and      = query.And
		or       = query.Or
		not      = query.Not
		term     = query.Term
		phrase   = query.Phrase
		prefix   = query.Prefix
		wildcard = query.Wildcard
		fuzzy    = query.Fuzzy
		rng      = query.Range
		boost    = query.Boost
		nodes    = []query.Node
	)
	word := func(s string) term { return term{Text: s} }
	a, b, c := word("a"), word("b"), word("c")
	tests := []struct {
		in   string
		want query.Node
	}{
		{"", query.All{}},
		{" \t\u3000\n", query.All{}},
		{`""`, query.All{}},
		{"*:*", query.All{}},
		{"*", query.All{}},
		{"a", a},
		{"  a\u3000b\nc ", and{Nodes: nodes{a, b, c}}},
		{"a and or not b", and{Nodes: nodes{a, word("and"), word("or"), word("not"), b}}},
		{"a AND b && c", and{Nodes: nodes{a, b, c}}},
		{"a OR b || c", or{nodes{a, b, c}}},
		{"a||b c&&d", and{Nodes: nodes{word("a||b"), word("c&&d")}}},
		{"a OR(b)", or{nodes{a, b}}},
		{"a NOT b", and{Nodes: nodes{a, not{b}}}},
		{"a -b !c +d", and{Nodes: nodes{a, word("d"), not{b}, not{c}}}},
		{"-a", not{a}},
		{"NOT a NOT b", and{Nodes: nodes{not{a}, not{b}}}},
		{"a OR NOT b", and{Nodes: nodes{a, not{b}}}},
		{"a OR b NOT c", and{Nodes: nodes{or{nodes{a, b}}, not{c}}}},
		{"a OR b AND c", and{Nodes: nodes{b, c}, Optional: nodes{a}}},
		{"a AND b OR c", and{Nodes: nodes{a}, Optional: nodes{b, c}}},
		{"a (b OR c)", and{Nodes: nodes{a, or{nodes{b, c}}}}},
		{"((a))", a},
		{"(a b)^3", boost{and{Nodes: nodes{a, b}}, 3}},
		{"a - b", and{Nodes: nodes{a, word("-"), b}}},
		{"a-b a+b don't", and{Nodes: nodes{word("a-b"), word("a+b"), word("don't")}}},
		{"C++", word("C++")},
		{`"a b"`, phrase{Text: "a b"}},
		{`"a b"~3^2`, boost{phrase{Text: "a b", Slop: 3}, 2}},
		{`"a \"b\" \\"`, phrase{Text: `a "b" \`}},
		{`"a`, nil},
		{"title:a", term{"title", "a"}},
		{`title:"a b"`, phrase{"title", "a b", 0}},
		{"title:(a OR content:b)", or{nodes{term{"title", "a"}, term{"content", "b"}}}},
		{"nosuch:a", word("nosuch:a")},
		{`nosuch:"a b"`, phrase{Text: "nosuch:a b"}},
		{"nosuch:(a b)", and{Nodes: nodes{word("nosuch:a"), word("nosuch:b")}}},
		{"nosuch:a*", prefix{Text: "nosuch:a"}},
		{"a:b:c", word("a:b:c")},
		{"http://x.org/a", word("http://x.org/a")},
		{"label:*", wildcard{"label", "*"}},
		{"foo*", prefix{Text: "foo"}},
		{"filetype:ht*", prefix{"filetype", "ht"}},
		{`foo\*`, prefix{Text: "foo"}},
		{"te?t *foo* f*o", and{Nodes: nodes{wildcard{"", "te?t"}, wildcard{"", "*foo*"}, wildcard{"", "f*o"}}}},
		{`te\?t?`, wildcard{"", `te\?t?`}},
		{"foo~ foo~1 foo~0 foo~9 foo~0.5", and{Nodes: nodes{fuzzy{"", "foo", 2}, fuzzy{"", "foo", 1},
			fuzzy{"", "foo", 0}, fuzzy{"", "foo", 2}, fuzzy{"", "foo", 1}}}},
		{"foo~1^2 foo^2~1", and{Nodes: nodes{boost{fuzzy{"", "foo", 1}, 2}, boost{fuzzy{"", "foo", 1}, 2}}}},
		{"foo^2.5", boost{word("foo"), 2.5}},
		{"foo^1", word("foo")},
		{"foo^" + strings.Repeat("9", 400), boost{word("foo"), 1e6}},
		{"timestamp:[now/d-1d TO *]", rng{Field: "timestamp", Low: "now/d-1d"}},
		{"content_length:{10 TO 20]", rng{Field: "content_length", Low: "10", High: "20", LowExcl: true}},
		{`last_modified:["2025-01-01 00:00" TO 2025-12-31}`,
			rng{Field: "last_modified", Low: "2025-01-01 00:00", High: "2025-12-31", HighExcl: true}},
		{"[a TO b]", word("[a TO b]")},
		{"[a TO", and{Nodes: nodes{word("[a"), word("TO")}}},
		{"content_length:[1 2]", and{Nodes: nodes{word("content_length:[1"), word("2]")}}},
		{"foo/bar", word("foo/bar")},
		{"/te.t/", word("/te.t/")},
		{"te^x", word("te^x")},
		{`a\`, word(`a\`)},
		{`a\ b`, word("a b")},
		{`\u0041\(`, word("A(")},
		{`\u00`, word(`\u00`)},
		{"(a", word("(a")},
		{"a)", word("a)")},
		{"why?", wildcard{"", "why?"}},
		{"a !", and{Nodes: nodes{a, word("!")}}},
		{"a AND", nil},
		{"OR", nil},
		{"NOT", nil},
		{"a AND OR b", nil},
		{"NOT NOT a", nil},
		{"allintitle:a b", and{Nodes: nodes{term{"title", "a"}, term{"title", "b"}}}},
		{"allinurl: a content:b", and{Nodes: nodes{term{"inurl", "a"}, term{"content", "b"}}}},
		{"a allintitle:b", and{Nodes: nodes{a, word("allintitle:b")}}},
		{"allintitle:", query.All{}},
		{"a sort:score.desc", a},
		{"sort:score", query.All{}},
		{"全文検索　設定", and{Nodes: nodes{word("全文検索"), word("設定")}}},
		{"a\xff", word("a\uFFFD")},
		{"a () b", nil},
		{`a ("") b`, and{Nodes: nodes{a, b}}},
		{`a OR "" b`, and{Nodes: nodes{b}, Optional: nodes{a}}},
	}
	for _, tt := range tests {
		got, err := query.Parse(tt.in)
		if tt.in == "a () b" {
			// The empty group is an error. Its escaped form is text.
			tt.want = and{Nodes: nodes{a, word("()"), b}}
		}
		if tt.want == nil {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Parse(%q) = %v, %v, want an error of kind Invalid", tt.in, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Tree()); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{`日本 "a`, "query, character 4: the quote that opens here is never closed; close it, or put a backslash before it"},
		{"a OR", "query, character 3: OR needs something behind it; to search for it as text, put it in quotes"},
		{"AND a", "query, character 1: AND stands where a word is expected; to search for it as text, put it in quotes"},
		{"allintitle:OR", "query, character 12: OR stands where a word is expected; to search for it as text, put it in quotes"},
		{`a OR OR b`, "query, character 6: OR stands where a word is expected; to search for it as text, put it in quotes"},
		{`("a`, "query, character 2: the quote that opens here is never closed; close it, or put a backslash before it"},
		{strings.Repeat("a", 10_001), "query: it has 10001 bytes; 10000 are allowed"},
		{strings.Repeat("a ", 1025), "query: it has more than 1024 clauses"},
		{strings.Repeat("(", 65) + "a" + strings.Repeat(")", 65), "query: parentheses are nested deeper than 64"},
	}
	for _, tt := range tests {
		n, err := query.Parse(tt.in)
		if !errors.Is(err, errkind.Invalid) || err.Error() != tt.want {
			t.Errorf("Parse(%.40q) = %v, %v, want the error %q of kind Invalid", tt.in, n, err, tt.want)
		}
	}
	for _, in := range []string{strings.Repeat("a ", 1024), strings.Repeat("(", 63) + "a" + strings.Repeat(")", 63)} {
		if _, err := query.Parse(in); err != nil {
			t.Errorf("Parse(%.40q): %v", in, err)
		}
	}
}

func TestString(t *testing.T) {
	for in, want := range map[string]string{
		`a OR b AND title:"c d"~2^3`:      `(b AND title:"c d"~2^3 OPTIONAL a)`,
		"a (b OR -c) foo* t?t f~1":        `(a AND (b AND NOT c) AND foo* AND t?t AND f~1)`,
		"content_length:{1 TO *] *:*":     `(content_length:{1 TO *] AND *:*)`,
		`a OR b OR "x"`:                   `(a OR b OR "x")`,
		"a\\\u2028b":                      `"a\u2028b"`,
		`last_modified:["a b" TO "\*"]`:   `last_modified:["a b" TO "*"]`,
		`timestamp:[now TO "2020 01 01"}`: `timestamp:[now TO "2020 01 01"}`,
	} {
		n, err := query.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if got := query.String(n.Tree()); got != want {
			t.Errorf("String(Parse(%q)) = %s, want %s", in, got, want)
		}
	}
}

// match evaluates a tree in the way lucene_test.go evaluates a query.
func match(n query.Node, d doc) bool {
	words := func(field, text string) bool {
		switch field {
		case "label":
			return d.label == text
		case "", "title", "content":
			return hasWords(d, text)
		}
		return false
	}
	switch n := n.(type) {
	case query.And:
		for _, n := range n.Nodes {
			if !match(n, d) {
				return false
			}
		}
		return true
	case query.Or:
		for _, n := range n.Nodes {
			if match(n, d) {
				return true
			}
		}
		return false
	case query.Not:
		return !match(n.Node, d)
	case query.Boost:
		return match(n.Node, d)
	case query.All:
		return true
	case query.Term:
		return words(n.Field, n.Text)
	case query.Phrase:
		return words(n.Field, n.Text)
	case query.Fuzzy:
		return words(n.Field, n.Text)
	case query.Prefix:
		switch n.Field {
		case "label":
			return strings.HasPrefix(d.label, n.Text)
		case "", "title", "content":
			return strings.Contains(d.words, " "+n.Text)
		}
	case query.Wildcard:
		return n.Pattern == "*" && (n.Field == "label" || n.Field == "title" || n.Field == "content")
	case query.Range:
		return n.Field == "content_length"
	}
	return false
}

// docs returns documents of two labels with every subset of three words.
func docs() []doc {
	var ds []doc
	for _, label := range []string{"finance", "hr"} {
		for i := range 8 {
			d := doc{" test ", label}
			for j, w := range []string{"a", "b", "c"} {
				if i>>j&1 == 1 {
					d.words += w + " "
				}
			}
			ds = append(ds, d)
		}
	}
	return ds
}

// scraps are the parts of random queries.
var scraps = []string{"a", "b", "c", "test", "te*", "*", "*:*", "AND", "OR", "NOT", "&&", "||", "+", "-", "!", "(", ")",
	"((", "))", `"`, `\"`,
	`"a b"`, `\`, `\\`, ":", "^", "^2", "~", "~1", "[", "]", "{", "}", "[a TO b]", "content_length:[0 TO *]",
	`[a" TO b]`, "[a TO", "/", "/x/",
	"label:hr", "label:*", "label:", `label:"hr"`, "title:", "title:(", "nosuch:a", "sort:score", "allintitle:",
	"allinurl:", "?", "te?t",
	"\u3000", "\t", "\n", "'", "&", "|", "TO", `\u0022`, `\u`, "a) OR (b", ") OR (", "!a", "-b", "+c", "\x01", ";",
	"検索"}

// randomQuery returns a query made of scraps, mostly with blanks between them.
func randomQuery(r *rand.Rand) string {
	var b strings.Builder
	usual := []string{"a", "b", "test", "AND", "OR", "NOT", "OR", "-"}
	for range 1 + r.IntN(6) {
		if r.IntN(2) == 0 {
			b.WriteString(scraps[r.IntN(len(scraps))])
		} else {
			b.WriteString(usual[r.IntN(len(usual))])
		}
		if r.IntN(3) > 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// checkParse compares Parse with the grammar of lucene_test.go.
func checkParse(t *testing.T, q string, ds []doc) {
	t.Helper()
	n, err := query.Parse(q)
	valid := strings.TrimLeft(strings.ToValidUTF8(q, "\uFFFD"), " \t\r\n\u3000")
	m, wantErr := readQuery(valid)
	if wantErr != nil {
		if strings.HasPrefix(valid, "allin") {
			return // Fess ignores the prefix in an escaped query, but Parse does not
		}
		m, wantErr = readQuery(escaped(valid))
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Parse(%q): error %v, want %v", q, err, wantErr)
	}
	if err != nil {
		return
	}
	for _, d := range ds {
		if got, want := match(n.Tree(), d), m(d); got != want {
			t.Fatalf("Parse(%q) = %s: match of %v = %v, want %v", q, query.String(n.Tree()), d, got, want)
		}
	}
}

func TestParseLikeLucene(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ds := docs()
	for range 4000 {
		checkParse(t, randomQuery(r), ds)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range scraps {
		f.Add(s)
	}
	f.Add(`a OR (title:"b c"~2^3 AND -label:hr) content_length:{1 TO *] te?t fo*o\*`)
	f.Fuzz(func(t *testing.T, q string) {
		n, err := query.Parse(q)
		if err != nil {
			if !errors.Is(err, errkind.Invalid) {
				t.Fatalf("Parse(%q): %v is not of kind Invalid", q, err)
			}
			return
		}
		if s := query.String(n.Tree()); strings.ContainsAny(s, "\n\r\x00") || s == "" {
			t.Fatalf("String(Parse(%q)) = %q", q, s)
		}
		if len(q) < 200 && !strings.ContainsAny(q, "\v\f") {
			checkParse(t, q, docs())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	q := `(title:"full text"~2^3 OR content:search*) AND -label:hr timestamp:[now-1d TO *] `
	for name, s := range map[string]string{"usual": q, "longest": strings.Repeat(q, 10_000/len(q)),
		"deep": strings.Repeat("(", 60) + "a" + strings.Repeat(")", 60)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := query.Parse(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
