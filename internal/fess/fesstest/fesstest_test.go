package fesstest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// docs returns a few documents with two labels.
func docs() []document.Document {
	doc := func(id, label, title, text string) document.Document {
		return document.Document{ID: id, Label: label, Title: title, Text: text,
			URL: "https://" + label + ".example/" + id, Host: label + ".example",
			Filename: id, FileType: "html", MIMEType: "text/html",
			Modified: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC),
			Size:     int64(len(text))}
	}
	return []document.Document{
		doc("f1", "finance", "Budget <2024>", "The test budget of finance."),
		doc("f2", "finance", "Plan", "A plan for tax."),
		doc("h1", "hr", "Rules", "The test rules of hr."),
	}
}

// get sends a request to a handler.
func get(t *testing.T, h http.Handler, method, target, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// v1 is the path of API v1.
const v1 = "/api/v1"

// A quirk is a request and what its response must contain.
type quirk struct {
	o      Options
	method string // "" is GET
	target string
	token  string
	status int
	has    string // in the body
	hasNot string // not in the body; "" is ignored
}

// TestSearchQuirks compares answers to searches with those observed of Fess
// 15.4.
func TestSearchQuirks(t *testing.T) {
	checkQuirks(t, []quirk{
		{target: v1 + "/documents?q=test", status: 200,
			has: `"page_size":10,"page_number":1,"record_count":2,"record_count_relation":"EQUAL_TO"`},
		{target: v1 + "?q=test", status: 200, has: `"record_count":2`},
		{target: v1 + "/documents/f2?q=test", status: 200, has: `"record_count":2`},
		{target: v1 + "/documents?q=test&num=0", status: 200, has: `"page_size":100`},
		{target: v1 + "/documents?q=test&num=101", status: 200, has: `"page_size":100`},
		{target: v1 + "/documents?q=test&num=x&start=x", status: 200, has: `"page_size":10,"page_number":1`},
		{target: v1 + "/documents?q=test&num=1", status: 200, has: `"page_count":2,`},
		{target: v1 + "/documents?q=nosuch&num=1", status: 200, has: `"page_count":0,`},
		{target: v1 + "/documents?q=nosuch", status: 200, has: `"page_count":1,`, hasNot: "facet_field"},
		{target: v1 + "/documents?q=test&start=9990", status: 200, has: `"data":[]`},
		{target: v1 + "/documents?q=test&start=9991", status: 400, has: `"error_code:":"`},
		{target: v1 + "/documents?q=test&start=-1", status: 200,
			has: `"query_time":0,"page_size":10,"page_number":1,"record_count":0`},
		{target: v1 + "/documents", status: 200, has: `"q":null,`},
		{target: v1 + "/documents?fields.label=finance", status: 200, has: `"record_count":2`},
		{target: v1 + "/documents?fields.label=hr&fields.label=finance&q=test", status: 200,
			has: `"search_query":"test (label:\"hr\" OR label:\"finance\")"`},
		{target: v1 + "/documents?q=test+OR", status: 400, has: `"error_code:":"`},
		{target: v1 + "/documents?q=%22test", status: 400, has: `"error_code:":"`},
		{o: Options{OmitColon: true}, target: v1 + "/documents?q=%22test", status: 400, has: `"error_code":"`},
		{target: v1 + "/documents?q=(test", status: 200, has: `"search_query":"\\(test"`},
		{target: v1 + "/documents?q=test+OR&fields.label=hr", status: 200, has: `"record_count":2`},
		{target: v1 + "/documents?q=test+OR&fields.label=hr&ex_q=*:*", status: 200, has: `"record_count":1`},
		{target: v1 + "/documents?q=tset", status: 200, has: `"record_count":2`},
		// a term is also searched for as a fuzzy one
		{target: v1 + "/documents?q=test&sort=nope", status: 400, has: "error_code"},
		{target: v1 + "/documents?q=test&sort=filename.desc", status: 200, has: `"doc_id":"h1"`, hasNot: `"score"`},
		{target: v1 + "/documents?q=test&facet.field=doc_id", status: 200, has: `"record_count":0`,
			hasNot: "facet_field"},
		{target: v1 + "/documents?q=test&facet.field=title", status: 400, has: "error_code"},
		{target: v1 + "/documents?q=test&facet.field=label&facet.size=0", status: 200, has: `"record_count":0`,
			hasNot: "facet_field"},
		{target: v1 + "/documents?q=test&facet.query=((", status: 400, has: "error_code"},
		{target: v1 + "/documents?q=test&facet.field=label", status: 200,
			has: `"facet_field":[{"name":"label","result":[{"value":"finance","count":1},{"value":"hr","count":1}]}],"facet_query":[]`},
		{target: v1 + "/documents?q=test&geo.location.point=1,2", status: 200, has: `"record_count":2`},
		{target: v1 + "/documents?q=test&geo.location.point=x&geo.location.distance=1km", status: 400,
			has: "error_code"},
		{target: v1 + "/documents?q=budget", status: 200,
			has: `"content_title":"<strong>Budget<\/strong> &lt;2024&gt;"`},
		{target: v1 + "/documents?q=a[b]", status: 400, has: "<!doctype html>"},
	})
}

// TestOtherQuirks compares answers to other requests with those observed of
// Fess 15.4.
func TestOtherQuirks(t *testing.T) {
	checkQuirks(t, []quirk{
		{o: Options{Engine: "down"}, target: v1 + "/documents?q=test&facet.field=label", status: 200,
			has: `"query_time":0,`, hasNot: "facet_field"},
		{o: Options{Engine: "down"}, target: v1 + "/health", status: 500, has: "error_code:"},
		{o: Options{Engine: "down"}, target: v1 + "/suggest-words?q=t", status: 500, has: "error_code:"},
		{o: Options{Engine: "down"}, target: v1 + "/labels", status: 200, has: "finance"},
		{o: Options{Engine: "down"}, target: v1 + "/labels", token: "x", status: 500, has: "error_code:"},
		{o: Options{Engine: "red"}, target: v1 + "/health", status: 503,
			has: `{"data":{"status":"red","timed_out":false}}`},
		{target: v1 + "/health", token: "Bearer wrong", status: 200, has: "green"},
		{target: v1 + "/labels", token: "Bearer wrong", status: 401, has: "error_code:"},
		{o: Options{Token: "t"}, target: v1 + "/labels", token: "t", status: 200, has: "finance"},
		{o: Options{Token: "t"}, target: v1 + "/labels", token: "bearer t", status: 401, has: "error_code:"},
		{o: Options{Token: "t"}, target: v1 + "/labels", status: 401, has: "error_code:"},
		{o: Options{Labels: []search.Label{}}, target: v1 + "/labels", status: 200, has: `{"record_count":0}`},
		{target: v1 + "/suggest-words", status: 500, has: "error_code:"},
		{target: v1 + "/suggest-words?q=zzz", status: 200, has: `{"query_time":3,"record_count":0,"page_size":0}`},
		{target: v1 + "/suggest-words?q=te&label=hr", status: 200,
			has: `"data":[{"text":"test","labels":["finance","hr"]}]`},
		{target: v1 + "/popular-words?label=zz", status: 200, has: `{"record_count":0,"data":[]}`},
		{target: v1 + "/nosuch", status: 404, has: `{"message":"Not found."}`},
		{target: v1 + "/documents/all?q=test", status: 400, has: "Scroll Search is not available."},
		{method: "POST", target: v1 + "/documents?q=test", status: 405, has: `{"message":"POST is not allowed."}`},
		{target: "/api/v2/health", status: 302},
		{o: Options{ContextPath: "/fess"}, target: v1 + "/health", status: 404, has: "<!doctype html>"},
		{o: Options{ContextPath: "/fess"}, target: "/fess/api/v1/health", status: 200, has: "green"},
	})
}

// checkQuirks sends the requests and checks the responses.
func checkQuirks(t *testing.T, tests []quirk) {
	t.Helper()
	for _, test := range tests {
		if test.method == "" {
			test.method = http.MethodGet
		}
		w := get(t, NewHandler(docs(), test.o), test.method, test.target, test.token)
		if body := w.Body.String(); w.Code != test.status || !strings.Contains(body, test.has) || test.hasNot != "" &&
			strings.Contains(body, test.hasNot) {
			t.Errorf("%s %s with %+v = %d %s\nwant %d with %q, without %q", test.method, test.target, test.o, w.Code,
				body, test.status, test.has, test.hasNot)
		}
	}
}

// TestPrecedence checks Lucene's precedence of operators: with AND as the
// default operator, OR makes the clauses on both sides optional.
func TestPrecedence(t *testing.T) {
	h := NewHandler([]document.Document{
		{ID: "a", Label: "l", Title: "a", Text: "alpha"}, {ID: "b", Label: "l", Title: "b", Text: "bravo"},
		{ID: "c", Label: "l", Title: "c", Text: "coda"},
		{ID: "ab", Label: "l", Title: "ab", Text: "alpha bravo"},
		{ID: "bc", Label: "l", Title: "bc", Text: "bravo coda"},
		{ID: "abc", Label: "l", Title: "abc", Text: "alpha bravo coda"},
	}, Options{})
	tests := map[string]string{
		"alpha bravo":             "ab abc",
		"alpha OR coda":           "a c ab bc abc",
		"alpha OR bravo coda":     "c bc abc", // coda is required, the others are optional
		"alpha bravo OR coda":     "a ab abc",
		"alpha AND bravo OR coda": "a ab abc",
		"alpha OR bravo AND coda": "bc abc",
		"alpha NOT bravo":         "a",
		"NOT alpha":               "b c bc",
		"alpha OR NOT bravo":      "a",
		"+alpha -coda":            "a ab",
		"(alpha OR coda) bravo":   "ab bc abc",
		"alpha -(bravo coda)":     "a ab",
		`"alpha bravo"`:           "ab abc",
		"title:(a OR b)":          "a b",
		"doc_id:ab*":              "ab abc",
		"br?vo AND cod*":          "bc abc",
		"alhpa~":                  "a ab abc",
		"bravo^2 alpha":           "ab abc",
		`al\pha`:                  "a ab abc",
		"*":                       "a b c ab bc abc",
		"*:* -alpha":              "b c bc",
		"content:[a TO b]":        "",
	}
	for q, want := range tests {
		w := get(t, h, http.MethodGet, "/api/v1/documents?sort=click_count.asc&q="+url.QueryEscape(q), "")
		var answer struct {
			Data []struct {
				ID string `json:"doc_id"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("query %q: %v", q, err)
		}
		got := []string{}
		for _, d := range answer.Data {
			got = append(got, d.ID)
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("query %q: (-want +got)\n%s", q, diff)
		}
	}
}

func TestRequests(t *testing.T) {
	called := 0
	s := New(t, docs(), Options{ContextPath: "/fess", SendContent: true, Delay: func(*http.Request) { called++ }})
	resp, err := http.Get(s.URL + "/api/v1/documents?q=budget")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := s.Requests()
	if len(got) != 1 || got[0].Method != "GET" || got[0].Path != "/fess/api/v1/documents" ||
		got[0].Query != "q=budget" || called != 1 {
		t.Errorf("Requests() = %+v with %d delays, want the one request", got, called)
	}
	s.Forget()
	if got := s.Requests(); len(got) != 0 {
		t.Errorf("Requests() after Forget() = %+v, want none", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, q := range []string{"a OR b", `"a`, "[a TO b]", "a^2~1", `\`, "((a)", "*:*", "a:b:c", "sort:x", "\xff?"} {
		f.Add(q)
	}
	h := NewHandler(docs(), Options{})
	f.Fuzz(func(t *testing.T, q string) {
		w := get(t, h, http.MethodGet, "/api/v1/documents?q="+url.QueryEscape(q), "")
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("query %q = %d", q, w.Code)
		}
		h.Forget()
	})
}
