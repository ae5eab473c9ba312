package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A shelf is the expected contents of an index: documents by label and path, in the order
// of their numbers.
type shelf []document.Document

func (s *shelf) put(d document.Document) {
	if i := s.find(d); i >= 0 {
		(*s)[i] = d
		return
	}
	*s = append(*s, d)
}

func (s shelf) find(d document.Document) int {
	return slices.IndexFunc(s, func(o document.Document) bool { return o.ID == d.ID })
}

// drawn returns a document whose fields have few different values.
func drawn(r *rand.Rand) document.Document {
	n := r.IntN(120)
	text := strings.Repeat("common ", 1+r.IntN(9))
	if r.IntN(3) == 0 {
		text += "rare"
	}
	d := doc(fmt.Sprintf("label-%d", n%3), fmt.Sprintf("folder-%d/file-%d.txt", n, n%7), "A title", text)
	d.Modified = time.Date(2025, 1, 1+r.IntN(5), 0, 0, 0, 0, time.UTC)
	if r.IntN(5) == 0 {
		d.Modified = time.Time{}
	}
	d.Size = int64(r.IntN(6))
	d.Lang = []string{"en", "de", ""}[r.IntN(3)]
	d.FileType = []string{"txt", "html", "[x]"}[r.IntN(3)]
	d.Host = []string{"", "a.example", "b.example"}[r.IntN(3)]
	d.URL = fmt.Sprintf("https://a.example/%d/%s", n%4, d.Path)
	d.Tags = [][]string{{}, {"red"}, {"red", "green"}}[r.IntN(3)]
	return d
}

// ids returns the IDs of the documents that meet a condition, in an order.
func (s shelf) ids(keep func(document.Document) bool, compare func(a, b document.Document) int, desc bool) []string {
	var kept shelf
	for _, d := range s {
		if keep(d) {
			kept = append(kept, d)
		}
	}
	if desc {
		slices.Reverse(kept)
		slices.SortStableFunc(kept, func(a, b document.Document) int { return compare(b, a) })
	} else {
		slices.SortStableFunc(kept, compare)
	}
	ids := []string{}
	for _, d := range kept {
		ids = append(ids, d.ID)
	}
	return ids
}

