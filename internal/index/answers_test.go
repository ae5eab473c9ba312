package index_test

import (
	"errors"
	"slices"
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
)

func TestDigests(t *testing.T) {
	x := open(t, t.TempDir())
	filler := strings.Repeat("nothing of interest stands here. ", 40) + "\n\n"
	put(t, x,
		doc("a", "deep", "The <b>title</b> & more",
			filler+filler+"Use a <script> & a zeppelin's \x02 engine.\n\n"+filler),
		doc("a", "ja", "検索の題", "前の文。\n\n全文検索エンジンの検索結果です。"))
	tests := []struct{ text, in, digest string }{
		{"zeppelin", "deep", "Use a <script> & a [zeppelin's] engine."},
		{"zepp*", "deep", "a [zeppelin's] engine"},
		{"検索", "ja", "全文[検索]エンジンの[検索]結果"},
		{"全文検索", "ja", "[全文検索]エンジン"},
		{"索", "ja", "検[索]"},
		{"filename:deep", "deep", "nothing of interest"},
	}
	for _, test := range tests {
		// By relevance, the chunk is known. By a field, the whole text is searched.
		for _, sort := range [][]search.SortKey{nil, {{Field: "filename"}}} {
			p := page(t, x, search.Query{Text: query.MustParse(test.text), Sort: sort})
			if len(p.Hits) != 1 || p.Hits[0].Filename != test.in {
				t.Errorf("Search(%q) = %+v, want %s", test.text, p.Hits, test.in)
				continue
			}
			if got := bracketed(p.Hits[0].Digest); !strings.Contains(got, test.digest) ||
				strings.Contains(got, "\x02") {
				t.Errorf("Search(%q, %v): digest %q, want %q in it", test.text, sort, got, test.digest)
			}
		}
	}
	h := page(t, x, search.Query{Text: query.MustParse("title:title")}).Hits[0]
	if got, want := bracketed(h.TitleExcerpt), "The <b>[title]</b> & more"; got != want {
		t.Errorf("TitleExcerpt = %q, want %q", got, want)
	}
}

// bracketed puts the matches of an excerpt in brackets.
func bracketed(x search.Excerpt) string {
	s := x.Text
	for _, m := range slices.Backward(x.Matches) {
		s = s[:m.Start] + "[" + s[m.Start:m.End] + "]" + s[m.End:]
	}
	return s
}

func TestFacets(t *testing.T) {
	x := open(t, t.TempDir())
	web := doc("web", "a.html", "A", "common words")
	web.Host, web.Lang = "example.com", ""
	put(t, x, web, doc("a", "1", "One", "common words"), doc("a", "2", "Two", "common"),
		doc("b", "3", "Three", "other words here"))
	tests := []struct {
		text   string
		facets search.Facets
		want   search.FacetCounts
	}{
		{"common", search.Facets{Fields: []string{"label", "host"}}, search.FacetCounts{Fields: []search.FieldCounts{
			{Name: "label", Counts: []search.Count{{Value: "a", Count: 2}, {Value: "web", Count: 1}}},
			{Name: "host", Counts: []search.Count{{Value: "example.com", Count: 1}}}}}},
		{"", search.Facets{Fields: []string{"lang"}, Missing: "?"}, search.FacetCounts{Fields: []search.FieldCounts{
			{Name: "lang", Counts: []search.Count{{Value: "en", Count: 3}, {Value: "?", Count: 1}}}}}},
		{"common other words", search.Facets{Queries: []string{"other", "*:*", "nothing"}}, search.FacetCounts{
			Queries: []search.Count{{Value: "other", Count: 1}, {Value: "*:*", Count: 4},
				{Value: "nothing", Count: 0}}}},
	}
	for _, test := range tests {
		if got := page(t, x, search.Query{Text: query.MustParse(test.text),
			Facets: &test.facets}).Facets; !cmp.Equal(got, &test.want) {
			t.Errorf("Search(%q) with %+v: (-want +got)\n%s", test.text, test.facets, cmp.Diff(&test.want, got))
		}
	}
}

func TestRefusedQueries(t *testing.T) {
	x := open(t, t.TempDir())
	tests := []struct {
		query search.Query
		kind  error
		name  string
	}{
		{search.Query{Start: -1}, errkind.Invalid, "start"},
		{search.Query{Num: 101}, errkind.Invalid, "num"},
		{search.Query{Sort: []search.SortKey{{Field: "boost"}}}, errkind.Invalid, "sort"},
		{search.Query{Geo: &search.Geo{Point: "1,2"}}, errkind.Invalid, "geo.distance"},
		{search.Query{Geo: &search.Geo{Point: "1,2", Distance: "1km"}}, errkind.Unsupported, ""},
		{search.Query{Facets: &search.Facets{Fields: []string{"url"}}}, errkind.Invalid, "facets.field"},
		{search.Query{Facets: &search.Facets{MinDocCount: -1}}, errkind.Invalid, "facets.minDocCount"},
	}
	for _, test := range tests {
		_, err := x.Search(t.Context(), test.query)
		a, _ := errors.AsType[*errkind.Argument](err)
		if !errors.Is(err, test.kind) || test.name != "" && (a == nil || a.Name != test.name) {
			t.Errorf("Search(%+v) = %v, want kind %v about %q", test.query, err, test.kind, test.name)
		}
	}
}

