package searchmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// manyDocs is a backend with n documents of the domain and as many others.
func manyDocs(n int) *fakeBackend {
	f := &fakeBackend{}
	for i := range n {
		f.docs = append(f.docs,
			fakeDoc{id: fmt.Sprintf("d%d", i), label: "finance_docs", title: fmt.Sprintf("Document %d", i),
				text: "text"},
			fakeDoc{id: fmt.Sprintf("x%d", i), label: "hr", title: "Secret", text: "text"})
	}
	return f
}

// listAll pages through resources/list and returns the sizes of the pages, the
// URIs and the _meta of the last page.
func listAll(t *testing.T, b *Tools) (sizes []int, uris []string, meta map[string]any) {
	t.Helper()
	for at := ""; ; {
		page, err := b.ListResources(context.Background(), at)
		if err != nil {
			t.Fatalf("ListResources(%q): %v", at, err)
		}
		sizes = append(sizes, len(page.Resources))
		for _, r := range page.Resources {
			uris = append(uris, r.URI)
		}
		if page.NextCursor == "" {
			return sizes, uris, page.Meta
		}
		if page.Meta != nil {
			t.Errorf("page %d has _meta %v, want it on the last page only", len(sizes), page.Meta)
		}
		at = page.NextCursor
	}
}

// TestResourceListingPagination is AT-RES-001.
func TestResourceListingPagination(t *testing.T) {
	for _, tt := range []struct {
		docs, pageSize int
		want           []int
	}{
		{0, 10, []int{0}},
		{5, 10, []int{5}},
		{10, 10, []int{10}},
		{25, 10, []int{10, 10, 5}},
		{120, 0, []int{100, 20}},
	} {
		b := New(Options{Domain: finance, Backend: manyDocs(tt.docs), MaxPageSize: tt.pageSize})
		sizes, uris, meta := listAll(t, b)
		if diff := cmp.Diff(tt.want, sizes); diff != "" {
			t.Errorf("%d documents, pages of %d: sizes (-want +got):\n%s", tt.docs, tt.pageSize, diff)
		}
		for i, uri := range uris {
			if want := fmt.Sprintf("fess://finance/doc/d%d", i); uri != want {
				t.Fatalf("resource %d = %s, want %s", i, uri, want)
			}
		}
		if meta != nil {
			t.Errorf("_meta = %v, want none", meta)
		}
	}
}

