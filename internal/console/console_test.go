package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"

	"github.com/google/go-cmp/cmp"
)

// serve returns the response of a guarded console to a request.
func serve(t *testing.T, token string, status func(context.Context) (Status, error), method, target string,
	header ...string) *httptest.ResponseRecorder {
	t.Helper()
	refuse := func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
		http.Error(w, "refused: "+f.Message, f.Status)
	}
	page, data, events := Routes(Options{Status: status, Refuse: refuse})
	s := httpguard.New(httpguard.Options{Token: token, Refuse: refuse, Routes: []httpguard.Route{page, data, events}})
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const html = "text/html,application/xhtml+xml"

// A browser without a token gets the page, with the status 401. Everything else
// is refused as on other routes.
func TestPage(t *testing.T) {
	for _, tc := range []struct {
		name, token, method, target string
		header                      []string
		status                      int
		body                        string // or "page"
	}{
		{"browser", "", "GET", "/", []string{"Accept", html}, 200, "page"},
		{"program", "", "GET", "/", nil, 200, "page"},
		{"browser without token", "s3cret", "GET", "/", []string{"Accept", html}, 401, "page"},
		{"HEAD without token", "s3cret", "HEAD", "/", []string{"Accept", html}, 401, "page"},
		{"browser with wrong token", "s3cret", "GET", "/", []string{"Accept", html, "Authorization", "Bearer x"}, 401,
			"page"},
		{"token", "s3cret", "GET", "/", []string{"Authorization", "Bearer s3cret"}, 200, "page"},
		{"program without token", "s3cret", "GET", "/", []string{"Accept", "*/*"}, 401,
			"refused: a token is required, and this request has none or a wrong one"},
		{"form without token", "s3cret", "POST", "/", []string{"Accept", html}, 401,
			"refused: a token is required, and this request has none or a wrong one"},
		{"foreign page", "", "GET", "/", []string{"Accept", html, "Origin", "https://evil.example"}, 403,
			"refused: requests from this web origin are not allowed"},
		{"link of another site", "", "GET", "/", []string{"Accept", html, "Sec-Fetch-Site", "cross-site"}, 403,
			"refused: a page of another site sent this request without an Origin header, type the address or send the request from a program"},
		{"POST", "", "POST", "/", nil, 405, "refused: this method is not allowed here, use GET or HEAD"},
		{"status without token", "s3cret", "GET", "/console/status", []string{"Accept", html}, 401,
			"refused: a token is required, and this request has none or a wrong one"},
		{"DELETE of the status", "", "DELETE", "/console/status", nil, 405,
			"refused: this method is not allowed here, use GET or HEAD"},
	} {
		w := serve(t, tc.token, nil, tc.method, tc.target, tc.header...)
		got := strings.TrimSpace(w.Body.String())
		if got == strings.TrimSpace(string(thePage().plain)) {
			got = "page"
		}
		if w.Code != tc.status || got != tc.body {
			t.Errorf("%s: got %d %.100q, want %d %q", tc.name, w.Code, got, tc.status, tc.body)
		}
		h := w.Header()
		if (w.Code == 401) != (h.Get("WWW-Authenticate") == "Bearer") ||
			(w.Code == 405) != (h.Get("Allow") == "GET, HEAD") {
			t.Errorf("%s: WWW-Authenticate is %q, Allow is %q", tc.name, h.Get("WWW-Authenticate"), h.Get("Allow"))
		}
		if tc.body == "page" && (h.Get("Content-Security-Policy") != thePage().policy ||
			h.Get("Content-Type") != "text/html; charset=utf-8") {
			t.Errorf("%s: the headers are %v", tc.name, h)
		}
	}
}

