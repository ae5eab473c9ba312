package datasetsearch_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// pieces are the parts of the queries of TestIsolation. The words that begin with secret,
// and hidden, are those of another folder.
var pieces = []string{
	"budget", "walrus", "secretword", "secret*", "secretzeppelin~", "hidden", "検索", "t1", "OR", "AND", "NOT",
	"&&", "||", "!", "+", "-", "(", ")", `"`, `\`, "*", "?", "~", "~1", "^2", ":", "label:", "label:other",
	"label:data", `label:"other"`, "title:", "title:secret*", "tags:", "filename:", "filename:hidden.txt",
	"filename:../other/hidden.txt", "url:", "inurl:other", "site:other.example.com", "host:other.example.com",
	"filetype:txt", "[a TO b]", "content_length:[1 TO *]", "[", "{", "}", "]", "TO", "*:*", "lang:en", "doc_id:*",
	"timestamp:[* TO *]", "allintitle:", "allinurl:", "../", "..", "other/hidden.txt", "'", ";", "--", "\u3000",
	"\t", "\x00", "s?cretword", "*word",
}

// TestIsolation runs thousands of queries with operators over a folder beside another
// one, and checks that nothing of the other one is in an answer.
func TestIsolation(t *testing.T) {
	root := t.TempDir()
	mine, other := filepath.Join(root, "mine"), filepath.Join(root, "other")
	own := []dataset.Document{
		{Path: "a.txt", Title: "budget t1", Content: "budget and a walrus"},
		{Path: "b.txt", Title: "walrus", Content: "a walrus and a budget 検索", Heading: "One", Chunk: 1},
		{Path: "b.txt", Title: "walrus", Content: "t1 t2 label docs", Heading: "Two", Chunk: 2},
		{Path: "https://own.example.com/c.html", Title: "page", Content: "a page with a budget"},
	}
	hidden := []dataset.Document{
		{Path: "hidden.txt", Title: "secretword", Content: "secretzeppelin budget walrus"},
		{Path: "https://other.example.com/d.html", Title: "secretpage", Content: "secretword of a page"},
	}
	write(t, mine, "own", own)
	write(t, other, "other", hidden)
	// A link leads out of the folder.
	if err := os.Symlink(filepath.Join(other, "other"), filepath.Join(mine, "link")); err != nil {
		t.Log(err) // not on this system
	}
	s, _ := open(t, dataset.Options{Dir: mine})
	alone := t.TempDir()
	write(t, alone, "own", own)
	reference, _ := open(t, dataset.Options{Dir: alone})

	check := func(what string, v any) {
		t.Helper()
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"secret", "hidden", "other.example"} {
			if strings.Contains(string(data), word) {
				t.Fatalf("%s: the answer has %q: %s", what, word, data)
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	asked := 0
	for range 6000 {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			if r.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		text, err := query.Parse(b.String())
		if r.IntN(2) == 0 {
			text, err = query.Read(b.String())
		}
		if err != nil {
			continue
		}
		asked++
		q := search.Query{Text: text, Num: 100, Facets: &search.Facets{Fields: s.FacetFields()}}
		if r.IntN(2) == 0 {
			q.Labels = []string{"other", "data"}
		}
		p, err := search.Relax(t.Context(), s, q)
		if err != nil {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Search(%q) = %v, want a page or an error of kind Invalid", b.String(), err)
			}
			continue
		}
		if p.Total > 3 || p.Total != len(p.Hits) {
			t.Errorf("Search(%q) = total %d, %d hits, want at most 3", b.String(), p.Total, len(p.Hits))
		}
		check(b.String(), struct {
			Hits   []search.Hit
			Facets *search.FacetCounts
			Words  []string
		}{p.Hits, p.Facets, p.DidYouMean})
		want, err := search.Relax(t.Context(), reference, q)
		if err != nil || !cmp.Equal(p, want) {
			t.Errorf("Search(%q) = %v (-alone +beside another folder)\n%s", b.String(), err, cmp.Diff(want, p))
		}
		q.Labels = []string{"other"}
		if p, err := search.Relax(t.Context(), s, q); err != nil || p.Total != 0 || len(p.Hits) != 0 || p.DidYouMean != nil {
			t.Errorf("Search(%q) in another label = %+v, %v, want nothing", b.String(), p, err)
		}
	}
	if asked < 2000 {
		t.Errorf("%d queries were asked, want 2000 at least", asked)
	}
	for _, prefix := range []string{"s", "sec", "hid", "o"} {
		list, err := s.Suggest(t.Context(), search.SuggestQuery{Prefix: prefix, Num: 100})
		if err != nil {
			t.Error(err)
		}
		check("Suggest "+prefix, list)
	}
	words, err := s.PopularWords(t.Context(), search.WordsQuery{})
	if err != nil || len(words) == 0 {
		t.Errorf("PopularWords() = %q, %v", words, err)
	}
	check("PopularWords", words)
	for _, where := range []string{"hidden.txt", "other/hidden.txt", "../other/other/hidden.txt",
		"own/../other/hidden.txt"} {
		if places, err := s.Locate(t.Context(), where, nil); err != nil || places != nil {
			t.Errorf("Locate(%q) = %v, %v, want none", where, places, err)
		}
		for _, in := range []string{"", "other/", "own/", "link/"} {
			id := document.IDOf("data", in+where)
			if _, err := s.Find(t.Context(), id, nil); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Find(%q) = %v, want an error of kind NotFound", in+where, err)
			}
			if _, err := s.ReadText(t.Context(), id, nil, 0, 100); !errors.Is(err, errkind.NotFound) {
				t.Errorf("ReadText(%q) = %v, want an error of kind NotFound", in+where, err)
			}
		}
	}
}
