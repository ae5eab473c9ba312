package fess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// ours is the token of the configuration, which must not stand in for a caller's.
const ours = "our-own-token"

// private returns a fake in which every document is for one role, and the fake's
// tokens: ann's is for finance, bob's for hr.
func private(api string) *fesstest.Handler {
	more := map[string]fesstest.More{}
	docs := searchtest.Secrets()
	for i, d := range docs {
		role := "R" + d.Label
		more[d.ID] = fesstest.More{Roles: []string{role}, Copy: fmt.Sprintf("<p>copy %d</p>", i)}
	}
	return fesstest.NewHandler(docs, fesstest.Options{ContextPath: "/fess", API: api, More: more,
		Roles: map[string][]string{"ann": {"Rfinance"}, "bob": {"Rhr"}, ours: {"Rfinance", "Rhr"}}})
}

// calls are all that a client can be asked.
var calls = map[string]func(context.Context, *Client) error{
	"Search": func(ctx context.Context, c *Client) error { _, err := c.Search(ctx, search.Query{Num: 1}); return err },
	"Find":   func(ctx context.Context, c *Client) error { _, err := c.Find(ctx, "finance0", nil); return err },
	"ReadText": func(ctx context.Context, c *Client) error {
		_, err := c.ReadText(ctx, "finance0", nil, 0, 1)
		return err
	},
	"StoredCopy": func(ctx context.Context, c *Client) error {
		_,
			err := c.StoredCopy(ctx, "finance0", nil)
		return err
	},
	"Suggest": func(ctx context.Context, c *Client) error {
		_, err := c.Suggest(ctx, search.SuggestQuery{Num: 1})
		return err
	},
	"PopularWords": func(ctx context.Context, c *Client) error {
		_, err := c.PopularWords(ctx, search.WordsQuery{})
		return err
	},
	"Labels": func(ctx context.Context, c *Client) error { _, err := c.Labels(ctx); return err },
	"Health": func(ctx context.Context, c *Client) error { _, err := c.Health(ctx); return err },
}

// TestPassThroughRefuses checks that a call without a token that can be sent is
// refused, and makes no request.
func TestPassThroughRefuses(t *testing.T) {
	h := private("v1")
	c := clientOf(t, h, Options{PassThrough: true, AccessToken: ours})
	for name, call := range calls {
		for _, token := range []string{"", " ", "two words", "a\r\nX-Evil: 1", "töken", strings.Repeat("x", 4097)} {
			err := call(search.WithToken(t.Context(), token), c)
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, errkind.Unauthorized) || r.Status != 401 ||
				!strings.Contains(r.Message, "X-Fess-Token") {
				t.Errorf("%s() with token %.20q = %v, want kind Unauthorized naming X-Fess-Token", name, token, err)
			}
			if token != "" && token != " " && strings.Contains(fmt.Sprint(err), token) {
				t.Errorf("%s() with token %.20q gives it away: %v", name, token, err)
			}
		}
		if err := call(t.Context(), c); !errors.Is(err, errkind.Unauthorized) {
			t.Errorf("%s() without a token = %v, want kind Unauthorized", name, err)
		}
	}
	if n := len(h.Requests()); n != 0 {
		t.Errorf("refused calls made %d requests, want none", n)
	}
}

// TestPassThrough checks that each call uses the token of its caller, whatever was
// asked before him, and that ours is never sent.
func TestPassThrough(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		h := private(api)
		c := clientOf(t, h, Options{PassThrough: true, AccessToken: ours})
		// One whose token is bad comes first: what he learns about the
		// server must not hang on him.
		if _, err := c.Labels(search.WithToken(t.Context(), "mallory")); !errors.Is(err, errkind.Unauthorized) ||
			!strings.Contains(err.Error(), "X-Fess-Token") || strings.Contains(err.Error(), "mallory") {
			t.Errorf("%s: Labels() with a bad token = %v, want kind Unauthorized naming X-Fess-Token", api, err)
		}
		var callers sync.WaitGroup
		for token, label := range map[string]string{"ann": "finance", "bob": "hr"} {
			for range 5 {
				callers.Go(func() { checkCaller(t, c, token, label) })
			}
		}
		callers.Wait()
		for _, r := range h.Requests() {
			switch got := r.Header.Get("Authorization"); got {
			case "Bearer ann", "Bearer bob", "Bearer mallory":
			default:
				t.Errorf("%s: request for %s came with %q, want a caller's token", api, r.Path, got)
			}
		}
	}
}

// checkCaller checks that a caller sees the documents of his label alone.
func checkCaller(t *testing.T, c *Client, token, label string) {
	ctx := search.WithToken(t.Context(), token)
	p, err := c.Search(ctx, search.Query{Num: 100})
	if err != nil || len(p.Hits) == 0 {
		t.Errorf("Search() of %s = %+v, %v, want documents", token, p, err)
		return
	}
	for _, h := range p.Hits {
		if !strings.HasPrefix(h.ID, label) {
			t.Errorf("Search() of %s found %s, want documents of %s alone", token, h.ID, label)
		}
	}
	for _, other := range []string{"finance0", "hr0"} {
		_, err := c.StoredCopy(ctx, other, nil)
		if mine := strings.HasPrefix(other, label); mine != (err == nil) || !mine && !errors.Is(err, errkind.NotFound) {
			t.Errorf("StoredCopy(%s) of %s = %v", other, token, err)
		}
	}
}