func TestHeaders(t *testing.T) {
	h := serve(t, "", nil, "GET", "/").Header()
	h.Del("Content-Length") // follows the page, as the tag does
	h.Set("ETag", regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(h.Get("ETag"), "HASH"))
	// The hashes follow the page; a browser refuses a script with another one.
	h.Set("Content-Security-Policy", regexp.MustCompile(`sha256-[A-Za-z0-9+/]{43}=`).ReplaceAllString(h.Get("Content-Security-Policy"), "HASH"))
	want := http.Header{
		"Cache-Control": {"no-cache"},
		"Etag":          {`W/"HASH"`},
		"Vary":          {"Accept-Encoding"},
		"Content-Security-Policy": {"default-src 'none'; script-src 'HASH'; style-src 'HASH'; img-src data:; connect-src 'self'; base-uri 'none'; " +
			"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
		"Content-Type":                 {"text/html; charset=utf-8"},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"},
		"X-Content-Type-Options":       {"nosniff"},
		"X-Frame-Options":              {"DENY"},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headers of the page (-want +got):\n%s", diff)
	}
}

// The policy allows one script and one style. The page loads nothing else, and its own
// scripts never read text as HTML or as code.
func TestPageText(t *testing.T) {
	page := string(thePage().plain)
	for _, tag := range []string{"<script", "</script", "<style", "</style"} {
		if n := strings.Count(strings.ToLower(page), tag); n != 1 {
			t.Errorf("the page has %d %s, want 1", n, tag)
		}
	}
	forbidden := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b|new Function|` +
		`\bstyle=|\son[a-z]+=["']|javascript:|\bsrc=|href="[^#d]|@import|:\s*url\(|localStorage|cookie`)
	inVendored := regexp.MustCompile(`\beval\(|new Function|document\.write|localStorage|cookie|sourceMappingURL|\bfetch\(|XMLHttpRequest`)
	web := os.DirFS("web")
	err := fs.WalkDir(web, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		read, err := fs.ReadFile(web, name)
		text := read
		bad := forbidden
		if strings.Contains(name, "vendor/") {
			bad = inVendored
		} else if path.Ext(name) == ".js" {
			text = bytes.ReplaceAll(text, []byte("javascript: '"), nil) // a name of a member, not an address
		}
		if found := bad.FindAllString(string(text), -1); found != nil {
			t.Errorf("%s contains %q", name, found)
		}
		if path.Ext(name) == ".js" && strings.Count(page, string(read)) != 1 {
			t.Errorf("the page does not contain %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// All scripts have one scope, so a name is declared once: of two functions with the same
// name, the later one would be called everywhere.
func TestScriptNames(t *testing.T) {
	declared := map[string]string{}
	name := regexp.MustCompile(`(?m)^(?:async )?(?:const|let|var|function|class) (\w+)`)
	files, err := filepath.Glob("web/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if other := declared[m[1]]; other != "" {
				t.Errorf("%s is declared in %s and in %s", m[1], other, file)
			}
			declared[m[1]] = file
		}
	}
}

// The page is sent compressed to clients that accept it, and not again to those that
// have it.
func TestPageSent(t *testing.T) {
	p := thePage()
	if len(p.compressed) > 150_000 {
		t.Errorf("the page has %d bytes compressed, want at most 150,000", len(p.compressed))
	}
	for _, tc := range []struct {
		name   string
		method string
		header []string
		status int
		coding string
		length int
	}{
		{"plain", "GET", nil, 200, "", len(p.plain)},
		{"gzip", "GET", []string{"Accept-Encoding", "br;q=1.0, gzip;q=0.8"}, 200, "gzip", len(p.compressed)},
		{"gzip refused", "GET", []string{"Accept-Encoding", "gzip; q=0.0"}, 200, "", len(p.plain)},
		{"same", "GET", []string{"If-None-Match", `"x", W/` + p.etag}, 304, "", 0},
		{"other", "GET", []string{"If-None-Match", `"x"`}, 200, "", len(p.plain)},
	} {
		w := serve(t, "", nil, tc.method, "/", tc.header...)
		if w.Code != tc.status || w.Header().Get("Content-Encoding") != tc.coding || w.Body.Len() != tc.length {
			t.Errorf("%s: got %d %q with %d bytes, want %d %q with %d", tc.name, w.Code,
				w.Header().Get("Content-Encoding"), w.Body.Len(), tc.status, tc.coding, tc.length)
		}
		if tc.coding == "gzip" && tc.length > 0 {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, p.plain) {
				t.Errorf("%s: another text, %v", tc.name, err)
			}
		}
	}
	if got := serve(t, "s3cret", nil, "GET", "/", "Accept", html).Header(); got.Get("Cache-Control") != "no-store" ||
		got.Get("ETag") != "" {
		t.Errorf("the page without a token has the headers %v", got)
	}
}

func TestStatus(t *testing.T) {
	w := serve(t, "s3cret", func(context.Context) (Status, error) {
		indexed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		return Status{Version: "1", User: User{Name: "ann", Write: Labels{Some: []string{"memory"}}}, Tools: []string{"search"},
			MaxUpload: 100, Endpoints: []Endpoint{{Path: "/mcp", Domain: "docs"}}, Sources: []Source{{
				Label: "docs", Path: "/docs", Kind: Folder, Documents: 2, TextBytes: 10, Watched: true,
				Indexed: &indexed, Indexing: &Progress{Done: 1, Total: 3}, Errors: 4,
				LeftOut: map[string]int{"</script>": 1},
			}}}, nil
	}, "GET", "/console/status", "Authorization", "Bearer s3cret")
	want := `{"version":"1","user":{"name":"ann","admin":false,"write":["memory"]},"tools":["search"],"maxUpload":100,` +
		`"endpoints":[{"path":"/mcp","domain":"docs"}],"sources":[{"label":"docs","path":"/docs","kind":"folder","documents":2,"textBytes":10,` +
		`"indexed":"2026-01-02T03:04:05Z","watched":true,"indexing":{"done":1,"total":3},"errors":4,"leftOut":{"\u003c/script\u003e":1}}]}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("the status is %d %s, want %s", w.Code, w.Body, want)
	}
	wantHeader := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"application/json"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"}, "X-Content-Type-Options": {"nosniff"}}
	if diff := cmp.Diff(wantHeader, w.Header()); diff != "" {
		t.Errorf("headers of the status (-want +got):\n%s", diff)
	}
}

// An error of the index is logged and not sent.
func TestStatusError(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		body   string
	}{
		{errors.New("disk /secret is gone"), 500, "refused: the index cannot be read, see the log of knowhow"},
		{fmt.Errorf("secret.example: %w", errkind.Unavailable), 503,
			"refused: the store of the documents does not answer, try again later or see the log of knowhow"},
	} {
		w := serve(t, "", func(context.Context) (Status, error) { return Status{}, tc.err }, "GET",
			"/console/status")
		if got := strings.TrimSpace(w.Body.String()); w.Code != tc.status || got != tc.body {
			t.Errorf("the response is %d %s, want %d %s", w.Code, got, tc.status, tc.body)
		}
	}
}

func TestLabels(t *testing.T) {
	for want, l := range map[string]Labels{"true": {All: true, Some: []string{"*"}}, "false": {}, "[]": {Some: []string{}}, `["a","b"]`: {Some: []string{"a", "b"}}} {
		if got, err := json.Marshal(l); err != nil || string(got) != want {
			t.Errorf("Labels %v = %s, %v, want %s", l, got, err, want)
		}
	}
}
