package search_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestMapExcerpt checks that matches keep their words when a text is changed.
func TestMapExcerpt(t *testing.T) {
	squeeze := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00ad", "")), " ") }
	cut := func(s string) string { return s[:9] + "…" }
	for _, test := range []struct {
		text string
		f    func(string) string
		want []string // of the matches of "valve" and "nine"
	}{
		{"the valve costs nine coins", squeeze, []string{"valve", "nine"}},
		{"  the\n\n valve\tcosts  nine  coins ", squeeze, []string{"valve", "nine"}},
		{"the \u00ad\u00advalve cost\u00ads nine coins", squeeze, []string{"valve", "nine"}},
		{"the valve costs nine coins", cut, []string{"valve"}},
		{"their valve costs nine coins", cut, []string{"val"}},
	} {
		x := search.Excerpt{Text: test.text}
		for _, word := range []string{"valve", "nine"} {
			at := strings.Index(test.text, word)
			x.Matches = append(x.Matches, search.Span{Start: at, End: at + len(word)})
		}
		x = x.Map(test.f)
		var got []string
		for _, m := range x.Matches {
			got = append(got, x.Text[m.Start:m.End])
		}
		if diff := cmp.Diff(test.want, got); diff != "" || x.Text != test.f(test.text) {
			t.Errorf("Map of %q = %q (-want +got)\n%s", test.text, x.Text, diff)
		}
	}
}
