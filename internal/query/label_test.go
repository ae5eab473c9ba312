package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// theirs returns the ID of a document that has an ID beginning with ours.
func theirs(id string) string {
	if rest, ok := strings.CutPrefix(id, "ours"); ok {
		return "theirs" + rest
	}
	return ""
}

func TestWithLabel(t *testing.T) {
	const nothing = "(nothing)"
	tests := []struct{ text, want string }{
		// without conditions on labels, nothing changes
		{"", ""}, {"budget", "budget"}, {"a OR b AND c", "a OR b AND c"}, {`"label:hr"`, `"label:hr"`},
		{"label budget", "label budget"}, {`label\:hr`, `label\:hr`}, {"sort:score.desc a", "sort:score.desc a"},

		{"label:hr", "*:*"}, {"label:finance", nothing}, {"label:HR", nothing}, {`label:"hr"`, "*:*"},
		{`label:"finance"`, nothing}, {"label:h*", "*:*"}, {"label:f*", nothing}, {"label:?r", "*:*"},
		{"label:f?", nothing}, {"label:*", "*:*"}, {"label:hr~", "*:*"}, {"label:hs~", nothing},
		{"label:[a TO i]", "*:*"}, {"label:{hr TO *]", nothing}, {"label:[hr TO hr]", "*:*"},
		{"label:hr^2", "*:*"}, {"label:finance^2", nothing},

		{"NOT label:hr", nothing}, {"-label:finance", "*:*"}, {"NOT label:finance budget", "budget"},
		{"budget label:hr", "budget"}, {"budget label:finance", nothing}, {"+label:hr +budget", "budget"},
		{"budget AND travel AND label:hr", "budget AND travel"}, {"budget -label:hr", nothing},
		{"budget OR label:finance", "budget"}, {"budget OR label:hr", "budget OR *:* AND *:*"},
		{"label:finance OR label:hr", "*:*"}, {"label:finance OR label:docs", nothing},
		{"label:(hr OR finance) budget", "budget"}, {"label:(finance OR docs) budget", nothing},
		{"label:(title:budget)", "label:(title:budget)"}, {"(budget OR travel) label:hr", "budget OR travel"},
		{"(budget OR travel) walrus label:hr", "(budget OR travel) AND walrus"},
		{"walrus OR budget AND label:hr", "walrus OR *:* AND budget"},
		{"label:hr OR budget AND travel", "budget AND travel"},
		{"label:finance OR budget AND travel", "budget AND travel"},
		{"walrus OR label:hr AND NOT zeppelin", "walrus OR *:* AND NOT zeppelin"},
		{"label:hr NOT (a NOT b)", "NOT (a AND NOT b)"}, {"label:hr NOT a NOT b", "NOT a AND NOT b"},
		{"label:hr (a OR (NOT b))", "a OR (NOT b)"},

		{"doc_id:ours1", "doc_id:theirs1"}, {`doc_id:"ours1" budget`, "doc_id:theirs1 AND budget"},
		{"doc_id:theirs1", nothing}, {"budget OR doc_id:other", "budget"}, {"NOT doc_id:ours1", "NOT doc_id:theirs1"},

		// every form of a condition is kept
		{`label:hr title:a\:b`, `title:a\:b`}, {`label:hr "a \"b\" \\c"~3`, `"a \"b\" \\c"~3`},
		{"label:hr inf*", "inf*"}, {`label:hr a?b\*c*`, `a?b\*c*`}, {"label:hr wrd~1", "wrd~1"},
		{"label:hr timestamp:[2024-01-01 TO now/d]", "timestamp:[2024-01-01 TO now/d]"},
		{`label:hr timestamp:{"a b" TO *}`, `timestamp:{"a b" TO *}`},
		{"label:hr (a b)^2.5", "(a AND b)^2.5"}, {"label:hr a^3", "a^3"}, {`label:hr \OR`, `\OR`},
		{`label:hr a\ b`, `a\ b`}, {"label:hr foo:bar", `foo\:bar`}, {"allintitle:a label:hr", "title:a"},
		{"label:hr 検索", "検索"}, {`label:hr \ label:*`, `\ label\:*`}, {"label:hr a:b*c?", `a\:b*c?`},
	}
	for _, test := range tests {
		got, ok, err := MustParse(test.text).WithLabel("hr", theirs)
		text := got.String()
		if !ok {
			text = nothing
		}
		if err != nil || text != test.want {
			t.Errorf("WithLabel(%q) = %q, %v, want %q", test.text, text, err, test.want)
		}
	}
}