func TestLangs(t *testing.T) {
	x := open(t, t.TempDir())
	de, none := doc("a", "de", "D", "wort"), doc("a", "none", "N", "wort")
	de.Lang, none.Lang = "de", ""
	put(t, x, de, none, doc("a", "en", "E", "wort"))
	for want, langs := range map[string][]string{"de,en,none": nil, "de": {"de"}, "de,en": {"de", "en", "fr"},
		"": {"fr"}} {
		for _, text := range []string{"wort", ""} {
			got := find(t, x, search.Query{Text: query.MustParse(text), Langs: langs})
			slices.Sort(got)
			if strings.Join(got, ",") != want {
				t.Errorf("Search(%q) in %v = %v, want %s", text, langs, got, want)
			}
		}
	}
}

func TestPopularWords(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		defer x.Close()
		put(t, x, doc("a", "1", "One", "zeppelin walrus the of"), doc("b", "2", "Two", "badger"))
		for range 4 {
			page(t, x, search.Query{Text: query.MustParse("the zeppelin")})
			page(t, x, search.Query{Text: query.MustParse("badger"), Labels: []string{"a", "b"}})
			page(t, x, search.Query{Text: query.MustParse("helicopter")})
		}
		time.Sleep(31 * time.Second) // virtual time
		synctest.Wait()
		for _, test := range []struct {
			labels []string
			first  []string
			never  []string
		}{
			{nil, []string{"badger", "zeppelin"}, []string{"the", "helicopter"}},
			{[]string{"b"}, []string{"badger"}, []string{"zeppelin", "helicopter", "walrus"}},
			{[]string{"a"}, nil, []string{"badger", "the"}},
		} {
			got, err := x.PopularWords(t.Context(), search.WordsQuery{Labels: test.labels})
			if err != nil || len(got) < len(test.first) {
				t.Errorf("PopularWords(%v) = %v, %v", test.labels, got, err)
				continue
			}
			first := slices.Sorted(slices.Values(got[:len(test.first)]))
			if !slices.Equal(first, test.first) || slices.ContainsFunc(test.never,
				func(w string) bool { return slices.Contains(got, w) }) {
				t.Errorf("PopularWords(%v) = %v, want first %v and never %v", test.labels, got, test.first, test.never)
			}
		}
	})
}

func TestLeases(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		defer x.Close()
		take := func(owner string, want bool) {
			t.Helper()
			if got, err := x.Lease(t.Context(), owner, 10*time.Second, "indexing"); err != nil ||
				slices.Equal(got, []string{"indexing"}) != want {
				t.Errorf("Lease(%s) = %v, %v, want %v", owner, got, err, want)
			}
		}
		take("one", true)
		take("two", false)
		time.Sleep(6 * time.Second)
		take("one", true) // renewed
		time.Sleep(6 * time.Second)
		take("two", false)
		time.Sleep(5 * time.Second)
		take("two", true) // the lease of one has expired
		take("one", false)
		if err := x.Release(t.Context(), "one", "indexing"); err != nil { // one does not hold it
			t.Errorf("Release(one) = %v", err)
		}
		take("one", false)
		if err := x.Release(t.Context(), "two", "indexing"); err != nil {
			t.Errorf("Release(two) = %v", err)
		}
		take("one", true)

		// Of several leases, the owner gets those that are free or its own.
		got, err := x.Lease(t.Context(), "two", 10*time.Second, "a", "indexing", "b")
		if diff := cmp.Diff([]string{"a", "b"}, got); err != nil || diff != "" {
			t.Errorf("Lease of three = %v (-want +got):\n%s", err, diff)
		}
		owners, err := x.Leases(t.Context())
		if diff := cmp.Diff(map[string]string{"a": "two", "b": "two", "indexing": "one"}, owners); err != nil ||
			diff != "" {
			t.Errorf("Leases = %v (-want +got):\n%s", err, diff)
		}
		time.Sleep(11 * time.Second)
		if owners, err := x.Leases(t.Context()); err != nil || len(owners) != 0 {
			t.Errorf("Leases = %v, %v after they expired, want none", owners, err)
		}
	})
}

