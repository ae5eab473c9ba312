package fessserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestWhole(t *testing.T) {
	tests := map[string]bool{
		"a": true, "a b": true, "a OR b": true, "(a)": true, "-a": true, "NOT a": true, `"a b"`: true, "a^2": true,
		"*": true, "*:*": true,
		"nosuch:a": true, "timestamp:[now TO *]": true, `""`: true, "": true, `a\ b`: true, "a -": false, "- a": true,
		"(a": false, "a)": false, "a) OR (b": false, `"a`: false, `a"`: false, `a\`: false, `\`: false, "a OR": false,
		"OR a": false,
		"a ||": false, "|| a": false, "a:": false, ":a": false, "[a TO": false, "/a": false, "^2 a": false,
		"~ a": false, "-": false, "!": false,
		"a:b:c": false,
	}
	for q, want := range tests {
		if got := whole(q); got != want {
			t.Errorf("whole(%q) = %v, want %v", q, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	tests := []struct {
		name   string
		q      string
		extra  []string // ex_q
		fields [][]string
		want   string
		echo   []string
	}{
		{"nothing", " ", nil, nil, "", nil},
		{"one word", "a", nil, nil, "a", []string{"a"}},
		{"words", "a b c", nil, nil, "(a b c)", []string{"a b c"}},
		{"a word that is divided", "出張の日当", nil, nil, "(出張の日当)", []string{"出張の日当"}},
		{"or", "a OR b", nil, nil, "(a OR b)", []string{"(a OR b)"}},
		{"parentheses apart", "a) OR (b", nil, nil, "(a) OR (b)", []string{"(a) OR (b)"}},
		{"escaped", "(a", nil, nil, `\(a`, []string{`\(a`}},
		{"a condition more", "a b", []string{"c OR d"}, nil, "(a b ) AND (c OR d )", []string{"a b", "c OR d"}},
		{"a field", "a", nil, [][]string{{"filetype", "pdf"}}, `(a ) AND (filetype:"pdf" )`,
			[]string{"a", `filetype:"pdf"`}},
		{"two values", "", nil, [][]string{{"host", "x", "y"}}, `(host:"x" OR host:"y")`,
			[]string{`(host:"x" OR host:"y")`}},
		{"a value that breaks out", "a", nil, [][]string{{"host", `x" OR label:"y`}},
			`(a ) AND (host:"x\" OR label:\"y" )`, []string{"a", `host:"x" OR label:"y"`}},
		{"a name that breaks out", "a", nil, [][]string{{"host:x OR label", "y"}}, `(a ) AND ("host:x OR label:y" )`,
			[]string{"a", `host:x OR label:"y"`}},
		{"all in title", "allintitle:a b", []string{"c"}, nil, "allintitle:(a b ) AND (c )",
			[]string{"allintitle:a b", "c"}},
		{"a sign at the end", "a OR -", nil, nil, `(a OR \-)`, []string{`(a OR \-)`}},
	}
	for _, test := range tests {
		var s sentence
		if err := s.text(test.q, true); err != nil {
			t.Errorf("%s: text(%q) = %v", test.name, test.q, err)
		}
		for _, x := range test.extra {
			if err := s.condition(x); err != nil {
				t.Errorf("%s: condition(%q) = %v", test.name, x, err)
			}
		}
		for _, f := range test.fields {
			s.field(f[0], f[1:]...)
		}
		if got, err := s.query(); err != nil || got.String() != test.want {
			t.Errorf("%s: query() = %q, %v, want %q", test.name, got, err, test.want)
		}
		if !cmp.Equal(s.echo, test.echo) {
			t.Errorf("%s: echo = %q, want %q", test.name, s.echo, test.echo)
		}
	}
	for _, q := range []string{"a OR", "AND", `"a`, "a NOT"} {
		if err := new(sentence).text(q, true); err == nil {
			t.Errorf("text(%q) = nil, want an error", q)
		}
	}
	for _, q := range []string{"((", "a)", "a OR", `a\`, `"`} {
		if err := new(sentence).condition(q); err == nil {
			t.Errorf("condition(%q) = nil, want an error", q)
		}
	}
}

// parts are the conditions that a tree asks for, in a canonical form.
func parts(n query.Node) []string {
	and, ok := n.(query.And)
	if !ok || len(and.Optional) > 0 {
		return []string{fmt.Sprintf("%#v", n)}
	}
	var all []string
	for _, m := range and.Nodes {
		all = append(all, parts(m)...)
	}
	return all
}

// FuzzSentence checks that conditions stay apart: together they are the
// conditions of each, whatever they contain.
func FuzzSentence(f *testing.F) {
	for _, seed := range [][2]string{{"a b c", "label:x"}, {"a OR b", "c OR"}, {"(a", "b)"}, {"allintitle:a", "b -"},
		{`a\`, `"b`}, {"a^2", "^3"},
		{"[a TO", "b]"}, {"a -", "- b"}, {"/a", "b/"}, {"a:", "b"}, {"a\u3000OR", "!"}, {"a OR b AND c", "x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, q, extra string) {
		if len(q)+len(extra) > 4000 || strings.TrimSpace(extra) == "" {
			return
		}
		var s sentence
		if s.text(q, true) != nil || s.prefix != "" || len(s.texts) == 0 || s.condition(extra) != nil {
			return
		}
		first, err := query.Parse(s.texts[0])
		if err != nil {
			t.Fatalf("text(%q) makes %q: %v", q, s.texts[0], err)
		}
		second, err := query.Parse("(" + extra + " )")
		if err != nil {
			t.Fatalf("condition(%q) is no query: %v", extra, err)
		}
		whole, err := s.query()
		if err != nil {
			t.Fatalf("%q and %q make %q: %v", q, extra, s.texts, err)
		}
		all := fmt.Sprintf("%#v", query.All{})
		drop := func(s string) bool { return s == all }
		want := slices.DeleteFunc(append(parts(first.Tree()), parts(second.Tree())...), drop)
		if got := slices.DeleteFunc(parts(whole.Tree()), drop); !slices.Equal(got, want) {
			t.Errorf("%q and %q make %q = %q, want %q", q, extra, whole, got, want)
		}
	})
}
