package fess

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

func TestNew(t *testing.T) {
	for _, base := range []string{"http://h", "https://h:8443", "http://h/", "http://h/fess/", "http://[::1]:8080/a/b"} {
		if _, err := New(Options{BaseURL: base}); err != nil {
			t.Errorf("New(%q) = %v, want a client", base, err)
		}
	}
	for _, base := range []string{"", "h", "//h", "ftp://h", "http://", "http:h", "http://h?x", "http://h#x", "http://user:pa55@h", "http://a b/", "\x00"} {
		_, err := New(Options{BaseURL: base})
		if !errors.Is(err, errkind.Invalid) {
			t.Errorf("New(%q) = %v, want kind Invalid", base, err)
		} else if strings.Contains(err.Error(), "pa55") {
			t.Errorf("New(%q) = %q, want no password in it", base, err)
		}
	}
	if _, err := New(Options{BaseURL: "http://h", AccessToken: "a\r\nX: y"}); !errors.Is(err, errkind.Invalid) || strings.Contains(err.Error(), "X: y") {
		t.Errorf("New() with a token of two lines = %v, want kind Invalid without the token", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{BaseURL: "http://h", CAFile: empty}); !errors.Is(err, errkind.Invalid) {
		t.Errorf("New() with an empty CA file = %v, want kind Invalid", err)
	}
	if _, err := New(Options{BaseURL: "http://h", CAFile: empty + "x"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("New() with a missing CA file = %v, want os.ErrNotExist", err)
	}
}

func TestHit(t *testing.T) {
	tests := []struct {
		name string
		row  map[string]any
		want search.Hit
	}{
		{"empty", map[string]any{}, search.Hit{Fields: map[string]any{}}},
		{"only a link", map[string]any{"doc_id": "a", "url_link": "http://x"},
			search.Hit{ID: "a", Title: "http://x", URL: "http://x", Fields: map[string]any{"url_link": "http://x"}}},
		{"file name for a title", map[string]any{"doc_id": "a", "url": "u", "title": "  ", "filename": "f"},
			search.Hit{ID: "a", Title: "f", URL: "u", Fields: map[string]any{"filename": "f"}}},
		{"strings for numbers", map[string]any{"doc_id": "a", "score": "1.5", "content_length": "29624", "boost": "1.0", "click_count": "3"},
			search.Hit{ID: "a", Score: 1.5, Fields: map[string]any{"content_length": int64(29624), "boost": 1.0, "click_count": int64(3)}}},
		{"lists", map[string]any{"doc_id": "a", "label": []any{"x", "y"}, "lang": "en"},
			search.Hit{ID: "a", Fields: map[string]any{"label": []string{"x", "y"}, "lang": []string{"en"}}}},
		{"nonsense", map[string]any{"doc_id": "a", "content_length": "many", "boost": "NaN", "filename": []any{}, "label": map[string]any{}, "score": "NaN",
			"host": nil, "secret": "x"}, search.Hit{ID: "a", Fields: map[string]any{}}},
		{"digest with marks", map[string]any{"doc_id": "a", "digest": "<p>a &lt;b&gt; <em class='x'>c</em> map<string, T> &amp;amp;</p>"},
			search.Hit{ID: "a", Digest: "a <b> c map<string, T> &amp;", Fields: map[string]any{}}},
		{"no digest", map[string]any{"doc_id": "a", "content_description": " one <strong>two</strong>... "},
			search.Hit{ID: "a", Digest: "one two...", Fields: map[string]any{"content_description": "one two..."}}},
		{"short text", map[string]any{"doc_id": "a", "digest": "whole", "content_length": "5"},
			search.Hit{ID: "a", Digest: "whole", TextHash: hash("whole"), Fields: map[string]any{"content_length": int64(5)}}},
		{"cut text", map[string]any{"doc_id": "a", "digest": "whole", "content_length": "6"},
			search.Hit{ID: "a", Digest: "whole", Fields: map[string]any{"content_length": int64(6)}}},
		{"bytes are not characters", map[string]any{"doc_id": "a", "digest": "検索", "content_length": "6"},
			search.Hit{ID: "a", Digest: "検索", Fields: map[string]any{"content_length": int64(6)}}},
		{"content", map[string]any{"doc_id": "a", "content": "text"},
			search.Hit{ID: "a", TextHash: hash("text"), Fields: map[string]any{"content": "text"}}},
	}
	for _, test := range tests {
		if got := rowOf(t, test.row).hit(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: hit(%v) = %+v, want %+v", test.name, test.row, got, test.want)
		}
	}
}

// rowOf returns the row of an answer with the given fields.
func rowOf(t *testing.T, fields map[string]any) *row {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := readRow(&scanner{data: raw})
	if !ok {
		t.Fatalf("%s is no row", raw)
	}
	return r
}

func TestTotals(t *testing.T) {
	tests := []struct {
		a       documents
		total   int
		atLeast bool
	}{
		{documents{RecordCount: 42, RecordCountRelation: "EQUAL_TO"}, 42, false},
		{documents{RecordCount: 10_000, RecordCountRelation: "GREATER_THAN_OR_EQUAL_TO"}, 10_000, true},
		{documents{RecordCount: 25_000, RecordCountRelation: "EQUAL_TO"}, 25_000, false},
		{documents{RecordCount: 42, Partial: true}, 42, true},
		{documents{RecordCountRelation: "GREATER_THAN_OR_EQUAL_TO"}, 0, false},
	}
	for _, test := range tests {
		if p := test.a.page(search.Query{}); p.Total != test.total || p.AtLeast != test.atLeast {
			t.Errorf("page of %+v = total %d, at least %v, want %d, %v", test.a, p.Total, p.AtLeast, test.total, test.atLeast)
		}
	}
}

// FuzzAnswer gives every call an arbitrary answer.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"record_count":"1","query_time":"5","page_size":1,"partial":false,"data":[{"doc_id":"a","title":"t","score":1e309,"content":"é"}]}`))
	f.Add(200, []byte(`{"record_count":3,"page_size":1,"data":[{"doc_id":1,"boost":[],"label":"x","digest":"<b>&#0;"}],"facet_field":[{"name":1,"result":[{"value":null}]}]}`))
	f.Add(503, []byte(`{"data":{"status":"RED","timed_out":true}}`))
	f.Add(200, []byte(`{"record_count":2,"data":[{"text":"a","labels":null},{"label":"A","value":"a"}]}`))
	f.Add(400, []byte(`{"error_code:":"x"}`))
	f.Add(200, []byte(`{"response":{"status":0,"record_count":1,"query_time":1,"data":[{"doc_id":"a","has_cache":"true"}],"doc_id":"a",`+
		`"content":"<!DOCTYPE html>\n<meta http-equiv=\"Content-Type\">\n<base href=\"\">\n<div >\n<div ></div>\n</div>\nx"}}`))
	f.Add(200, []byte(`{"response":{"status":0,"suggest_words":[{"text":"a","types":["b"]}],"popular_words":["a"],"labels":[{"value":"a"}]}}`))
	f.Add(503, []byte(`{"response":{"status":9,"error":{"code":"service_unavailable","details":{"engine":{"status":"RED"}}}}}`))
	f.Add(500, []byte(`{"response":{"status":9,"error":{"code":"internal_error"}}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, api := range []string{"auto", "v1", "v2"} {
			fuzzCalls(t, clientOf(t, page(200+max(status, -status)%400, "application/json", string(body)), Options{API: api, AccessToken: "x"}))
		}
	})
}

// fuzzCalls makes every call and checks what must hold of any answer.
func fuzzCalls(t *testing.T, c *Client) {
	ctx := context.Background()
	if p, err := c.Search(ctx, search.Query{Text: "a b", Num: 3, Facets: &search.Facets{Fields: []string{"label"}}}); err == nil {
		if len(p.Hits) > 3 || p.Total < 0 || len(p.Facets.Fields) != 1 {
			t.Errorf("Search() = %+v", p)
		}
		for _, h := range p.Hits {
			if h.ID == "" || !utf8.ValidString(h.Title) {
				t.Errorf("Search() has hit %+v", h)
			}
		}
	}
	if x, err := c.ReadText(ctx, "a", nil, 1, 5); err == nil && (len(x.Window) > 5 || !utf8.ValidString(x.Window)) {
		t.Errorf("ReadText() = %+v", x)
	}
	if got, err := c.StoredCopy(ctx, "a", nil); err == nil && len(got.Data) == 0 {
		t.Errorf("StoredCopy() = %+v, want data", got)
	}
	if list, err := c.Suggest(ctx, search.SuggestQuery{Num: 2}); err == nil && len(list) > 2 {
		t.Errorf("Suggest() = %v, want two at most", list)
	}
	for _, call := range []func() error{
		func() error { _, err := c.PopularWords(ctx, search.WordsQuery{}); return err },
		func() error { _, err := c.Labels(ctx); return err },
		func() error { _, err := c.Health(ctx); return err },
	} {
		if _, ok := errors.AsType[*errkind.Remote](call()); !ok && call() != nil {
			t.Errorf("call = %v, want an *errkind.Remote", call())
		}
	}
}

func TestIsName(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "azAZ09_-": true, "": false, "a b": false, "a.b": false, "ä": false, "a\n": false, "a\xff": false, "12345678": true, "123456789": false,
	} {
		if got := isName(s, 8, "_-"); got != want {
			t.Errorf("isName(%q) = %t, want %t", s, got, want)
		}
	}
}
