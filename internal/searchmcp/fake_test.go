package searchmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// finance is the domain of most tests.
var finance = Domain{ID: "finance", Name: "Finance", Description: "Budgets and reports", Label: "finance_docs"}

// A fakeDoc is a document of a fakeBackend.
type fakeDoc struct {
	id, label, title, text string
	facts                  search.Hit // the other fields
	noText                 bool
	address                string // "" is one made of label and id
}

// A call is one call that a fakeBackend got.
type call struct {
	method string
	labels []string
}

// fakeBackend is a search service in memory: it finds documents whose text has
// all the words, newest first, and records what it was asked.
type fakeBackend struct {
	docs  []fakeDoc // newest first
	err   error     // of every call, if set
	page  *search.Page
	total int  // in place of the real total, if set
	lower bool // the total is a lower bound
	busy  bool // indexing continues

	unfinished []search.Unfinished
	embedded   int // of 5 passages
	labels     []search.Label
	words      []string
	terms      []search.Suggestion
	health     search.Health
	facets     []search.FieldCounts          // of every search for facets
	places     map[string][]search.Place     // by path
	parts      map[string][]document.Section // by document

	mu      sync.Mutex
	calls   []call
	query   search.Query // the last one
	suggest search.SuggestQuery
	popular search.WordsQuery
}

func (f *fakeBackend) called(method string, labels []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call{method, labels})
	return f.err
}

func (f *fakeBackend) Search(_ context.Context, q search.Query) (*search.Page, error) {
	if err := f.called("Search", q.Labels); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.query = q
	f.mu.Unlock()
	if f.page != nil {
		return f.page, nil
	}
	var hits []search.Hit
	for _, d := range f.docs {
		if visible(d, q.Labels) && hasWords(d, q.Text.String()) {
			hits = append(hits, d.hit())
		}
	}
	p := &search.Page{Total: max(len(hits), f.total), AtLeast: f.lower}
	if q.Facets != nil {
		p.Facets = &search.FacetCounts{Fields: f.facets}
	}
	p.Hits = hits[min(q.Start, len(hits)):min(q.Start+q.Num, len(hits))]
	return p, nil
}

func (f *fakeBackend) Find(_ context.Context, id string, labels []string) (*search.Hit, error) {
	if err := f.called("Find", labels); err != nil {
		return nil, err
	}
	d, err := f.doc(id, labels)
	if err != nil {
		return nil, err
	}
	h := d.hit()
	return &h, nil
}

func (f *fakeBackend) ReadText(_ context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	if err := f.called("ReadText", labels); err != nil {
		return nil, err
	}
	d, err := f.doc(id, labels)
	if err != nil {
		return nil, err
	}
	if d.noText {
		return nil, fmt.Errorf("%w: the index gives no text of document %s", errkind.Unsupported, id)
	}
	for off < int64(len(d.text)) && !utf8.RuneStart(d.text[off]) {
		off++
	}
	rest := d.text[min(off, int64(len(d.text))):]
	if len(rest) > n {
		for !utf8.RuneStart(rest[n]) {
			n--
		}
		rest = rest[:n]
	}
	return &search.Text{DocID: id, URL: d.url(), Hash: textHash(d.text), Size: int64(len(d.text)), Offset: off,
		Window: rest}, nil
}

func (f *fakeBackend) Suggest(_ context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	f.suggest = q
	return f.terms, f.called("Suggest", q.Labels)
}

func (f *fakeBackend) PopularWords(_ context.Context, q search.WordsQuery) ([]string, error) {
	f.popular = q
	return f.words, f.called("PopularWords", q.Labels)
}

func (f *fakeBackend) Labels(context.Context) ([]search.Label, error) {
	return f.labels, f.called("Labels", nil)
}

func (f *fakeBackend) FacetFields() []string { return search.FacetFields[:] }

func (f *fakeBackend) Health(context.Context) (search.Health, error) {
	return f.health, f.called("Health", nil)
}

// folderBackend is a fakeBackend whose documents have paths and sections.
type folderBackend struct{ *fakeBackend }

func (f folderBackend) Sections(_ context.Context, id string, labels []string) ([]document.Section, error) {
	if err := f.called("Sections", labels); err != nil {
		return nil, err
	}
	_, err := f.doc(id, labels)
	return f.parts[id], err
}

func (f folderBackend) Locate(_ context.Context, path string, labels []string) ([]search.Place, error) {
	return f.places[path], f.called("Locate", labels)
}

// indexingBackend is a fakeBackend that indexes as well.
type indexingBackend struct{ *fakeBackend }

func (f indexingBackend) Indexing(context.Context, []string) (done, total int, busy bool) {
	return 3, 40, f.busy
}

func (f indexingBackend) Unfinished(_ context.Context, labels []string) ([]search.Unfinished, error) {
	return f.unfinished, nil
}

func (f indexingBackend) Embedding(context.Context, []string) (done, total int, err error) {
	return f.embedded, 5, nil
}

func (f *fakeBackend) doc(id string, labels []string) (fakeDoc, error) {
	for _, d := range f.docs {
		if d.id == id && visible(d, labels) {
			return d, nil
		}
	}
	return fakeDoc{}, fmt.Errorf("looking %s up: %w", id, errkind.NotFound)
}

func visible(d fakeDoc, labels []string) bool {
	return labels == nil || slices.Contains(labels, d.label)
}

func hasWords(d fakeDoc, text string) bool {
	for _, w := range strings.Fields(strings.ToLower(text)) {
		if !strings.Contains(strings.ToLower(d.title+" "+d.text), w) {
			return false
		}
	}
	return true
}

func (d fakeDoc) url() string {
	if d.address != "" {
		return d.address
	}
	return "https://docs.example.com/" + d.label + "/" + d.id + ".html"
}

func (d fakeDoc) hit() search.Hit {
	h := d.facts
	h.ID, h.Title, h.URL, h.Digest.Text, h.Score = d.id, d.title, d.url(), d.text, 1.5
	if !d.noText {
		h.TextHash = textHash(d.text)
	}
	return h
}

func textHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(h[:])
}

// corpus is three documents of finance and one of another label.
func corpus() *fakeBackend {
	facts := func(day int) search.Hit {
		return search.Hit{Timestamp: time.Date(2025, 11, day, 8, 0, 0, 0, time.UTC),
			Created:  time.Date(2025, 11, day, 9, 0, 0, 0, time.UTC),
			FileType: "html", MIMEType: "text/html", Size: 2048, Host: "docs.example.com"}
	}
	return &fakeBackend{
		docs: []fakeDoc{
			{id: "d3", label: "finance_docs", title: "Budget 2026", text: "The test budget for 2026 <draft> & plan.",
				facts: facts(3)},
			{id: "d2", label: "finance_docs", title: "Quarterly report",
				text: "A test of the quarterly figures.\n\nThey are good.", facts: facts(2)},
			{id: "d1", label: "finance_docs", title: "Travel policy", text: "Trips must be booked early.",
				facts: facts(1), noText: true},
			{id: "x1", label: "hr", title: "Secret test", text: "Salaries test", facts: facts(4)},
		},
		labels: []search.Label{{Name: "Finance", Value: "finance_docs"}, {Name: "HR", Value: "hr"}},
		words:  []string{"budget", "report"},
		terms:  []search.Suggestion{{Text: "foo report", Labels: []string{"finance_docs"}}, {Text: "football"}},
		health: search.Health{Status: "red", TimedOut: true},
	}
}
