package fess

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func TestNew(t *testing.T) {
	for _, base := range []string{"http://h", "https://h:8443", "http://h/", "http://h/fess/",
		"http://[::1]:8080/a/b"} {
		if _, err := New(Options{BaseURL: base}); err != nil {
			t.Errorf("New(%q) = %v, want a client", base, err)
		}
	}
	for _, base := range []string{"", "h", "//h", "ftp://h", "http://", "http:h", "http://h?x", "http://h#x",
		"http://user:pa55@h", "http://a b/", "\x00"} {
		_, err := New(Options{BaseURL: base})
		if !errors.Is(err, errkind.Invalid) {
			t.Errorf("New(%q) = %v, want kind Invalid", base, err)
		} else if strings.Contains(err.Error(), "pa55") {
			t.Errorf("New(%q) = %q, want no password in it", base, err)
		}
	}
	if _, err := New(Options{BaseURL: "http://h", AccessToken: "a\r\nX: y"}); !errors.Is(err, errkind.Invalid) ||
		strings.Contains(err.Error(), "X: y") {
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
	type extra = map[string]any
	excerpt := func(text string) search.Excerpt { return search.Excerpt{Text: text} }
	tests := []struct {
		name, row string
		want      search.Hit
	}{
		{"empty", `{}`, search.Hit{Size: -1}},
		{"only a link", `{"doc_id":"a","url_link":"http://x"}`,
			search.Hit{ID: "a", Title: "http://x", URL: "http://x", Size: -1, Extra: extra{"url_link": "http://x"}}},
		{"file name for a title", `{"doc_id":"a","url":"u","title":"  ","filename":"f"}`,
			search.Hit{ID: "a", Title: "f", URL: "u", Filename: "f", Size: -1}},
		{"strings for numbers", `{"doc_id":"a","score":"1.5","content_length":"29624","boost":"1.0","click_count":"3"}`,
			search.Hit{ID: "a", Score: 1.5, Size: 29624, Extra: extra{"boost": 1.0, "click_count": int64(3)}}},
		{"numbers for strings", `{"doc_id":5,"score":1.5,"content_length":3e2,"has_cache":true,"filename":1.50}`,
			search.Hit{ID: "5", Title: "1.50", Filename: "1.50", Score: 1.5, Size: 300,
				Extra: extra{"has_cache": "true"}}},
		{"lists", `{"doc_id":"a","label":["x",1.50,true,null,{},["b"],""],"lang":"en"}`,
			search.Hit{ID: "a", Size: -1, Labels: []string{"x", "1.50", "true"}, Langs: []string{"en"}}},
		{"nonsense", `{"doc_id":"a","content_length":"many","boost":"NaN","filename":[],"label":{},"lang":[],"score":"NaN","host":null,"secret":"x",
			"click_count":1e300,"created":"yesterday","timestamp":5}`, search.Hit{ID: "a", Size: -1}},
		{"digest with marks",
			`{"doc_id":"a","digest":"<p>a &lt;b&gt; <em class='x'>c</em> map<string, T> &amp;amp;</p>"}`,
			search.Hit{ID: "a", Digest: excerpt("a <b> c map<string, T> &amp;"), Size: -1}},
		{"no digest", `{"doc_id":"a","content_description":" one <strong>two</strong>... ","content_title":"<strong>A</strong> title"}`,
			search.Hit{ID: "a", Digest: excerpt("one two..."), TitleExcerpt: excerpt("A title"), Size: -1,
				Extra: extra{"content_description": "one two..."}}},
		{"times", `{"doc_id":"a","created":"2023-06-27T03:04:05.000Z","last_modified":"2023-06-27T03:04:05Z","timestamp":"2023-06-27T05:04:05+02:00"}`,
			search.Hit{ID: "a", Size: -1, Created: at, Modified: at, Timestamp: at}},
		{"short text", `{"doc_id":"a","digest":"whole","content_length":"5"}`,
			search.Hit{ID: "a", Digest: excerpt("whole"), TextHash: hash("whole"), Size: 5}},
		{"cut text", `{"doc_id":"a","digest":"whole","content_length":"6"}`,
			search.Hit{ID: "a", Digest: excerpt("whole"), Size: 6}},
		{"bytes are not characters", `{"doc_id":"a","digest":"検索","content_length":"6"}`,
			search.Hit{ID: "a", Digest: excerpt("検索"), Size: 6}},
		{"content", `{"doc_id":"a","content":"text"}`, search.Hit{ID: "a", TextHash: hash("text"), Size: -1,
			Extra: extra{"content": "text"}}},
		{"half a character", `{"doc_id":"a","title":"\ud83dx"}`, search.Hit{ID: "a", Title: "\ufffdx", Size: -1}},
	}
	for _, test := range tests {
		d := json.NewDecoder(strings.NewReader(test.row))
		d.UseNumber()
		var r wire.Row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, hitOf(r), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: hit of %s: (-want +got)\n%s", test.name, test.row, diff)
		}
	}
}

// at is the time in the rows of TestHit.
var at = time.Date(2023, 6, 27, 3, 4, 5, 0, time.UTC)

// TestRowsAreBounded checks that hits beyond the greatest page, and those without
// an ID, are read and dropped.
func TestRowsAreBounded(t *testing.T) {
	a := &answer{path: paths[documentsCall][v1], body: []byte(`{"record_count":1001,"data":[{"title":"x"},` +
		strings.Repeat(`{"doc_id":"a"},`, 10*search.MaxNum) + `{"doc_id":""}]}`)}
	got, err := decodePage(a)
	if err != nil || len(got.Data) != search.MaxNum {
		t.Errorf("decode() = %v with %d hits, want %d", err, len(got.Data), search.MaxNum)
	}
}

func TestTotals(t *testing.T) {
	tests := []struct {
		a       wire.Page
		total   int
		atLeast bool
	}{
		{wire.Page{RecordCount: 42, RecordCountRelation: "EQUAL_TO"}, 42, false},
		{wire.Page{RecordCount: 10_000, RecordCountRelation: "GREATER_THAN_OR_EQUAL_TO"}, 10_000, true},
		{wire.Page{RecordCount: 25_000, RecordCountRelation: "EQUAL_TO"}, 25_000, false},
		{wire.Page{RecordCount: 42, Partial: true}, 42, true},
		{wire.Page{RecordCountRelation: "GREATER_THAN_OR_EQUAL_TO"}, 0, false},
	}
	for _, test := range tests {
		if p := pageOf(&test.a, search.Query{}); p.Total != test.total || p.AtLeast != test.atLeast {
			t.Errorf("page of %+v = total %d, at least %v, want %d, %v", test.a, p.Total, p.AtLeast, test.total,
				test.atLeast)
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
			fuzzCalls(t, clientOf(t, page(200+max(status, -status)%400, "application/json", string(body)),
				Options{API: api, AccessToken: "x"}))
		}
	})
}

// fuzzCalls makes every call and checks what must hold of any answer.
func fuzzCalls(t *testing.T, c *Client) {
	ctx := context.Background()
	if p, err := c.Search(ctx, search.Query{Text: query.MustParse("a b"), Num: 3,
		Facets: &search.Facets{Fields: []string{"label"}}}); err == nil {
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
		"a": true, "azAZ09_-": true, "": false, "a b": false, "a.b": false, "ä": false, "a\n": false, "a\xff": false,
		"12345678": true, "123456789": false,
	} {
		if got := isName(s, 8, "_-"); got != want {
			t.Errorf("isName(%q) = %t, want %t", s, got, want)
		}
	}
}
