package fess

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// asking are all calls of a client that a server may answer, by endpoint.
var asking = map[endpoint]func(*testing.T, *Client) (any, error){
	documentsCall: func(t *testing.T, c *Client) (any, error) {
		return c.Search(t.Context(), search.Query{Text: query.MustParse("test"), Num: 10})
	},
	suggestCall: func(t *testing.T, c *Client) (any, error) {
		return c.Suggest(t.Context(), search.SuggestQuery{Prefix: "t", Num: 10})
	},
	popularCall: func(t *testing.T, c *Client) (any, error) { return c.PopularWords(t.Context(), search.WordsQuery{}) },
	labelsCall:  func(t *testing.T, c *Client) (any, error) { return c.Labels(t.Context()) },
	healthCall:  func(t *testing.T, c *Client) (any, error) { return c.Health(t.Context()) },
}

// names are those of the endpoints in messages.
var names = [...]string{documentsCall: "Search", suggestCall: "Suggest", popularCall: "PopularWords",
	labelsCall: "Labels", healthCall: "Health"}

// answering returns a client of a server that speaks one version and says the
// same to everything.
func answering(t *testing.T, v version, status int, body string) *Client {
	t.Helper()
	c, err := New(Options{BaseURL: "http://fess.example", API: strings.Replace(v.String(), "?", "auto", 1)})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = inMemory{page(status, "application/json", body)}
	return c
}

// TestForeignShapes gives every call what is JSON, but no answer to it, with
// status 200: it must not be taken for an empty result.
func TestForeignShapes(t *testing.T) {
	all := []endpoint{documentsCall, suggestCall, popularCall, labelsCall, healthCall}
	lists := []endpoint{suggestCall, popularCall, labelsCall}
	tests := []struct {
		to   []endpoint
		body string // in API v2 behind the member status
	}{
		{all, `{"error_code:":"0d0a-1"}`}, {all, `{"error_code":"x"}`}, {all, `{}`}, {all, `{"message":"x"}`},
		{all, `{"status":"ok"}`},
		{all, `{"data":null,"labels":null,"suggest_words":null,"popular_words":null,"engine":null,"record_count":0}`},
		{[]endpoint{documentsCall, popularCall}, `{"record_count":0}`},
		{all, `{"record_count":3}`},
		{all, `{"data":[],"labels":[],"suggest_words":[],"popular_words":[],"engine":[]}`},
		{all, `{"record_count":"3","data":[],"labels":[],"suggest_words":[],"popular_words":[]}`},
		{all, `{"record_count":null,"data":[],"labels":[],"suggest_words":[],"popular_words":[]}`},
		{all, `{"record_count":-1,"data":[],"labels":[],"suggest_words":[],"popular_words":[]}`},
		{all, `{"record_count":"x","data":{}}`},
		{all, `{"record_count":1,"data":{},"labels":{},"suggest_words":{},"popular_words":{}}`},
		{all, `{"record_count":1,"data":"x","labels":"x","suggest_words":"x","popular_words":"x"}`},
		{all, `{"record_count":3,"data":["x",null,5],"labels":["x"],"suggest_words":["x"],"popular_words":["x",null,5]}`},
		{all, `{"record_count":1,"data":[null],"labels":[null],"suggest_words":[null],"popular_words":[null]}`},
		{[]endpoint{suggestCall, labelsCall}, `{"record_count":1,"data":[{}],"labels":[{}],"suggest_words":[{}]}`},
		{lists, `{"record_count":1,"data":[{"text":5,"value":5}],"labels":[{"value":5}],"suggest_words":[{"text":5}],"popular_words":[{"text":"x"}]}`},
		{[]endpoint{suggestCall},
			`{"record_count":1,"data":[{"text":"x","labels":"y"}],"suggest_words":[{"text":"x","types":"y"}]}`},
		{[]endpoint{suggestCall}, `{"record_count":9,"page_size":"0","suggest_words":[],"data":[]}`},
		{[]endpoint{documentsCall}, `{"record_count":1,"page_size":"x","data":[]}`},
		{[]endpoint{documentsCall}, `{"record_count":1,"partial":"x","data":[]}`},
		{[]endpoint{documentsCall}, `{"record_count":1,"query_time":null,"data":[]}`},
		{[]endpoint{documentsCall}, `{"record_count":1,"query_time":1,"data":[],"facet_field":"x"}`},
		{[]endpoint{documentsCall}, `{"record_count":1,"query_time":1,"data":[],"facet_field":[{"name":"label"}]}`},
		{[]endpoint{documentsCall},
			`{"record_count":1,"query_time":1,"data":[],"facet_query":[{"value":5,"count":"x"}]}`},
		{[]endpoint{healthCall}, `{"data":{"status":5},"engine":{"status":5}}`},
	}
	for _, v := range []version{v1, v2} {
		for _, test := range tests {
			body := test.body
			if v == v2 {
				body = strings.Replace(`{"response":{"status":0,`+body[1:]+`}`, ",}", "}", 1)
			}
			for _, to := range test.to {
				got, err := asking[to](t, answering(t, v, http.StatusOK, body))
				r, ok := errors.AsType[*errkind.Remote](err)
				if !ok || !errors.Is(err, errkind.Unavailable) || r.Status != http.StatusBadGateway ||
					r.Endpoint != paths[to][v] {
					t.Errorf("%s() answered with %s = %v, %v, want kind Unavailable, status 502 of %s", names[to], body,
						got, err, paths[to][v])
				}
			}
		}
	}
	_, err := answering(t, v1, http.StatusOK, tests[0].body).Labels(t.Context())
	if r, ok := errors.AsType[*errkind.Remote](err); !ok || r.Code != "0d0a-1" {
		t.Errorf("Labels() answered with %s = %v, want its error code", tests[0].body, err)
	}
}