// TestBadToken checks a token of the configuration that Fess refuses.
func TestBadToken(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		h := private(api)
		for _, engine := range []string{"green", "down"} {
			h.SetEngine(engine)
			c := clientOf(t, h, Options{AccessToken: "expired"})
			for name, call := range calls {
				err := call(t.Context(), c)
				refused := errors.Is(err, errkind.Unauthorized) && errkind.ReasonOf(err) == TokenReason
				if want := engine == "green" && name != "Health"; refused != want {
					t.Errorf("%s: %s() with a bad token, engine %s = %v, want a refusal of the token: %v", api, name,
						engine, err, want)
				}
				if err != nil && strings.Contains(err.Error(), "expired") {
					t.Errorf("%s: %s() gives the token away: %v", api, name, err)
				}
			}
		}
	}
}

// TestStoredCopy checks both ways to a copy.
func TestStoredCopy(t *testing.T) {
	docs := []document.Document{{ID: "kept", Label: "finance", Title: "Kept", URL: "https://a.example/kept?a=1&b=2",
		Text: "kept"},
		{ID: "plain", Label: "finance", Title: "Plain", URL: "file:///plain", Text: "plain"},
		{ID: "blank", Label: "finance", Title: "Blank", URL: "file:///blank", Text: "blank"}}
	const html = "<html><head><meta charset=Shift_JIS></head><body>\n<div>\n</div>\n<p>日本語</p></body></html>"
	for _, api := range []string{"v1", "v2", "both"} {
		h := fesstest.NewHandler(docs, fesstest.Options{ContextPath: "/fess", API: api,
			More: map[string]fesstest.More{"kept": {Copy: html}, "blank": {Copy: " \n"}}})
		c := clientOf(t, h, Options{})
		got, err := c.StoredCopy(t.Context(), "kept", []string{"finance"})
		if err != nil || string(got.Data) != html || got.DocID != "kept" || got.URL != docs[0].URL ||
			got.MediaType != "text/html; charset=utf-8" {
			t.Errorf("%s: StoredCopy(kept) = %+v, %v, want the page", api, got, err)
		}
		for _, id := range []string{"plain", "blank"} {
			if got, err := c.StoredCopy(t.Context(), id, nil); !errors.Is(err, errkind.Unsupported) {
				t.Errorf("%s: StoredCopy(%s) = %+v, %v, want kind Unsupported", api, id, got, err)
			}
		}
		h.Forget()
		for id, labels := range map[string][]string{"kept": {"hr"}, "nosuch": nil, "../labels": nil, "plain": {}} {
			if got, err := c.StoredCopy(t.Context(), id, labels); !errors.Is(err, errkind.NotFound) {
				t.Errorf("%s: StoredCopy(%s, %v) = %+v, %v, want kind NotFound", api, id, labels, got, err)
			}
		}
		if got := asked(h); strings.Contains(got, "cache") {
			t.Errorf("%s: copies outside the labels were asked for: %s", api, got)
		}
	}
}

// TestStoredCopyHostile checks answers that are no copies.
func TestStoredCopyHostile(t *testing.T) {
	const row = `{"doc_id":"a","url":"u","has_cache":"true"}`
	v1Row := `{"record_count":1,"query_time":5,"data":[` + row + `]}`
	v2Row := `{"response":{"status":0,"record_count":1,"query_time":5,"data":[` + row + `]}}`
	tests := []struct {
		name, api         string
		status            int
		contentType, body string
		kind              error
	}{
		{"page of its own", "v1", 200, "text/html", "<html>Log in</html>", errkind.Unsupported},
		{"no page", "v1", 200, "application/json", "{}", errkind.Unsupported},
		{"login", "v1", 302, "", "", errkind.Unsupported},
		{"outage", "v1", 503, "text/html", "<html>", errkind.Unavailable},
		{"rates", "v1", 429, "application/json", "{}", errkind.Busy},
		{"too large", "v1", 200, "text/html", strings.Repeat("x", 1<<17), errkind.Unavailable},
		{"another document", "v2", 200, "application/json",
			`{"response":{"status":0,"doc_id":"b","content":"<!DOCTYPE html>"}}`, errkind.Unsupported},
		{"no frame", "v2", 200, "application/json", `{"response":{"status":0,"doc_id":"a","content":"<html>x</html>"}}`,
			errkind.Unsupported},
		{"unknown", "v2", 404, "application/json", `{"response":{"status":1,"error":{"code":"not_found"}}}`,
			errkind.Unsupported},
		{"login wanted", "v2", 401, "application/json", `{"response":{"status":1,"error":{"code":"auth_required"}}}`,
			errkind.Unauthorized},
		{"page", "v2", 200, "text/html", "<html>", errkind.Unsupported},
		{"broken", "v2", 200, "application/json", `{"response":`, errkind.Unavailable},
		{"too large", "v2", 200, "application/json", strings.Repeat(" ", 1<<17), errkind.Unavailable},
	}
	for _, test := range tests {
		c := clientOf(t, copyServer{v1Row, v2Row, page(test.status, test.contentType, test.body)},
			Options{API: test.api, MaxBody: 1 << 16})
		if got, err := c.StoredCopy(t.Context(), "a", nil); !errors.Is(err, test.kind) {
			t.Errorf("%s, %s: StoredCopy() = %+v, %v, want kind %v", test.api, test.name, got, err, test.kind)
		}
	}
}

// A copyServer finds one document and answers otherwise with what a test says.
type copyServer struct {
	v1, v2 string
	copies http.Handler
}

func (s copyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, paths[documentsCall][v1]):
		page(200, "application/json", s.v1).ServeHTTP(w, r)
	case strings.HasSuffix(r.URL.Path, paths[documentsCall][v2]):
		page(200, "application/json", s.v2).ServeHTTP(w, r)
	default:
		s.copies.ServeHTTP(w, r)
	}
}
