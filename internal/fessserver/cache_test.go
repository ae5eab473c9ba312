package fessserver_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A stub answers as its fields say.
type stub struct {
	err    error
	health search.Health
	page   search.Page
	hit    search.Hit
	text   *search.Text // nil: there is none
	words  []search.Suggestion
	labels []search.Label
}

func (s *stub) Search(context.Context, search.Query) (*search.Page, error) {
	p := s.page
	return &p, s.err
}

func (s *stub) Find(context.Context, string, []string) (*search.Hit, error) {
	h := s.hit
	return &h, s.err
}

func (s *stub) ReadText(context.Context, string, []string, int64, int) (*search.Text, error) {
	if s.text == nil {
		return nil, fmt.Errorf("no text: %w", errkind.Unsupported)
	}
	return s.text, s.err
}

func (s *stub) Suggest(context.Context, search.SuggestQuery) ([]search.Suggestion, error) {
	return s.words, s.err
}

func (s *stub) PopularWords(context.Context, search.WordsQuery) ([]string, error) {
	var words []string
	for _, w := range s.words {
		words = append(words, w.Text)
	}
	return words, s.err
}

func (s *stub) Labels(context.Context) ([]search.Label, error) { return s.labels, s.err }

func (s *stub) FacetFields() []string { return search.FacetFields[:] }

func (s *stub) Health(context.Context) (search.Health, error) { return s.health, s.err }

// pages returns a document's cached copy from both places.
func pages(t *testing.T, h http.Handler, id string) map[string]string {
	t.Helper()
	w := ask(t, h, http.MethodGet, "/cache/?docId="+id, nil)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html;charset=UTF-8" {
		t.Fatalf("GET /cache/?docId=%s = %d %s %q", id, w.Code, w.Header(), w.Body)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") ||
		!strings.Contains(policy, "default-src 'none'") {
		t.Errorf("GET /cache/ has the policy %q, want a sandbox that loads nothing", policy)
	}
	code, answer := get(t, h, "/api/v2/cache/"+id)
	inner, _ := answer["response"].(map[string]any)
	content, _ := inner["content"].(string)
	if code != http.StatusOK || inner["doc_id"] != id || inner["mimetype"] != "text/html" ||
		inner["charset"] != "UTF-8" {
		t.Fatalf("GET /api/v2/cache/%s = %d %v", id, code, answer)
	}
	return map[string]string{"/cache/": w.Body.String(), "/api/v2/cache/": content}
}

// TestCachedText checks that the whole text can be had of every document.
func TestCachedText(t *testing.T) {
	h := handler(t)
	for _, d := range corpus(t) {
		for path, page := range pages(t, h, d.ID) {
			_, rest, _ := strings.Cut(page, "<pre>\n")
			text, _, ok := strings.Cut(rest, "</pre>")
			if got := html.UnescapeString(text); !ok || got != d.Text {
				t.Errorf("%s%s contains %.100q, want %.100q", path, d.ID, got, d.Text)
			}
			if lines := strings.SplitN(page, "\n", 7); len(lines) < 7 || lines[5] != "</div>" ||
				!strings.HasPrefix(lines[2], `<base href="`) {
				t.Errorf("%s%s begins with %q, want Fess's head of six lines", path, d.ID, lines)
			}
		}
	}
	for _, id := range []string{"nosuch", "a%20b", "..", strings.Repeat("a", 200), "a%22b", ""} {
		if w := ask(t, h, http.MethodGet, "/api/v2/cache/"+id, nil); w.Code != http.StatusNotFound &&
			w.Code != http.StatusBadRequest {
			t.Errorf("GET /api/v2/cache/%.20s = %d, want 404 or 400", id, w.Code)
		}
		if w := ask(t, h, http.MethodGet, "/cache/?docId="+id, nil); w.Code != http.StatusNotFound {
			t.Errorf("GET /cache/?docId=%.20s = %d, want 404", id, w.Code)
		}
	}
}

// TestHostileDocument checks that a document gets no mark-up through.
func TestHostileDocument(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\n" +
		`<img src=x onerror=y></pre></title>&lt;b&gt;<strong>kept</strong><strong x>`
	s := &stub{
		hit:  search.Hit{ID: "x", Title: evil, URL: "http://x/" + evil, Filename: evil},
		text: &search.Text{Window: evil, Size: int64(len(evil))},
	}
	hit := s.hit
	hit.Digest, hit.TitleExcerpt = search.Excerpt{Text: evil, Matches: []search.Span{{Start: 2, End: 40}}},
		search.Excerpt{Text: evil}
	hit.Labels, hit.Langs, hit.Extra = []string{"secret"}, []string{"secret"},
		map[string]any{"url_link": evil, "content": "secret", "boost": "no"}
	s.page = search.Page{Total: 1, Hits: []search.Hit{hit}}
	h := fessserver.New(fessserver.Options{Backend: s})
	for path, page := range pages(t, h, "x") {
		for _, tag := range []string{"<script", "<img", "<b>", "<strong"} {
			if strings.Contains(page, tag) {
				t.Errorf("%s lets %s through: %q", path, tag, page)
			}
		}
		if lines := strings.SplitN(page, "\n", 7); lines[5] != "</div>" {
			t.Errorf("%s begins with %q, want Fess's head of six lines", path, lines)
		}
	}
	for _, target := range []string{"/api/v1/documents?q=a", "/api/v2/search?q=a"} {
		w := ask(t, h, http.MethodGet, target, nil)
		_, answer := get(t, h, target)
		if inner, ok := answer["response"].(map[string]any); ok {
			answer = inner
		}
		row := answer["data"].([]any)[0].(map[string]any)
		for _, name := range []string{"content_title", "content_description"} {
			marked := strings.NewReplacer("<strong>", "", "</strong>", "").Replace(row[name].(string))
			if strings.ContainsAny(marked, `<>"'`) {
				t.Errorf("GET %s: %s = %q, want no mark-up but <strong>", target, name, row[name])
			}
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("GET %s sends a field that Fess does not send: %s", target, w.Body)
		}
	}
}

// TestNoText checks a document of which there is no text, and one that is too
// long.
func TestNoText(t *testing.T) {
	s := &stub{hit: search.Hit{ID: "x", URL: "http://x/"}}
	h := fessserver.New(fessserver.Options{Backend: s})
	for path, page := range pages(t, h, "x") {
		if !strings.HasSuffix(page, "</div>\n</div>\n\n") {
			t.Errorf("%s without a text = %q, want the head alone", path, page)
		}
	}
	s.text = &search.Text{Size: 1 << 40}
	if code, _ := get(t, h, "/api/v2/cache/x"); code != http.StatusRequestEntityTooLarge {
		t.Errorf("GET /api/v2/cache/ of a text of a tebibyte = %d, want 413", code)
	}
	if w := ask(t, h, http.MethodGet, "/cache/?docId=x", nil); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("GET /cache/ of a text of a tebibyte = %d, want 413", w.Code)
	}
}