// TestEmptyShapes checks the answers that say that there is nothing, as the
// recordings have them and no emptier.
func TestEmptyShapes(t *testing.T) {
	tests := []struct {
		to   endpoint
		v    version
		body string
	}{
		{suggestCall, v1, `{"query_time":10,"record_count":0,"page_size":0}`},
		{suggestCall, v1, `{"query_time":14,"record_count":19,"page_size":0}`},
		{suggestCall, v2, `{"response":{"status":0,"record_count":0,"page_size":0,"suggest_words":[]}}`},
		{popularCall, v1, `{"record_count":0,"data":[]}`},
		{popularCall, v2, `{"response":{"status":0,"record_count":0,"popular_words":[]}}`},
		{labelsCall, v1, `{"record_count":0}`},
		{labelsCall, v2, `{"response":{"status":0,"record_count":0,"labels":[]}}`},
	}
	for _, test := range tests {
		got, err := asking[test.to](t, answering(t, test.v, http.StatusOK, test.body))
		var want any = []string{}
		switch test.to {
		case suggestCall:
			want = []search.Suggestion{}
		case labelsCall:
			want = []search.Label{}
		}
		if diff := gocmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s() answered with %s = %v, %v, want an empty list", names[test.to], test.body, got, err)
		}
	}
}