// TestColumns compares lists and counts with those made by looking at each
// document, while documents are added, replaced, tagged and removed.
func TestColumns(t *testing.T) {
	x := open(t, t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	var all shelf
	has := func(v string) func(string) bool { return func(s string) bool { return s == v } }
	queries := []struct {
		q    search.Query
		keep func(document.Document) bool
	}{
		{search.Query{Text: query.MustParse("*")}, func(document.Document) bool { return true }},
		{search.Query{Text: query.MustParse("rare")}, func(d document.Document) bool {
			return strings.Contains(d.Text, "rare")
		}},
		{search.Query{Text: query.MustParse("label:label-1")},
			func(d document.Document) bool { return d.Label == "label-1" }},
		{search.Query{Labels: []string{"label-0", "label-2"}, Langs: []string{"de", "en"}},
			func(d document.Document) bool { return d.Label != "label-1" && d.Lang != "" }},
		{search.Query{Tags: []string{"red", "collection:label-0"}}, func(d document.Document) bool {
			return d.Label == "label-0" && slices.ContainsFunc(d.Tags, has("red"))
		}},
		{search.Query{Text: query.MustParse("common"), Tags: []string{"green"}},
			func(d document.Document) bool { return slices.ContainsFunc(d.Tags, has("green")) }},
		{search.Query{Text: query.MustParse(`filetype:[a TO i]`)},
			func(d document.Document) bool { return d.FileType == "html" }},
		{search.Query{Text: query.MustParse(`filetype:*x\]`)},
			func(d document.Document) bool { return d.FileType == "[x]" }},
		{search.Query{Text: query.MustParse("content_length:{1 TO 4]")},
			func(d document.Document) bool { return d.Size > 1 && d.Size <= 4 }},
		{search.Query{Text: query.MustParse("timestamp:[2025-01-02 TO 2025-01-03]")},
			func(d document.Document) bool { return d.Modified.Day() == 2 || d.Modified.Day() == 3 }},
		{search.Query{Text: query.MustParse("timestamp:[* TO *]")},
			func(d document.Document) bool { return !d.Modified.IsZero() }},
		{search.Query{Text: query.MustParse("NOT filename:file-3*")},
			func(d document.Document) bool { return d.Filename != "file-3.txt" }},
		{search.Query{Text: query.MustParse(`site:a.example\/2`)},
			func(d document.Document) bool { return strings.HasPrefix(d.URL, "https://a.example/2") }},
		{search.Query{Text: query.MustParse("inurl:older-1?")},
			func(d document.Document) bool { return strings.Contains(d.URL, "older-1") }},
	}
	fields := []struct {
		name    string
		compare func(a, b document.Document) int
	}{
		{"timestamp", func(a, b document.Document) int { return a.Modified.Compare(b.Modified) }},
		{"content_length", func(a, b document.Document) int { return cmp.Compare(a.Size, b.Size) }},
		{"filename", func(a, b document.Document) int { return cmp.Compare(a.Filename, b.Filename) }},
	}
	for round := range 8 {
		changeSome(t, x, r, &all)
		for _, q := range queries {
			for _, f := range fields {
				for _, desc := range []bool{false, true} {
					q.q.Sort = []search.SortKey{{Field: f.name, Desc: desc}}
					want := q.keep
					q.q.Start = r.IntN(10)
					ids := all.ids(want, f.compare, desc)
					p := page(t, x, q.q)
					got := []string{}
					for _, h := range p.Hits {
						got = append(got, h.ID)
					}
					from := min(q.q.Start, len(ids))
					if d := gocmp.Diff(ids[from:min(from+100, len(ids))], got); d != "" || p.Total != len(ids) {
						t.Fatalf("round %d: Search(%+v): %d documents (-want %d +got)\n%s", round, q.q, p.Total,
							len(ids), d)
					}
				}
			}
			q.q.Sort, q.q.Start = nil, 0
			q.q.Facets = &search.Facets{Fields: []string{"label", "host", "lang", "filename"}, Missing: "none"}
			counts := make([]map[string]int, 4)
			for i := range counts {
				counts[i] = map[string]int{}
			}
			for _, d := range all {
				if q.keep(d) {
					for i, v := range []string{d.Label, d.Host, d.Lang, d.Filename} {
						counts[i][cmp.Or(v, "none")]++
					}
				}
			}
			for i, f := range page(t, x, q.q).Facets.Fields {
				got := map[string]int{}
				for _, c := range f.Counts {
					got[c.Value] = c.Count
				}
				if d := gocmp.Diff(counts[i], got); d != "" {
					t.Fatalf("round %d: Search(%+v) counts by %s (-want +got)\n%s", round, q.q, f.Name, d)
				}
			}
		}
	}
}

// changeSome changes an index and what it should have.
func changeSome(t *testing.T, x *index.Index, r *rand.Rand, all *shelf) {
	t.Helper()
	for range 1 + r.IntN(3) {
		var batch []document.Change
		changed := map[string]bool{}
		for range 1 + r.IntN(40) {
			d := drawn(r)
			if changed[d.ID] {
				continue
			}
			changed[d.ID] = true
			i := all.find(d)
			switch n := r.IntN(10); {
			case n == 0 && i >= 0:
				batch = append(batch, document.Change{Delete: &document.Ref{Label: d.Label, Path: d.Path}})
				*all = slices.Delete(*all, i, i+1)
			case n == 1 && i >= 0:
				batch = append(batch, document.Change{Tag: &document.Tagging{ID: d.ID, Add: []string{"green"},
					Remove: []string{"red"}}})
				tags := slices.DeleteFunc(slices.Clone((*all)[i].Tags), func(s string) bool { return s == "red" })
				(*all)[i].Tags = append(tags, "green")
			default:
				batch = append(batch, document.Change{Put: &d})
				all.put(d)
			}
		}
		if err := x.Apply(t.Context(), batch); err != nil {
			t.Fatalf("Apply() = %v", err)
		}
	}
}