// A query whose escaped form is too long is an error.
func TestWithLabelTooLong(t *testing.T) {
	text := MustParse("label:hr " + strings.Repeat("a;", 4900))
	if got, ok, err := text.WithLabel("hr", theirs); !errors.Is(err, errkind.Invalid) {
		t.Errorf("WithLabel = %.40q, %v, %v, want an error of kind Invalid", got, ok, err)
	}
}

// The written form of a tree is read as this tree.
func TestWithLabels(t *testing.T) {
	for _, tt := range []struct {
		text   string
		others []string
		want   string
	}{
		{"budget", []string{"a"}, "budget"}, {"label:hr", []string{"a"}, `label:"a"`},
		{"label:kb budget", []string{"a"}, "label:kb budget"},
		{"label:hr budget", []string{"a", "b"}, `(label:"a" OR label:"b") AND budget`},
		{`NOT label:"hr"`, []string{"a", "b"}, `NOT (label:"a" OR label:"b")`},
		{"label:hr OR budget", nil, "budget"}, {"label:hr budget", nil, "(nothing)"},
		{"label:h* doc_id:x", []string{"a"}, "label:h* doc_id:x"},
	} {
		got, ok, err := MustParse(tt.text).WithLabels("hr", tt.others)
		text := got.String()
		if !ok {
			text = "(nothing)"
		}
		if err != nil || text != tt.want {
			t.Errorf("WithLabels(%q, %q) = %q, %v, want %q", tt.text, tt.others, text, err, tt.want)
		}
	}
}

func FuzzWithLabel(f *testing.F) {
	for _, s := range []string{"a OR b AND c", "NOT (a b)", `"a\"b"~2^3`, "title:[a TO b} x", "a* b?c w~1",
		`\AND \u0041`,
		"(a OR (NOT b))^2 label:hr", `timestamp:["x ]\" TO "y"]`, `a\ b\*`, "allintitle:a OR b", `[a b]`,
		`\ label:*`, "x:y?z*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parsed, err := Parse(s)
		if err != nil {
			return
		}
		for _, label := range []string{"hr", "b"} {
			got, ok, err := parsed.WithLabel(label, theirs)
			for _, c := range got.Conditions() {
				if ok && c.Field == "label" {
					t.Errorf("WithLabel(%q) = %q has a condition on a label", s, got)
				}
			}
			if err != nil && len(s) < 3000 {
				t.Errorf("WithLabel(%q) = %v", s, err)
			}
		}
		var b strings.Builder
		writeNode(&b, parsed.Tree())
		again, err := Parse(b.String())
		if err != nil {
			if len(s) < 3000 {
				t.Errorf("%q is written as %q: %v", s, b.String(), err)
			}
			return
		}
		if x, y := String(ordered(parsed.Tree())), String(ordered(again.Tree())); x != y {
			t.Errorf("%q is written as %q, which is read as %s, want %s", s, b.String(), y, x)
		}
	})
}

// ordered returns a tree in which negated nodes come last, without an All that only
// separates optional nodes from others.
func ordered(n Node) Node {
	switch n := n.(type) {
	case And:
		var and And
		var nots []Node
		for _, m := range n.Nodes {
			switch m := ordered(m).(type) {
			case Not:
				nots = append(nots, m)
			case All:
				if n.Optional == nil {
					and.Nodes = append(and.Nodes, m)
				}
			default:
				and.Nodes = append(and.Nodes, m)
			}
		}
		and.Nodes = append(and.Nodes, nots...)
		for _, m := range n.Optional {
			and.Optional = append(and.Optional, ordered(m))
		}
		return and
	case Or:
		var or Or
		for _, m := range n.Nodes {
			or.Nodes = append(or.Nodes, ordered(m))
		}
		return or
	case Not:
		return Not{ordered(n.Node)}
	case Boost:
		return Boost{ordered(n.Node), n.Factor}
	case Prefix: // also a Wildcard with one asterisk
		return Wildcard{n.Field, fmt.Sprint(append(Glob(n.Text), anyRunes))}
	case Wildcard:
		g, err := ParseGlob(n.Pattern)
		if err != nil {
			return n
		}
		return Wildcard{n.Field, fmt.Sprint(g)}
	}
	return n
}