// TestEnvelopes checks that an error in an envelope of API v2 is reported, whatever the
// status that it comes with.
func TestEnvelopes(t *testing.T) {
	tests := []struct {
		body   string
		kind   error
		status int
		code   string
	}{
		{`{"response":{"status":9,"error":{"code":"internal_error","message":"secret"}}}`, errkind.Unavailable, 500,
			"internal_error"},
		{`{"response":{"status":9,"error":{"code":"service_unavailable","message":"secret"}}}`, errkind.Unavailable,
			503, "service_unavailable"},
		{`{"response":{"error":{"code":"rate_limited"},"status":1}}`, errkind.Busy, 429, "rate_limited"},
		{`{"response":{"status":1,"error":{"code":"invalid_request"}}}`, errkind.Invalid, 400, "invalid_request"},
		{`{"response":{"status":1,"error":{"code":"forbidden"}}}`, errkind.Denied, 403, "forbidden"},
		{`{"response":{"status":1,"error":{"code":"unauthorized"}}}`, errkind.Unauthorized, 401, "unauthorized"},
		{`{"response":{"status":1,"error":{"code":"new_one"}}}`, errkind.Unavailable, 502, "new_one"},
		{`{"response":{"status":1,"error":"x"}}`, errkind.Unavailable, 502, ""},
		{`{"response":{"status":9}}`, errkind.Unavailable, 502, ""},
		{`{"response":{"status":9,"record_count":0,"data":[],"labels":[],"suggest_words":[],"popular_words":[],"engine":{"status":"GREEN"}}}`, errkind.Unavailable, 502, ""},
		{`{"response":{"record_count":0,"data":[],"labels":[],"suggest_words":[],"popular_words":[],"engine":{"status":"GREEN"}}}`, errkind.Unavailable, 502, ""},
		{`{"response":{}}`, errkind.Unavailable, 502, ""},
		{`{"response":null}`, errkind.Unavailable, 502, ""},
		{`{"response":[]}`, errkind.Unavailable, 502, ""},
		{`[]`, errkind.Unavailable, 502, ""},
		{`{"response":{"status":0`, errkind.Unavailable, 502, ""},
	}
	for _, test := range tests {
		c := answering(t, v2, http.StatusOK, test.body)
		for to, call := range asking {
			got, err := call(t, c)
			kind, status := test.kind, test.status
			if to == popularCall && status == http.StatusBadRequest {
				kind = errkind.Unsupported // Fess says so of a function that is switched off
			}
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, kind) || r.Status != status || r.Code != test.code ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%s() answered with %s = %v, %v, want kind %v, status %d, code %q", names[to], test.body, got,
					err, kind, status, test.code)
			}
		}
		_, err := c.copyV2(t.Context(), "id", errkind.NotFound)
		if r, ok := errors.AsType[*errkind.Remote](err); !ok || r.Status != test.status || r.Code != test.code {
			t.Errorf("copyV2() answered with %s = %v, want status %d, code %q", test.body, err, test.status, test.code)
		}
	}
	for _, body := range []string{`{"doc_id":"id"}`, `{"content":"x"}`, `{"doc_id":"id","content":5}`,
		`{"doc_id":5,"content":"x"}`} {
		c := answering(t, v2, http.StatusOK, `{"response":{"status":0,`+body[1:]+`}`)
		if got, err := c.copyV2(t.Context(), "id", errkind.NotFound); err == nil ||
			!errors.Is(err, errkind.Unavailable) {
			t.Errorf("copyV2() answered with %s = %q, %v, want kind Unavailable", body, got, err)
		}
	}
}

// TestDetectionNeedsAnAnswer checks that an error with status 200, which any
// server may give, does not pass for API v1.
func TestDetectionNeedsAnAnswer(t *testing.T) {
	for _, body := range []string{`{"message":"x"}`, `{"error_code:":"x"}`} {
		c := answering(t, unknown, http.StatusOK, body)
		if got, err := c.Labels(t.Context()); !errors.Is(err, errkind.Unavailable) || c.api.known() != unknown {
			t.Errorf("Labels() answered with %s = %v, %v, and the API is %v, want kind Unavailable and ?", body, got,
				err, c.api.known())
		}
	}
}

// TestRetryAdvice checks that a message says "try again" only where that may help,
// and that it does wherever it may and nothing else is to be done.
func TestRetryAdvice(t *testing.T) {
	for status := 400; status < 600; status++ {
		for _, contentType := range []string{"application/json", "text/html"} {
			for _, v := range []version{v1, v2} {
				for to, call := range asking {
					c := answering(t, v, status, "{}")
					c.http.Transport = inMemory{page(status, contentType, "{}")}
					_, err := call(t, c)
					advised, retryable := strings.Contains(cmp.Or(err, errors.New("")).Error(), "try again"),
						errkind.Retryable(err)
					failure := status == http.StatusTooManyRequests && contentType == "text/html" || status > 500 ||
						status == http.StatusRequestTimeout
					if err == nil || advised && !retryable || retryable && failure && !advised {
						t.Errorf("%s() answered with %d %s = %v, retryable %v", names[to], status, contentType, err,
							retryable)
					}
				}
			}
		}
	}
}
