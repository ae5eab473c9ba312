package index_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// guide returns a document with a chunk for each section: a heading and filler
// sentences, and one sentence of its own.
func guide(label, path string, sentences ...string) document.Document {
	d := doc(label, path, "Guide "+path, "")
	for i, s := range sentences {
		heading := fmt.Sprintf("Part %d", i+1)
		text := heading + "\n\n" + strings.Repeat("This sentence is a filler about nothing at all. ", 8) + s + " " +
			strings.Repeat("More of the same follows here without an end. ", 8) + "\n\n"
		d.Chunks = append(d.Chunks, document.Chunk{Offset: len(d.Text), Length: len(text), Heading: "Guide > " +
			heading})
		d.Text += text
	}
	return d
}

func passagesOf(t *testing.T, x *index.Index, text string, chars int) []search.Hit {
	t.Helper()
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 8, Passages: chars})
	if err != nil {
		t.Fatalf("Search(%q) = %v", text, err)
	}
	return p.Hits
}

// A passage has the page on which it begins. The pages of a document are
// replaced with it.
func TestPassagePages(t *testing.T) {
	x := open(t, t.TempDir())
	d := guide("a", "a.pdf", "One walrus.", strings.Repeat("Two seals swim. ", 10),
		strings.Repeat("Three whales sing. ", 10))
	d.Pages = []document.Page{{Offset: 0, Label: "iv"}, {Offset: d.Chunks[1].Offset, Label: "1"},
		{Offset: d.Chunks[2].Offset + 40, Label: "2"}}
	put(t, x, d, guide("a", "b.md", "A pageless narwhal."))
	check := func(query string, want ...string) {
		t.Helper()
		var got []string
		for _, h := range passagesOf(t, x, query, 6000) {
			for _, p := range h.Passages {
				got = append(got, p.Page)
			}
		}
		if len(got) == 0 || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: pages %q, want %q", query, got, want)
		}
	}
	check("walrus", "iv")
	check("seals", "1")
	check("whales", "1") // most of the passage is on page 2
	check("narwhal", "")
	if got, err := x.Pages(t.Context(), d.ID); err != nil || !slices.Equal(got, d.Pages) {
		t.Errorf("Pages(%s) = %v, %v", d.ID, got, err)
	}
	if _, err := x.Pages(t.Context(), "none"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Pages(none) = %v", err)
	}
	d.Pages = d.Pages[:1]
	put(t, x, d)
	check("seals", "iv")
}

// The short passage of a document that answers little has a page, too.
func TestPassagePagesOfShortOnes(t *testing.T) {
	x := open(t, t.TempDir())
	var docs []document.Document
	for i := range 9 {
		d := guide("a", fmt.Sprint(i, ".pdf"), "Nobody signs.")
		d.Pages = []document.Page{{Label: "7"}}
		docs = append(docs, d)
	}
	put(t, x, append(docs, guide("a", "best.md", "The walrus signs the treaty of the north."))...)
	pages := map[string]string{}
	for _, h := range passagesOf(t, x, "walrus signs treaty", 6000) {
		for _, p := range h.Passages {
			pages[h.Path] += p.Page
			if n := utf8.RuneCountInString(p.Text); h.Path != "best.md" && n > 300 {
				t.Errorf("the passage of %s has %d characters, want a short one", h.Path, n)
			}
		}
	}
	if want := map[string]string{"best.md": "", "0.pdf": "7"}; !maps.Equal(pages, want) { // the others repeat its text
		t.Errorf("pages %v, want %v", pages, want)
	}
}

// Without words the passages are the beginnings of the texts.
func TestPassagesOfAll(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, guide("a", "one.md", "A walrus alone."), doc("a", "empty.md", "Empty", ""))
	for _, q := range []string{"", "*", "filetype:txt"} {
		for _, h := range passagesOf(t, x, q, 6000) {
			if h.Path == "empty.md" {
				if h.Passages != nil {
					t.Errorf("%q: passages of a document without text: %v", q, h.Passages)
				}
			} else if len(h.Passages) != 1 || h.Passages[0].Offset != 0 {
				t.Errorf("%q: passages %v, want the beginning", q, h.Passages)
			}
		}
	}
}

