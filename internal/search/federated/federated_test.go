package federated_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/federated"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// member returns an index with the documents of one label.
func member(t *testing.T, label string, docs ...document.Document) federated.Member {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	var changes []document.Change
	for _, d := range docs {
		if d.Label == label {
			changes = append(changes, document.Change{Put: &d})
		}
	}
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return federated.Member{Labels: []string{label}, Sources: []string{label}, Service: scope.New(x, label)}
}

// Several services behave like one with the documents of all. Only the order of hits
// by relevance differs.
func TestContract(t *testing.T) {
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			labels := map[string]bool{}
			var members []federated.Member
			for _, d := range docs {
				if !labels[d.Label] {
					labels[d.Label] = true
					members = append(members, member(t, d.Label, docs...))
				}
			}
			if members == nil {
				members = append(members, member(t, "docs"))
			}
			return federated.New(federated.Options{Members: members, Timeout: time.Minute})
		},
	})
}

// A fake is a member with a fixed list of hits.
type fake struct {
	search.Service              // nil: the tests call no other method
	hits           []search.Hit // of every query
	texts          map[string]string
	wait           time.Duration // before each answer
	err            error
}

func (f fake) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	select {
	case <-time.After(f.wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	page := &search.Page{Total: len(f.hits)}
	page.Hits = append(page.Hits, f.hits[min(q.Start, len(f.hits)):min(q.Start+q.Num, len(f.hits))]...)
	if q.Facets != nil {
		page.Facets = &search.FacetCounts{}
		for _, name := range q.Facets.Fields {
			page.Facets.Fields = append(page.Facets.Fields, search.FieldCounts{Name: name,
				Counts: []search.Count{{Value: "txt", Count: 2}, {Value: string(f.hits[0].ID[0]), Count: 1}}})
		}
		for _, text := range q.Facets.Queries {
			page.Facets.Queries = append(page.Facets.Queries, search.Count{Value: text, Count: 1})
		}
	}
	return page, nil
}

func (f fake) ReadText(_ context.Context, id string, _ []string, off int64, n int) (*search.Text, error) {
	if text, ok := f.texts[id]; ok {
		return search.WindowOf(text, off, n), nil
	}
	return nil, errkind.Unsupported
}

// Locate finds a hit by its path.
func (f fake) Locate(ctx context.Context, path string, _ []string) (places []search.Place, err error) {
	page, err := f.Search(ctx, search.Query{Num: len(f.hits)})
	if err != nil {
		return nil, err
	}
	for _, h := range page.Hits {
		if h.Path == path {
			places = append(places, search.Place{ID: h.ID, Label: h.ID[:1]})
		}
	}
	return places, nil
}

func (f fake) Sections(context.Context, string, []string) ([]document.Section, error) {
	return nil, nil
}

func (f fake) FacetFields() []string { return []string{"label", "filetype"} }

// hits returns hits with IDs that begin with a letter.
func hits(letter string, n int) []search.Hit {
	out := make([]search.Hit, n)
	for i := range out {
		out[i] = search.Hit{ID: fmt.Sprint(letter, i), Size: -1}
	}
	return out
}

// of returns a member with the label and the sources that are the letter of its hits.
func of(label string, f fake) federated.Member {
	return federated.Member{Labels: []string{label}, Sources: []string{label}, Service: f}
}

func ids(page *search.Page) string {
	var out []string
	for _, h := range page.Hits {
		out = append(out, h.ID)
	}
	return strings.Join(out, " ")
}

// A source that fails, hangs or is slow changes only its own hits.
func TestFailures(t *testing.T) {
	down := &errkind.Remote{Endpoint: "/json", Status: 503, Kind: errkind.Unavailable, Message: "Fess is down"}
	two := of("a", fake{hits: hits("a", 2)})
	tests := []struct {
		name    string
		members []federated.Member
		want    string // hits
		failed  string
		err     error
	}{
		{"all answer", []federated.Member{two, of("b", fake{hits: hits("b", 2), wait: time.Second})},
			"a0 b0 a1 b1", "", nil},
		{"one hangs", []federated.Member{two, of("b", fake{hits: hits("b", 2), wait: time.Hour})},
			"a0 a1", "b: no answer within 2s", nil},
		{"one fails", []federated.Member{of("a", fake{err: down}), of("b", fake{hits: hits("b", 2)})},
			"b0 b1", "a: " + down.Error(), nil},
		{"an internal error",
			[]federated.Member{of("a", fake{err: errors.New("secret")}), of("b", fake{hits: hits("b", 1)})},
			"b0", "a: the search failed, see the log of knowhow", nil},
		{"all fail", []federated.Member{of("a", fake{err: down}), of("b", fake{wait: time.Hour})},
			"", "", errkind.Unavailable},
		{"the only source fails", []federated.Member{{Labels: []string{"a"}, Service: fake{hits: hits("x", 0)}},
			of("a", fake{wait: time.Hour})}, "", "", errkind.Timeout},
		{"the query is invalid everywhere",
			[]federated.Member{of("a", fake{err: errkind.Invalid}), of("b", fake{err: errkind.Invalid})},
			"", "", errkind.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				page, err := federated.New(federated.Options{Members: tt.members}).
					Search(t.Context(), search.Query{Text: query.MustParse("word"), Num: 10})
				if took := time.Since(began); took > federated.DefaultTimeout {
					t.Errorf("the search took %v", took)
				}
				if tt.err != nil {
					if !errors.Is(err, tt.err) {
						t.Errorf("Search() = %v, want an error of kind %v", err, tt.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				failed := ""
				for _, f := range page.Failed {
					failed += f.Label + ": " + errkind.Message(f.Err)
				}
				if got := ids(page); got != tt.want || failed != tt.failed || page.Partial != (failed != "") {
					t.Errorf("hits %s, failed %q, partial %v; want %s, %q", got, failed, page.Partial, tt.want, tt.failed)
				}
			})
		})
	}
}

// A path is found although another source fails. If none has it, the failure is the error.
func TestLocate(t *testing.T) {
	a := fake{hits: hits("a", 2)}
	a.hits[1].Path = "guide.md"
	for name, other := range map[string]fake{"fails": {err: errkind.Busy}, "hangs": {wait: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := federated.New(federated.Options{Members: []federated.Member{of("b", other), of("a", a)}})
				places, err := s.Locate(t.Context(), "guide.md", nil)
				if diff := cmp.Diff([]search.Place{{ID: "a1", Label: "a"}}, places); err != nil || diff != "" {
					t.Errorf("Locate() = %v (-want +got):\n%s", err, diff)
				}
				if places, err := s.Locate(t.Context(), "nosuch.md", nil); !errkind.Retryable(err) {
					t.Errorf("Locate() of a path that no source has = %v, %v, want the failure", places, err)
				}
			})
		})
	}
}

