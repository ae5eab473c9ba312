package fessserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// TestUncountedFields checks that fields which Fess counts by and the index does
// not have no counts, in their place among those that have some.
func TestUncountedFields(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		c := client(t, searchtest.Corpus(), api)
		for _, fields := range [][]string{c.FacetFields(), {"timestamp"}, {"url", "label", "timestamp"}} {
			page, err := c.Search(t.Context(), search.Query{Num: 1,
				Facets: &search.Facets{Fields: fields, Queries: []string{"*:*"}}})
			if err != nil {
				t.Errorf("%s: Search() with counts of %q = %v", api, fields, err)
				continue
			}
			var got []string
			for _, f := range page.Facets.Fields {
				got = append(got, f.Name)
				if f.Name == "timestamp" && len(f.Counts) != 0 || f.Name == "label" && len(f.Counts) == 0 {
					t.Errorf("%s: counts of %s = %v", api, f.Name, f.Counts)
				}
			}
			if !cmp.Equal(got, fields) || page.Total == 0 || len(page.Facets.Queries) != 1 ||
				page.Facets.Queries[0].Count != page.Total {
				t.Errorf("%s: Search() with counts of %q = %d documents, %+v", api, fields, page.Total, page.Facets)
			}
		}
	}
	_, answer := get(t, handler(t),
		"/api/v1/documents?q=test&num=1&facet.field=timestamp&facet.field=label&facet.size=1")
	want := []any{map[string]any{"name": "timestamp", "result": []any{}},
		map[string]any{"name": "label", "result": []any{map[string]any{"value": "finance", "count": 8.0}}}}
	if diff := cmp.Diff(want, answer["facet_field"]); diff != "" {
		t.Errorf("facet_field: (-want +got)\n%s", diff)
	}
}

// TestNowhere checks that no document is near to anything, together with
// everything else that can be asked for.
func TestNowhere(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		page, err := client(t, searchtest.Corpus(), api).Search(t.Context(),
			search.Query{Num: 10, Geo: &search.Geo{Point: "35.68,139.77", Distance: "10km"},
				Facets: &search.Facets{Fields: []string{"label", "timestamp"}},
				Sort:   []search.SortKey{{Field: "created"}}})
		if err != nil || page.Total != 0 || len(page.Hits) != 0 || len(page.Facets.Fields) != 2 ||
			len(page.Facets.Fields[0].Counts) != 0 {
			t.Errorf("%s: Search() near a place = %+v, %v, want an empty page", api, page, err)
		}
	}
	for params, want := range map[string]int{"": 200, "&geo.location.point=1,2": 200, "&sort=nope": 400,
		"&facet.field=nope": 400, "&geo.location.point=x": 400} {
		target := "/api/v1/documents?q=test&geo.location.point=35.68,139.77&geo.location.distance=10km" + params
		code, answer := get(t, handler(t), target)
		if code != want || number(answer["record_count"]) != 0 || code == http.StatusOK &&
			number(answer["query_time"]) == 0 {
			t.Errorf("GET %s = %d %v, want %d and no documents, in more than no time", target, code, answer, want)
		}
	}
}

// TestSeveralPlaces checks that a backend whose documents have places is not
// believed to have looked at more than one.
func TestSeveralPlaces(t *testing.T) {
	for params, want := range map[string]int{"": http.StatusOK, "&geo.location.point=3,4": http.StatusBadRequest} {
		var w witness
		target := "/api/v1/documents?q=a&geo.location.distance=3km&geo.location.point=1.5,-2" + params
		if code, _ := get(t, fessserver.New(fessserver.Options{Backend: &w}), target); code != want ||
			w.asked.Geo == nil {
			t.Errorf("GET %s = %d, asks %+v, want %d", target, code, w.asked, want)
		}
	}
}

// TestContent checks that the text of a document goes along where the document is
// asked for by its ID, and nowhere else.
func TestContent(t *testing.T) {
	docs := searchtest.Corpus()
	for _, api := range []string{"v1", "v2"} {
		c := client(t, docs, api)
		for _, d := range docs {
			got, err := c.ReadText(t.Context(), d.ID, []string{d.Label}, 0, len(d.Text))
			if err != nil || got.Window != d.Text || got.Size != int64(len(d.Text)) || got.URL != d.URL {
				t.Errorf("%s: ReadText(%s) = %+v, %v, want %.80q", api, d.Path, got, err, d.Text)
			}
			if got, err := c.ReadText(t.Context(), d.ID, []string{"another"}, 0, len(d.Text)); !errors.Is(err,
				errkind.NotFound) {
				t.Errorf("%s: ReadText(%s) under another label = %+v, %v, want kind NotFound", api, d.Path, got, err)
			}
		}
		d := docs[0]
		page, err := c.Search(t.Context(), search.Query{Num: 100})
		if err != nil || len(page.Hits) != len(docs) || page.Hits[0].Extra["content"] != nil {
			t.Errorf("%s: Search() = %d hits, %v, want all without content", api, len(page.Hits), err)
		}
		for _, text := range []string{"doc_id:" + d.ID + " OR label:nosuch", "title:" + d.ID} {
			page, err := c.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 1})
			if err != nil || len(page.Hits) > 0 && page.Hits[0].Extra["content"] != nil {
				t.Errorf("%s: Search(%q) = %+v, %v, want no content", api, text, page, err)
			}
		}
	}
}

// TestLongContent checks that a text too long to go along keeps no one from
// finding its document, and can still be read as a copy.
func TestLongContent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector, and has one goroutine")
	}
	d := searchtest.Corpus()[0]
	for size, want := range map[int]error{2 << 20: nil, 2<<20 + 1: errkind.Unsupported} {
		// What takes the most room in JSON.
		d.Text = strings.Repeat("\x01", size)
		d.Chunks = []document.Chunk{{Offset: 0, Length: size}}
		c := client(t, []document.Document{d}, "v1")
		if got, err := c.ReadText(t.Context(), d.ID, nil, 0, 10); !errors.Is(err, want) || err == nil &&
			got.Size != int64(size) {
			t.Errorf("ReadText() of %d bytes = %v, want %v", size, err, want)
		}
		if _, err := c.Find(t.Context(), d.ID, nil); err != nil {
			t.Errorf("Find() of a document with a text of %d bytes = %v", size, err)
		}
		if _, err := c.StoredCopy(t.Context(), d.ID, nil); err != nil {
			t.Errorf("StoredCopy() of a text of %d bytes = %v", size, err)
		}
	}
}

// unreadable is a backend that cannot read texts.
type unreadable struct {
	stub
	err error
}

func (u *unreadable) ReadText(context.Context, string, []string, int64, int) (*search.Text, error) {
	return nil, u.err
}

// TestUnreadText checks documents whose text cannot be had: that there is none is
// no failure, all else is.
func TestUnreadText(t *testing.T) {
	for err, want := range map[error]int{errkind.Unsupported: 200, errkind.NotFound: 200, errkind.Corrupt: 500} {
		h := fessserver.New(fessserver.Options{Backend: &unreadable{stub{page: search.Page{Total: 1,
			Hits: []search.Hit{{ID: "x"}}}}, err}})
		code, answer := get(t, h, "/api/v1/documents?q=doc_id:x")
		if rows, _ := answer["data"].([]any); code != want || code == http.StatusOK &&
			(len(rows) != 1 || hasKey(rows[0], "content")) {
			t.Errorf("GET of a document whose text gives %v = %d %v, want %d", err, code, answer, want)
		}
	}
}