// The passages of a restricted search come from its labels alone.
func TestPassagesStayInTheirLabels(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, guide("a", "a.md", "The walrus of a."), guide("b", "b.md", "The walrus of b."))
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("walrus"), Labels: []string{"a"}, Num: 8,
		Passages: 6000})
	if err != nil || len(p.Hits) != 1 || len(p.Hits[0].Passages) != 1 ||
		!strings.Contains(p.Hits[0].Passages[0].Text, "walrus of a") {
		t.Errorf("Search = %+v, %v", p, err)
	}
}

// The sections of a document are replaced and removed with it.
func TestSections(t *testing.T) {
	x := open(t, t.TempDir())
	d := guide("a", "a.md", "One.", "Two.")
	d.SourcePath = d.Path
	d.Sections = []document.Section{{Heading: "Part 1"}, {Offset: d.Chunks[1].Offset, Heading: "Part 1 > Part 2"}}
	put(t, x, d, guide("b", "b.md", "No sections."))
	want := []document.Section{{Heading: "Part 1"}, {Heading: "Part 1 > Part 2", Offset: d.Chunks[1].Offset}}
	if got, err := x.Sections(t.Context(), d.ID, []string{"a"}); err != nil || !slices.Equal(got, want) {
		t.Errorf("Sections = %v, %v, want %v", got, err, want)
	}
	if got, err := x.Sections(t.Context(), d.ID, []string{"b"}); err == nil {
		t.Errorf("Sections in another label = %v, want an error", got)
	}
	for _, labels := range [][]string{nil, {"a"}} {
		if got, err := x.Locate(t.Context(), "a.md", labels); err != nil ||
			!slices.Equal(got, []search.Place{{ID: d.ID, Label: "a"}}) {
			t.Errorf("Locate(%v) = %v, %v", labels, got, err)
		}
	}
	if got, err := x.Locate(t.Context(), "a.md", []string{"b"}); err != nil || got != nil {
		t.Errorf("Locate in another label = %v, %v", got, err)
	}
	d.Sections = d.Sections[:1]
	put(t, x, d)
	if got, err := x.Sections(t.Context(), d.ID, nil); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("Sections after a change = %v, %v", got, err)
	}
}

// A passage that repeats the text of another document's, or has a score far below
// the best one, is left out; its document has a short digest.
func TestPassagesWorthTheirTokens(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, guide("a", "best.md", "The walrus signs the treaty of the north."),
		guide("a", "same.md", "The walrus signs the treaty of the north."),
		guide("a", "far.md", "Nobody signs."))
	for i := range 20 {
		put(t, x, guide("b", fmt.Sprint(i, ".md"), "Nobody signs."))
	}
	texts := map[string]bool{}
	for _, h := range passagesOf(t, x, "walrus signs treaty", 100_000) {
		for _, p := range h.Passages {
			if texts[p.Text] {
				t.Errorf("%s repeats the passage %q", h.Path, p.Text)
			}
			texts[p.Text] = true
			if n := utf8.RuneCountInString(p.Text); !strings.Contains(p.Text, "walrus") &&
				(n > 300 || len(h.Passages) > 1) {
				t.Errorf("%s has %d passages, one of %d characters, which answers little: %q", h.Path,
					len(h.Passages), n, p.Text)
			}
		}
		if n := utf8.RuneCountInString(h.Digest.Text); len(h.Passages) == 0 && (n == 0 || n > 122) { // with ellipses
			t.Errorf("%s has a digest of %d characters, want 1 to 122: %q", h.Path, n, h.Digest.Text)
		}
	}
	if len(texts) < 2 {
		t.Errorf("%d passages, want one for each text", len(texts))
	}
}