// Fess shows no more than 10,000 documents, and a page never asks beyond them.
func TestResourceListingEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		total int
		lower bool
		want  any
	}{
		{"more than can be shown", 12_345, false, truncated{Shown: 10_000, Total: 12_345}},
		{"at least as many as can be shown", 10_000, true, truncated{Shown: 10_000, Total: 10_000, AtLeast: true}},
		{"exactly as many", 10_000, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := New(Options{Domain: finance, Backend: windowed{docs: 10_005, total: tt.total, lower: tt.lower},
				MaxPageSize: 70})
			sizes, uris, meta := listAll(t, b)
			if len(uris) != search.Window || sizes[len(sizes)-1] != search.Window%70 {
				t.Errorf("listed %d documents, %d on the last page, want %d and %d", len(uris), sizes[len(sizes)-1],
					search.Window, search.Window%70)
			}
			if got := meta["truncated"]; !cmp.Equal(tt.want, got) {
				t.Errorf("_meta.truncated = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// windowed is a backend with the given number of documents of the domain,
// claims another total, and refuses to page beyond 10,000 as Fess does.
type windowed struct {
	*fakeBackend
	docs, total int
	lower       bool
}

func (w windowed) Search(_ context.Context, q search.Query) (*search.Page, error) {
	if q.Start+q.Num > search.Window {
		return nil, fmt.Errorf("%w: page beyond the window", errkind.Invalid)
	}
	p := &search.Page{Total: w.total, AtLeast: w.lower}
	for i := q.Start; i < min(q.Start+q.Num, w.docs); i++ {
		p.Hits = append(p.Hits, search.Hit{ID: fmt.Sprintf("d%d", i)})
	}
	return p, nil
}

// A service that stops giving hits ends the list, whatever total it claims.
func TestResourceListingStops(t *testing.T) {
	b := New(Options{Domain: finance, Backend: windowed{docs: 15, total: 1000, lower: true}, MaxPageSize: 10})
	if sizes, _, _ := listAll(t, b); !cmp.Equal([]int{10, 5, 0}, sizes) {
		t.Errorf("page sizes = %v, want 10, 5 and 0", sizes)
	}
}

func TestResourceEntry(t *testing.T) {
	f := corpus()
	f.docs = append(f.docs, fakeDoc{id: "odd", label: "finance_docs", title: "\u200b \x00",
		text: strings.Repeat("long ", 500)})
	b := New(Options{Domain: finance, Backend: f})
	page, err := b.ListResources(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if want := []search.SortKey{{Field: "timestamp", Desc: true}}; !cmp.Equal(want, f.query.Sort) ||
		f.query.Text.Kind() != query.Everything {
		t.Errorf("query = %+v, want every document sorted by %+v", f.query, want)
	}
	for _, r := range page.Resources {
		id := strings.TrimPrefix(r.URI, "fess://finance/doc/")
		if r.Meta["doc_id"] != id || r.Meta["url"] == "" || !strings.HasPrefix(r.Meta["hash"].(string), "sha256:") {
			t.Errorf("%s: _meta = %v", r.URI, r.Meta)
		}
		if r.Name == "" || r.Name != r.Title || r.MIMEType != "application/json" {
			t.Errorf("%s: name %q, title %q, mimeType %q", r.URI, r.Name, r.Title, r.MIMEType)
		}
		if !strings.HasSuffix(r.Description, "\n\n"+finance.Block(OfFess)) || len(r.Description) > 400 {
			t.Errorf("%s: description = %q, want a short digest and the block", r.URI, r.Description)
		}
	}
	hashOf := map[string]any{}
	for _, r := range page.Resources {
		hashOf[r.Name] = r.Meta["hashOf"]
	}
	want := map[string]any{"Budget 2026": "content", "Quarterly report": "content", "Travel policy": "summary",
		"odd": "content"}
	if diff := cmp.Diff(want, hashOf); diff != "" {
		t.Errorf("name and hashOf (-want +got):\n%s", diff)
	}
}

// TestReadDocumentMetadata is AT-RES-003.
func TestReadDocumentMetadata(t *testing.T) {
	b := New(Options{Domain: finance, Backend: corpus()})
	for _, id := range []string{"d3", "d1"} {
		c, err := b.ReadResource(context.Background(), "fess://finance/doc/"+id, "")
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(c.Text), &got); err != nil {
			t.Fatalf("text %q: %v", c.Text, err)
		}
		for _, key := range []string{"title", "url", "digest", "doc_id", "timestamp", "created", "hash", "hashOf"} {
			if got[key] == "" || got[key] == nil {
				t.Errorf("%s: %s is missing in %s", id, key, c.Text)
			}
		}
		for _, key := range []string{"doc_id", "url", "hash", "hashOf"} {
			if c.Meta[key] != got[key] {
				t.Errorf("%s: _meta.%s = %v, want %v", id, key, c.Meta[key], got[key])
			}
		}
		if c.MIMEType != "application/json" || c.URI != "fess://finance/doc/"+id || !c.IsLast {
			t.Errorf("%s: contents = %+v", id, c)
		}
	}
}

// The hash of a summary stays while its five facts do, however found.
func TestSummaryHash(t *testing.T) {
	base := search.Hit{ID: "d1", Title: "T", URL: "u", Digest: search.Excerpt{Text: "d"}, Score: 1,
		Timestamp: time.Unix(1_760_000_000, 0)}
	sum, of := New(Options{}).hash(&base)
	if of != "summary" || !strings.HasPrefix(sum, "sha256:") || len(sum) != len("sha256:")+64 {
		t.Errorf("hash = %s of %s", sum, of)
	}
	same := base
	same.Score, same.Host, same.Digest.Matches = 0, "h", []search.Span{{Start: 0, End: 1}}
	if got, _ := New(Options{}).hash(&same); got != sum {
		t.Errorf("hash with other facts = %s, want %s", got, sum)
	}
	for name, change := range map[string]func(*search.Hit){
		"title":     func(h *search.Hit) { h.Title = "T2" },
		"url":       func(h *search.Hit) { h.URL = "u2" },
		"digest":    func(h *search.Hit) { h.Digest.Text = "d2" },
		"doc_id":    func(h *search.Hit) { h.ID = "d2" },
		"timestamp": func(h *search.Hit) { h.Timestamp = time.Time{} },
		"moved":     func(h *search.Hit) { h.Title, h.URL = "Tu", "" },
	} {
		h := base
		change(&h)
		if got, _ := New(Options{}).hash(&h); got == sum {
			t.Errorf("hash after a change of %s is the same", name)
		}
	}
}

func TestReadContentResource(t *testing.T) {
	b := New(Options{Domain: finance, Backend: withText(longText(3000)), MaxChunkBytes: 1024})
	first, err := b.ReadResource(context.Background(), "fess://finance/doc/d1/content", "")
	if err != nil {
		t.Fatal(err)
	}
	if first.IsLast || first.NextCursor == "" || first.MIMEType != "text/plain" ||
		first.URI != "fess://finance/doc/d1/content" ||
		first.Meta["hashOf"] != "content" {
		t.Errorf("first chunk = %+v", first)
	}
	second, err := b.ReadResource(context.Background(), "fess://finance/doc/d1/content", first.NextCursor)
	if err != nil {
		t.Fatal(err)
	}
	if second.Text == "" || !strings.HasPrefix(longText(3000), first.Text+second.Text) {
		t.Errorf("second chunk = %q, want the text after the first", second.Text)
	}
}

func TestReadResourceErrors(t *testing.T) {
	f := corpus()
	b := New(Options{Domain: finance, Backend: f})
	list := cursor{kind: listCursor, scope: "finance/finance_docs", offset: 1}.String()
	for _, tt := range []struct {
		uri, cursor string
		kind        error
		contains    string
	}{
		{"fess://hr/doc/x1", "", errkind.NotFound, "fess://finance/doc/"},
		{"fess://finance/doc/x1", "", errkind.NotFound, `document "x1" in domain finance; search again`},
		{"fess://finance/doc/nope/content", "", errkind.NotFound, `document "nope"`},
		{"fess://finance/doc/d3", "AAAA", errkind.Invalid, `"cursor"`},
		{"fess://finance/doc/d3/content", list, errkind.Invalid, `"cursor"`},
		{"fess://finance/doc/d1/content", "", errkind.Unsupported, "d1"},
	} {
		c, err := b.ReadResource(context.Background(), tt.uri, tt.cursor)
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.contains) {
			t.Errorf("ReadResource(%s, %q) = %+v, %v, want %v with %q", tt.uri, tt.cursor, c, err, tt.kind, tt.contains)
		}
	}
}

func TestListResourcesCursorRefused(t *testing.T) {
	b := New(Options{Domain: finance, Backend: corpus()})
	for name, at := range map[string]string{
		"garbage":      "next",
		"other domain": cursor{kind: listCursor, scope: "hr/hr", offset: 1}.String(),
		"of a text":    cursor{kind: textCursor, scope: "finance/finance_docs", offset: 1}.String(),
		"beyond":       cursor{kind: listCursor, scope: "finance/finance_docs", offset: search.Window}.String(),
	} {
		var arg *errkind.Argument
		if l, err := b.ListResources(context.Background(), at); !errors.As(err, &arg) || arg.Name != "cursor" {
			t.Errorf("ListResources with a cursor that is %s = %+v, %v, want an error about argument cursor", name, l,
				err)
		}
	}
}
