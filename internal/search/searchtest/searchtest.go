// Package searchtest contains contract tests for package search. Every
// implementation runs them in one of its tests, with a service that contains
// exactly the documents of [Corpus].
//
// The suite checks only the common properties of a Fess server and the embedded
// index: which documents are found, but not their order by relevance. The words of
// the corpus differ so much that Fess's automatic fuzzy matching finds no more than
// an exact search.
package searchtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Options describe an implementation and its differences.
type Options struct {
	// Open returns a service that contains exactly docs, for the duration of the
	// test. Every document has Label, Path, ID, URL, Title, Text and Chunks
	// set. docs may be empty.
	Open func(t *testing.T, docs []document.Document) search.Service

	NoText     bool // the service has no texts: ReadText is Unsupported and TextHash is ""
	NoPassages bool // the service has no passages

	NoTags bool // the service has no tags and must refuse to search for them

	// Served returns a document of the corpus as the service has it, if it gives
	// documents other IDs, labels or facts; nil means that it does not. A document
	// without Modified has no time.
	Served func(document.Document) document.Document

	Label     string // the only label of the service, which it has without documents, too; "" if there may be several
	NoWritten bool   // the service has no documents that users wrote
}

// Run runs the whole contract.
func Run(t *testing.T, o Options) {
	docs := Corpus()
	s := suite{o: o, docs: docs, svc: o.Open(t, slices.Clone(docs))}
	if o.Served != nil {
		for i, d := range docs {
			s.docs[i] = o.Served(d)
		}
	}
	cases := []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"words", (*suite).words},
		{"labels", (*suite).labels},
		{"isolation", (*suite).isolation},
		{"tags", (*suite).tags},
		{"japanese", (*suite).japanese},
		{"questions", (*suite).questions},
		{"filters", (*suite).filters},
		{"hits", (*suite).hits},
		{"passages", (*suite).passages},
		{"sort", (*suite).sort},
		{"paging", (*suite).paging},
		{"facets", (*suite).facets},
		{"facet conditions", (*suite).facetConditions},
		{"find", (*suite).find},
		{"read text", (*suite).readText},
		{"locate", (*suite).locate},
		{"written", (*suite).written},
		{"suggest", (*suite).suggest},
		{"popular words", (*suite).popularWords},
		{"list labels", (*suite).listLabels},
		{"health", (*suite).health},
		{"cancelled", (*suite).cancelled},
		{"concurrent", (*suite).concurrent},
		{"empty service", (*suite).empty},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(&s, t) })
	}
}

// A suite is one service and its documents.
type suite struct {
	o    Options
	docs []document.Document
	svc  search.Service
}

// search runs q and fails the test on an error.
func (s *suite) search(t *testing.T, q search.Query) *search.Page {
	t.Helper()
	p, err := s.svc.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search(%+v) = %v, want a page", q, err)
	}
	if p == nil {
		t.Fatalf("Search(%+v) = nil, want a page", q)
	}
	return p
}

// names returns the places of all documents that a query finds, sorted.
func (s *suite) names(t *testing.T, text string, labels ...string) []string {
	t.Helper()
	q := search.Query{Text: query.MustParse(text), Num: 100}
	if len(labels) > 0 {
		q.Labels = labels
	}
	p := s.search(t, q)
	names := s.places(t, p.Hits)
	if p.Total != len(names) {
		t.Errorf("Search(%q, %v).Total = %d with %d hits, want them equal", text, labels, p.Total, len(names))
	}
	slices.Sort(names)
	return names
}

// places returns hits as "label/path".
func (s *suite) places(t *testing.T, hits []search.Hit) []string {
	t.Helper()
	names := []string{}
	for _, h := range hits {
		d := s.byID(h.ID)
		if d == nil {
			t.Errorf("hit %+v has an ID that no document has", h)
			continue
		}
		names = append(names, place(*d))
	}
	return names
}

// byID returns the document with that ID, or nil.
func (s *suite) byID(id string) *document.Document {
	i := slices.IndexFunc(s.docs, func(d document.Document) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &s.docs[i]
}

// want returns the sorted places of the documents that keep accepts.
func (s *suite) want(keep func(document.Document) bool) []string {
	names := []string{}
	for _, d := range s.docs {
		if keep(d) {
			names = append(names, place(d))
		}
	}
	slices.Sort(names)
	return names
}

// placeOf returns the place of a document of the corpus, by its place in the corpus.
func (s *suite) placeOf(inCorpus string) string {
	for i, d := range Corpus() {
		if place(d) == inCorpus {
			return place(s.docs[i])
		}
	}
	return ""
}

func place(d document.Document) string { return d.Label + "/" + d.Path }

// has reports whether a document's title or text contains all of the words.
func has(words ...string) func(document.Document) bool {
	return func(d document.Document) bool {
		for _, w := range words {
			if !strings.Contains(strings.ToLower(d.Title+"\n"+d.Text), w) {
				return false
			}
		}
		return true
	}
}

// inLabel narrows keep to one label.
func inLabel(label string, keep func(document.Document) bool) func(document.Document) bool {
	return func(d document.Document) bool { return d.Label == label && keep(d) }
}

// argument returns the name of the argument that err is about, or "".
func argument(err error) string {
	if a, ok := errors.AsType[*errkind.Argument](err); ok {
		return a.Name
	}
	return ""
}
