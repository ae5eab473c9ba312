package searchtest

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// inLabels keeps the documents of several labels.
func inLabels(labels []string) func(document.Document) bool {
	return func(d document.Document) bool { return slices.Contains(labels, d.Label) }
}

// hasText is has for a query of at most one word; "*:*" means every document.
func hasText(text string) func(document.Document) bool {
	if text == "" || text == "*:*" {
		return has()
	}
	return has(text)
}

// hits checks the fields of every hit.
func (s *suite) hits(t *testing.T) {
	for _, text := range []string{"", "budget", "検索"} {
		for _, h := range s.search(t, search.Query{Text: query.MustParse(text), Num: 100}).Hits {
			s.checkHit(t, h)
		}
	}
}

// checkHit compares a hit with the document of its ID.
func (s *suite) checkHit(t *testing.T, h search.Hit) {
	t.Helper()
	d := s.byID(h.ID)
	if d == nil {
		t.Errorf("hit %+v has an ID that no document has", h)
		return
	}
	if h.Title != d.Title || h.URL != d.URL {
		t.Errorf("hit %s = title %q, url %q, want %q, %q", place(*d), h.Title, h.URL, d.Title, d.URL)
	}
	if h.TextHash != "" && h.TextHash != d.Hash {
		t.Errorf("hit %s has hash %q, want %q", place(*d), h.TextHash, d.Hash)
	}
	for _, x := range []search.Excerpt{h.Digest, h.TitleExcerpt} {
		at := 0
		for _, m := range x.Matches {
			if m.Start < at || m.End <= m.Start || m.End > len(x.Text) {
				t.Errorf("hit %s has the excerpt %+v, want matches in order and inside of the text", place(*d), x)
			}
			at = m.End
		}
	}
	want := search.Hit{Filename: d.Filename, FileType: d.FileType, MIMEType: d.MIMEType, Size: d.Size,
		Timestamp: d.Modified}
	got := search.Hit{Filename: h.Filename, FileType: h.FileType, MIMEType: h.MIMEType, Size: h.Size,
		Timestamp: h.Timestamp.Truncate(time.Second)}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("hit %s: (-want +got)\n%s", place(*d), diff)
	}
}

// sort checks each order that can be determined from the documents.
func (s *suite) sort(t *testing.T) {
	orders := map[string]func(a, b document.Document) int{
		"filename":       func(a, b document.Document) int { return cmp.Compare(a.Filename, b.Filename) },
		"content_length": func(a, b document.Document) int { return cmp.Compare(a.Size, b.Size) },
		"timestamp":      func(a, b document.Document) int { return a.Modified.Compare(b.Modified) },
		"last_modified":  func(a, b document.Document) int { return a.Modified.Compare(b.Modified) },
	}
	if s.docs[0].Modified.IsZero() {
		delete(orders, "timestamp")
		delete(orders, "last_modified")
	}
	for field, order := range orders {
		for _, desc := range []bool{false, true} {
			for _, text := range []string{"", "budget"} {
				docs := slices.DeleteFunc(slices.Clone(s.docs), not(hasText(text)))
				want := []string{}
				for _, d := range docs {
					want = append(want, place(d))
				}
				slices.Sort(want)
				q := search.Query{Text: query.MustParse(text), Sort: []search.SortKey{{Field: field, Desc: desc}},
					Num: 100}
				hits := s.search(t, q).Hits
				got := s.places(t, hits)
				if !slices.IsSortedFunc(hits, func(a, b search.Hit) int {
					if desc {
						a, b = b, a
					}
					return order(*s.byID(a.ID), *s.byID(b.ID)) // equal documents may come in any order
				}) {
					t.Errorf("Search(%q) sorted by %s, desc %v = %v", text, field, desc, got)
				}
				if slices.Sort(got); !gocmp.Equal(got, want) {
					t.Errorf("Search(%q) sorted by %s, desc %v: (-want +got)\n%s", text, field, desc,
						gocmp.Diff(want, got))
				}
			}
		}
	}
	// A second key breaks the ties of the first.
	q := search.Query{Num: 100, Sort: []search.SortKey{{Field: "click_count"}, {Field: "filename", Desc: true}}}
	got := s.search(t, q).Hits
	if !slices.IsSortedFunc(got, func(a, b search.Hit) int {
		return cmp.Compare(s.byID(b.ID).Filename, s.byID(a.ID).Filename)
	}) {
		t.Errorf("Search sorted by two keys = %v, want file names from z to a", s.places(t, got))
	}
	if _, err := s.svc.Search(t.Context(), search.Query{Num: 1,
		Sort: []search.SortKey{{Field: "title"}}}); argument(err) != "sort" {
		t.Errorf("Search sorted by title = %v, want an error about argument sort", err)
	}
}

// paging checks that the pages together contain every document once.
func (s *suite) paging(t *testing.T) {
	total := len(s.docs)
	sorted := []search.SortKey{{Field: "timestamp", Desc: true}}
	whole := s.places(t, s.search(t, search.Query{Sort: sorted, Num: 100}).Hits)
	for _, num := range []int{1, 7, 10, 40, 41} {
		var got []string
		for start := 0; start < total; start += num {
			p := s.search(t, search.Query{Sort: sorted, Start: start, Num: num})
			if want := min(num, total-start); len(p.Hits) != want || p.Total != total || p.AtLeast {
				t.Errorf("page %d+%d = %d hits, total %d, at least %v, want %d, %d, false",
					start, num, len(p.Hits), p.Total, p.AtLeast, want, total)
			}
			got = append(got, s.places(t, p.Hits)...)
		}
		if !gocmp.Equal(got, whole) {
			t.Errorf("pages of %d: (-whole +pages)\n%s", num, gocmp.Diff(whole, got))
		}
	}
	// No document occurs twice by relevance either.
	var got []string
	for start := 0; start < total; start += 6 {
		got = append(got, s.places(t, s.search(t, search.Query{Text: query.MustParse("*:*"), Start: start,
			Num: 6}).Hits)...)
	}
	slices.Sort(got)
	if want := s.want(has()); !gocmp.Equal(got, want) {
		t.Errorf("pages by relevance: (-want +got)\n%s", gocmp.Diff(want, got))
	}
	if p := s.search(t, search.Query{Start: 200, Num: 10}); len(p.Hits) != 0 || p.Total != total {
		t.Errorf("page past the end = %d hits, total %d, want 0, %d", len(p.Hits), p.Total, total)
	}
	if p := s.search(t, search.Query{Num: 0}); len(p.Hits) != 0 || p.Total != total {
		t.Errorf("page of no hits = %d hits, total %d, want 0, %d", len(p.Hits), p.Total, total)
	}
}
