package search_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// answers is a Searcher that has an answer for some texts. It finds nothing for
// all others.
type answers struct {
	pages map[string]search.Page
	errs  map[string]error
	asked []search.Query
}

func (a *answers) Search(_ context.Context, q search.Query) (*search.Page, error) {
	a.asked = append(a.asked, q)
	p := a.pages[q.Text.String()]
	return &p, a.errs[q.Text.String()]
}

func TestRelax(t *testing.T) {
	failure := errors.New("failure")
	found := map[string]search.Page{"red": {Total: 3}, "(red OR blue)": {Total: 2}, "(red OR %X OR blue)": {Total: 2},
		"red green blue": {Staged: true},
		"red X blue":     {Staged: true, Total: 1}}
	tests := []struct {
		text    string
		pages   map[string]search.Page
		errs    map[string]error
		want    search.Page
		err     error
		asked   []string
		options []string // of the queries after the first
	}{
		{text: "red", pages: found, want: search.Page{Total: 3}, asked: []string{"red"}},
		{text: "red blue", pages: found, want: search.Page{Total: 2, Relaxed: true},
			asked: []string{"red blue", "(red OR blue)"}},
		{text: "red green", pages: found, asked: []string{"red green", "(red OR green)"}},
		{text: "red green blue", pages: found, want: search.Page{Staged: true}, asked: []string{"red green blue"}},
		{text: "red -X blue", pages: found, want: search.Page{Staged: true, Total: 1, Relaxed: true},
			asked: []string{"red -X blue", "red X blue"}, options: []string{"-X"}},
		{text: "red -blue", pages: found, want: search.Page{Total: 2, Relaxed: true},
			asked: []string{"red -blue", "red blue", "(red OR blue)"}, options: []string{"-blue"}},
		{text: "-blue", pages: found, asked: []string{"-blue"}},
		{text: `red -"blue"`, pages: found, asked: []string{`red -"blue"`}},
		{text: "red('%X', 'blue')", pages: found, want: search.Page{Total: 2, Relaxed: true},
			asked: []string{"red('%X', 'blue')", "red %X blue", "(red OR %X OR blue)"}},
		{text: "red(blue)", pages: found, want: search.Page{Total: 2, Relaxed: true},
			asked: []string{"red(blue)", "red blue", "(red OR blue)"}},
		{text: "red (blue)", pages: found, asked: []string{"red (blue)"}},
		{text: "red(blue OR green)", pages: found, asked: []string{"red(blue OR green)"}},
		{text: `red("blue")`, pages: found, asked: []string{`red("blue")`}},
		{text: "timestamp:[red TO blue]", errs: map[string]error{"timestamp:[red TO blue]": errkind.Invalid},
			pages: map[string]search.Page{"timestamp red to blue": {Total: 1}},
			want:  search.Page{Total: 1, Relaxed: true}, asked: []string{"timestamp:[red TO blue]",
				"timestamp red to blue"}},
		{text: "red~9", errs: map[string]error{"red~9": errkind.Invalid, "red 9": errkind.Busy}, err: errkind.Busy,
			asked: []string{"red~9", "red 9"}},
		{text: "red", errs: map[string]error{"red": errkind.Invalid}, err: errkind.Invalid, asked: []string{"red"}},
		{text: "yellow", asked: []string{"yellow"}},
		{text: "東京都", asked: []string{"東京都"}},
		{text: "出張の日当", asked: []string{"出張の日当", "(出張 OR 日当)"}},
		{text: "年假有几天", pages: map[string]search.Page{"(年假有几天 OR 假有 OR 几天 OR 年假 OR 有几)": {Total: 1}},
			want:  search.Page{Total: 1, Relaxed: true},
			asked: []string{"年假有几天", "(年假有几天 OR 假有 OR 几天 OR 年假 OR 有几)"}},
		{text: "red~9 -blue", errs: map[string]error{"red~9 -blue": errkind.Invalid},
			pages: map[string]search.Page{"red 9 -blue": {Total: 1}},
			want:  search.Page{Total: 1, Relaxed: true}, asked: []string{"red~9 -blue", "red 9 -blue"}},
		{text: "red AND blue", pages: found, asked: []string{"red AND blue"}},
		{text: `"red blue"`, pages: found, asked: []string{`"red blue"`}},
		{text: "(red blue)", pages: found, asked: []string{"(red blue)"}},
		{text: "", asked: []string{""}},
		{text: "red blue", errs: map[string]error{"red blue": failure}, err: failure, asked: []string{"red blue"}},
		{text: "red blue", errs: map[string]error{"(red OR blue)": failure}, err: failure,
			asked: []string{"red blue", "(red OR blue)"}},
		{text: "red blue", errs: map[string]error{"(red OR blue)": errkind.Invalid},
			asked: []string{"red blue", "(red OR blue)"}},
	}
	for _, test := range tests {
		a := &answers{pages: test.pages, errs: test.errs}
		q := search.Query{Text: query.MustParse(test.text), Labels: []string{"docs"}, Num: 5}
		page, err := search.Relax(t.Context(), a, q)
		if !errors.Is(err, test.err) || err == nil && !cmp.Equal(*page, test.want) {
			t.Errorf("Search(%q) = %+v, %v, want %+v, %v", test.text, page, err, test.want, test.err)
		}
		var asked []string
		for i, got := range a.asked {
			asked = append(asked, got.Text.String())
			if i > 0 && !slices.Equal(got.Text.Options(), test.options) {
				t.Errorf("Search(%q): options %q of query %d, want %q", test.text, got.Text.Options(), i, test.options)
			}
			if got.Text = q.Text; !cmp.Equal(got, q) {
				t.Errorf("Search(%q): query %d = %+v, want only another text than %+v", test.text, i, got, q)
			}
		}
		if diff := cmp.Diff(test.asked, asked); diff != "" {
			t.Errorf("Search(%q): queries (-want +got)\n%s", test.text, diff)
		}
	}
}