func TestProgress(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		defer x.Close()
		type progress struct {
			done, total int
			busy        bool
		}
		check := func(want progress) {
			t.Helper()
			var got progress
			got.done, got.total, got.busy = x.Indexing(t.Context(), nil)
			if got != want {
				t.Errorf("Indexing() = %+v, want %+v", got, want)
			}
		}
		set := func(p ...index.Progress) {
			t.Helper()
			if err := x.SetProgress(t.Context(), p...); err != nil {
				t.Errorf("SetProgress(%v) = %v", p, err)
			}
		}
		check(progress{})
		set(index.Progress{Label: "a", Done: 1, Total: 10})
		check(progress{1, 10, true})
		time.Sleep(21 * time.Second)
		check(progress{})
		// The progress of several processes is summed.
		set(index.Progress{Label: "a", Done: 3, Total: 10}, index.Progress{Label: "b", Total: 5})
		set(index.Progress{Label: "c", Done: 2, Total: 3})
		check(progress{5, 18, true})
		if done, total, busy := x.Indexing(t.Context(), []string{"b", "c"}); done != 2 || total != 8 || !busy {
			t.Errorf("Indexing(b, c) = %d, %d, %v, want 2, 8, true", done, total, busy)
		}
		// A finished label counts until all labels are finished.
		set(index.Progress{Label: "a", Done: 10, Total: 10}, index.Progress{Label: "c"})
		check(progress{10, 15, true})
		set(index.Progress{Label: "b", Done: 5, Total: 5})
		check(progress{})
		set(index.Progress{Label: "a"}, index.Progress{Label: "b"})
		check(progress{})
	})
}

// TestUnfinished reports the sources whose indexing was not completed.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		defer x.Close()
		check := func(when string, want ...search.Unfinished) {
			t.Helper()
			got, err := x.Unfinished(t.Context(), nil)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: Unfinished() (-want +got), error %v:\n%s", when, err, diff)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check("without sources")
		for _, label := range []string{"a", "b"} {
			must(x.AddSource(t.Context(), document.Source{Label: label, Path: "/" + label}))
		}
		check("before indexing", search.Unfinished{Label: "a", Stop: search.NotBegun},
			search.Unfinished{Label: "b", Stop: search.NotBegun})
		must(x.SetLeftOut(t.Context(), "b", index.LeftOut{}))
		must(x.SetProgress(t.Context(), index.Progress{Label: "a", Total: 1, Unchanged: -1},
			index.Progress{Label: "", Done: 1, Total: 2}))
		check("during indexing")
		time.Sleep(21 * time.Second)
		check("after a process has died before it counted", search.Unfinished{Label: "a", Stop: search.Interrupted})
		must(x.SetProgress(t.Context(), index.Progress{Label: "a", Done: 1, Total: 10, Unchanged: 3}))
		time.Sleep(21 * time.Second)
		check("after it has died", search.Unfinished{Label: "a", Done: 4, Total: 13, Stop: search.Interrupted})
		must(x.SetProgress(t.Context(), index.Progress{Label: "a", Stopped: search.DiskFull,
			Message: "free some of it"}, index.Progress{Label: "b", Done: 1, Total: 2, Stopped: search.Failed}))
		a := search.Unfinished{Label: "a", Stop: search.DiskFull, Message: "free some of it"}
		check("after failures", a, search.Unfinished{Label: "b", Done: 1, Total: 2, Stop: search.Failed, Earlier: true})
		if _, _, busy := x.Indexing(t.Context(), nil); busy {
			t.Error("Indexing() reports that documents are being indexed")
		}
		if got, err := x.Unfinished(t.Context(), []string{"a"}); err != nil || len(got) != 1 {
			t.Errorf("Unfinished(a) = %v, %v, want one source", got, err)
		}
		must(x.SetLeftOut(t.Context(), "a", index.LeftOut{}))
		must(x.SetProgress(t.Context(), index.Progress{Label: "a"}))
		must(x.RemoveSource(t.Context(), "b"))
		must(x.AddSource(t.Context(), document.Source{Label: "b", Path: "/b"}))
		check("after b was removed and added", search.Unfinished{Label: "b", Stop: search.NotBegun})
	})
}

func TestReadTextWindows(t *testing.T) {
	x := open(t, t.TempDir())
	long := doc("a", "long", "Long", strings.Repeat("検索 and words. ", 9000))
	put(t, x, long, doc("a", "empty", "Empty", ""))
	var b strings.Builder
	for off := int64(0); off < int64(len(long.Text)); {
		w, err := x.ReadText(t.Context(), long.ID, nil, off, 10_007)
		if err != nil || w.Window == "" {
			t.Fatalf("ReadText(%d) = %+v, %v", off, w, err)
		}
		b.WriteString(w.Window)
		off = w.Offset + int64(len(w.Window))
	}
	if b.String() != long.Text {
		t.Errorf("the windows have %d bytes and differ from the text, which has %d", b.Len(), len(long.Text))
	}
	tests := []struct {
		off    int64
		n      int
		want   string
		offset int64
	}{
		{0, 3, "検", 0}, {0, 5, "検", 0}, {0, 2, "", 0}, {1, 5, "索", 3}, {2, 100,
			strings.TrimPrefix(long.Text, "検")[:99], 3},
		{-5, 3, "検", 0}, {7, 3, "and", 7}, {7, 0, "", 7}, {7, -1, "", 7}, {1 << 40, 3, "", 1 << 40},
	}
	for _, test := range tests {
		w, err := x.ReadText(t.Context(), long.ID, nil, test.off, test.n)
		if err != nil || w.Window != test.want || w.Offset != test.offset || w.Size != int64(len(long.Text)) {
			t.Errorf("ReadText(%d, %d) = %+v, %v, want %q at %d", test.off, test.n, w, err, test.want, test.offset)
		}
	}
}