// A failure is logged once until the source answers or fails in another way.
func TestReports(t *testing.T) {
	var log bytes.Buffer
	b := &struct{ fake }{fake{err: errkind.Busy}}
	s := federated.New(federated.Options{Members: []federated.Member{of("a", fake{hits: hits("a", 1)}),
		{Labels: []string{"b"}, Sources: []string{"b"}, Service: b}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	var got []int
	for _, err := range []error{errkind.Busy, errkind.Busy, errkind.Timeout, nil, nil, errkind.Busy} {
		log.Reset()
		b.err = err
		if _, err := s.Search(t.Context(), search.Query{Text: query.MustParse("word"), Num: 1}); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Count(log.String(), "source=b"))
	}
	if diff := cmp.Diff([]int{1, 0, 1, 1, 0, 1}, got); diff != "" {
		t.Errorf("lines in the log (-want +got):\n%s", diff)
	}
}

// All pages together have each document once, whatever their size, up to Window.
func TestPages(t *testing.T) {
	a, b := hits("a", 700), hits("b", 650)
	a[3].URL, b[5].URL = "https://example.com/same", "https://example.com/same/"
	a[9].URL, b[1].URL = "https://example.com/other", "https://example.com/other"
	s := federated.New(federated.Options{Members: []federated.Member{of("a", fake{hits: a}), of("b", fake{hits: b})}})
	var first []string
	for _, size := range []int{8, 100, 7} {
		var all []string
		for {
			page, err := s.Search(t.Context(),
				search.Query{Text: query.MustParse("word"), Start: len(all), Num: size, Distinct: true})
			if err != nil {
				t.Fatal(err)
			}
			if page.Total != 1350 || page.Window != federated.Window {
				t.Fatalf("total %d, window %d", page.Total, page.Window)
			}
			for _, h := range page.Hits {
				if all = append(all, h.ID); h.ID == "a3" && !cmp.Equal(h.Also, []string{"https://example.com/same/"}) {
					t.Errorf("a3 has also %q", h.Also)
				}
			}
			if len(page.Hits) == 0 {
				break
			}
		}
		seen := map[string]bool{}
		for _, id := range all {
			if seen[id] {
				t.Errorf("pages of %d: %s is there twice", size, id)
			}
			seen[id] = true
		}
		if len(all) != federated.Window || seen["b5"] || seen["a9"] {
			t.Errorf("pages of %d have %d hits; b5 %v, a9 %v, want %d without the copies", size, len(all), seen["b5"],
				seen["a9"], federated.Window)
		}
		if first == nil {
			first = all
		}
		if diff := cmp.Diff(first, all); diff != "" {
			t.Errorf("pages of %d differ from those of 8 (-want +got):\n%s", size, diff)
		}
	}
}

// Documents with the same letters and digits are one hit. The text that answers the
// question comes first.
func TestTexts(t *testing.T) {
	long := strings.Repeat("Nothing of interest stands in this paragraph of the manual. ", 30)
	a := fake{hits: hits("a", 2), texts: map[string]string{"a0": long, "a1": "The  pump is oiled\nonce a year."}}
	b := fake{hits: hits("b", 2),
		texts: map[string]string{"b0": "The pump is oiled once a year.", "b1": long + "The valve leaks. " + long}}
	b.hits[0].Path, b.hits[1].Digest.Text = "pump.txt", "a digest"
	s := federated.New(federated.Options{Members: []federated.Member{of("a", a), of("b", b)}})
	page, err := s.Search(t.Context(),
		search.Query{Text: query.MustParse("pump oil"), Num: 10, Distinct: true, Passages: 6000})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(page); got != "b0 a0 b1" || page.Total != 4 {
		t.Fatalf("%d documents: %s, want b0, which is also a1, first", page.Total, got)
	}
	if p := page.Hits[0].Passages; len(p) != 1 || p[0].Text != "The pump is oiled once a year." {
		t.Errorf("passages %+v", p)
	}
	page, err = s.Search(t.Context(), search.Query{Text: query.MustParse("valve leaks"), Num: 1, Passages: 500})
	if err != nil {
		t.Fatal(err)
	}
	if p := page.Hits[0]; p.ID != "b1" || len(p.Passages) == 0 || p.Digest.Text != "" ||
		!strings.Contains(p.Passages[0].Text, "The valve leaks.") {
		t.Errorf("the best hit is %+v, want b1 with the passage about the valve", p)
	}
}

func TestFacets(t *testing.T) {
	s := federated.New(federated.Options{
		Members: []federated.Member{of("a", fake{hits: hits("a", 3)}), of("b", fake{hits: hits("b", 3)})}})
	page, err := s.Search(t.Context(), search.Query{Text: query.MustParse("word"),
		Facets: &search.Facets{Fields: []string{"filetype"}, Queries: []string{"x"}, Sort: "term.desc", Size: 2}})
	want := &search.FacetCounts{
		Fields: []search.FieldCounts{
			{Name: "filetype", Counts: []search.Count{{Value: "txt", Count: 4}, {Value: "b", Count: 1}}}},
		Queries: []search.Count{{Value: "x", Count: 2}},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, page.Facets); diff != "" || page.Hits != nil {
		t.Errorf("facets (-want +got):\n%s", diff)
	}
}

// Lists that members have sorted by a field are merged by it. Documents without a value
// come last.
func TestSort(t *testing.T) {
	a, b := hits("a", 3), hits("b", 3)
	for i, h := range []*search.Hit{&a[0], &b[0], &a[1], &b[1]} {
		h.Timestamp, h.Size, h.Filename = time.Unix(int64(100-i), 0), int64(10-i), fmt.Sprint("f", 9-i)
		h.Extra = map[string]any{"click_count": int64(9 - i)}
	}
	s := federated.New(federated.Options{Members: []federated.Member{of("a", fake{hits: a}), of("b", fake{hits: b})}})
	for _, field := range []string{"timestamp", "content_length", "filename", "click_count"} {
		page, err := s.Search(t.Context(), search.Query{Text: query.MustParse("word"), Num: 10,
			Sort: []search.SortKey{{Field: field, Desc: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(page); got != "a0 b0 a1 b1 a2 b2" {
			t.Errorf("by %s: %s", field, got)
		}
	}
}
