// Package datasetsearch makes the datasets of a folder a search service with one label.
//
// A document is an original: the texts of a dataset that are chunks of the same text
// are one document; see [dataset.Set.Originals]. Words, the query language and meaning
// are evaluated as in the embedded index, by packages match and retrieval over the words
// and vectors of the datasets, so that the same query finds the same documents in both.
package datasetsearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"golang.org/x/sync/semaphore"
)

// searchTime is how long a search may take.
const searchTime = 5 * time.Second

// A Service searches all datasets of a folder that can be searched. A dataset that is
// bad is left out, and one that changes is searched in its old state until the new one
// is loaded. Its methods are safe for concurrent use.
//
// The paths of documents begin with the id of the dataset if there are several. A
// document has no language, time and tags of its own; passages are not made.
type Service struct {
	registry *dataset.Registry
	label    string
	log      *slog.Logger

	start     func(f func(ctx context.Context)) // runs f in the background; ctx ends with Close
	close     func()                            // waits for what was started
	computing *semaphore.Weighted               // vectors of queries

	mu      sync.Mutex
	catalog *catalog
	noted   map[string]bool // what was logged about vectors that cannot be used
}

var (
	_ search.Service  = (*Service)(nil)
	_ search.Outliner = (*Service)(nil)
)

// New returns a Service for the datasets of a registry, whose Options.Written must be
// set and whose folder someone else watches. All documents have the label. A nil log
// discards. Close must be called at the end.
func New(registry *dataset.Registry, label string, log *slog.Logger) *Service {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	return &Service{registry: registry, label: label, log: log, computing: semaphore.NewWeighted(maxComputing),
		start: func(f func(ctx context.Context)) { running.Go(func() { f(ctx) }) },
		close: func() { stop(); running.Wait() }, noted: map[string]bool{}}
}

// Close ends what runs in the background and waits for it. The Service must not be used
// any more.
func (s *Service) Close() { s.close() }

// note logs once why the vectors of a dataset are not used.
func (s *Service) note(id, why string) {
	s.mu.Lock()
	again := s.noted[id+why]
	s.noted[id+why] = true
	s.mu.Unlock()
	if !again {
		s.log.Warn("a dataset is searched by words only", "dataset", id, "reason", why)
	}
}

// has reports whether labels (nil: any) contain that of the service.
func (s *Service) has(labels []string) bool { return labels == nil || slices.Contains(labels, s.label) }

// searching calls f with an evaluator over the datasets that are loaded, or over none if
// labels do not contain that of the service.
func (s *Service) searching(
	ctx context.Context, labels []string, f func(ctx context.Context, e *evaluator) error,
) error {
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var c *catalog
	var err error
	if !s.has(labels) {
		c = newCatalog(nil)
	} else if c, err = s.current(limited); err != nil {
		return tooLong(ctx, err)
	}
	e := newEvaluator(s, c)
	defer e.search.End()
	if err := ctx.Err(); err != nil {
		return err
	}
	return tooLong(ctx, f(limited, e))
}

// tooLong returns the error of a search, that its time is over if ctx has not ended.
func tooLong(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("searching the datasets took longer than %v: use fewer words and wildcards: %w", searchTime,
			errkind.Timeout)
	}
	return err
}

// Search implements [search.Service].
func (s *Service) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of a dataset has a location: %w", errkind.Unsupported)
	}
	for _, tag := range q.Tags {
		if _, ok := document.TagLabel(tag); !ok {
			return nil, fmt.Errorf("the documents of a dataset have no tags: %w", errkind.Unsupported)
		}
	}
	q.Passages, q.Distinct = 0, false
	var page *search.Page
	err := s.searching(ctx, q.Labels, func(ctx context.Context, e *evaluator) error {
		var err error
		page, err = retrieval.Search(ctx, e, q, retrieval.Options{Languages: languages, Vector: e.vector,
			Wait: vectorWait, Log: s.log})
		return err
	})
	if err == nil && s.has(q.Labels) {
		err = s.addFailure(ctx, q.Text.Tree(), page)
	}
	return page, err
}

// addFailure adds to a page that some datasets cannot be searched whose documents could
// match a query. It returns an error if none of those in the folder can be searched, or if
// there is no folder.
func (s *Service) addFailure(ctx context.Context, q query.Node, page *search.Page) error {
	all, err := s.registry.List(ctx)
	if err != nil {
		return err
	}
	var bad []string
	for _, i := range all {
		if i.State.Failed() && !excludes(q, i.ID) {
			name := i.ID
			if slices.ContainsFunc(all, func(o dataset.Info) bool { return o.ID == i.ID && o.State == dataset.Ready }) {
				name = filepath.Base(filepath.Dir(i.ManifestPath)) // the ID is that of another dataset
			}
			bad = append(bad, spell.Quote(name))
		}
	}
	if len(all) == 0 {
		if _, err := os.Stat(s.registry.Dir()); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder of the datasets does not exist: %w", errkind.Unavailable)
		}
	}
	if bad == nil {
		return nil
	}
	subject, their, more := "datasets", "their", ""
	if len(bad) == 1 {
		subject, their = "dataset", "its"
	}
	if n := len(bad) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	err = fmt.Errorf(`the %s %s%s cannot be searched; the command "knowhow datasets check", with %s folder, tells why: %w`,
		subject, strings.Join(bad[:min(len(bad), maxNamed)], ", "), more, their, errkind.Corrupt)
	if len(bad) == len(all) {
		return err
	}
	page.Partial, page.Failed = true, []search.Failure{{Label: s.label, Err: err}}
	return nil
}

// maxNamed is how many datasets a message names.
const maxNamed = 5

// excludes reports whether a query is restricted to other datasets than that with an ID.
func excludes(q query.Node, id string) bool {
	switch n := q.(type) {
	case query.And:
		return slices.ContainsFunc(n.Nodes, func(n query.Node) bool { return excludes(n, id) })
	case query.Or:
		return !slices.ContainsFunc(n.Nodes, func(n query.Node) bool { return !excludes(n, id) })
	case query.Term, query.Phrase:
		field, text := query.FieldOf(n)
		return field == "segment" && text != id
	}
	return false
}

// document calls f with the document with an ID.
func (s *Service) document(
	ctx context.Context, id string, labels []string, f func(e *evaluator, t *table, doc int) error,
) error {
	return s.searching(ctx, labels, func(_ context.Context, e *evaluator) error {
		t, doc, ok := e.c.find(id)
		if !ok {
			return document.Missing(id)
		}
		return f(e, t, doc)
	})
}

// Find implements [search.Service]. The digest is the beginning of the text.
func (s *Service) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	var h *search.Hit
	err := s.document(ctx, id, labels, func(e *evaluator, t *table, doc int) error {
		hits, err := retrieval.Read(ctx, e, &retrieval.Request{},
			[]retrieval.Document{{Number: t.base + int64(doc), Chunk: -1, NearChunk: -1}})
		if err == nil {
			h = &hits[0]
		}
		return err
	})
	return h, err
}

// ReadText implements [search.Service].
func (s *Service) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	var out *search.Text
	err := s.document(ctx, id, labels, func(e *evaluator, t *table, doc int) error {
		x := e.c.texts.get(t, doc)
		_, where, _ := t.name(doc)
		out = search.WindowOf(x.text, off, n)
		out.DocID, out.URL, out.Hash = id, factsOf(where).url, x.hash
		return nil
	})
	return out, err
}

// Sections implements [search.Outliner]. The sections are those that the chunks of the
// document name.
func (s *Service) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	var out []document.Section
	err := s.document(ctx, id, labels, func(e *evaluator, t *table, doc int) error {
		out = slices.Clone(e.c.texts.get(t, doc).sections)
		return nil
	})
	return out, err
}

// Locate implements [search.Outliner].
func (s *Service) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	var out []search.Place
	err := s.searching(ctx, labels, func(_ context.Context, e *evaluator) error {
		for _, id := range e.c.locate(s.label, path) {
			out = append(out, search.Place{ID: id, Label: s.label})
		}
		return nil
	})
	return out, err
}

// Labels implements [search.Service].
func (s *Service) Labels(ctx context.Context) ([]search.Label, error) {
	return []search.Label{{Name: s.label, Value: s.label}}, ctx.Err()
}

// FacetFields implements [search.Service].
func (s *Service) FacetFields() []string { return slices.Clone(facetFields[:]) }

// Datasets returns the datasets of the folder as they are now, with those that cannot be
// searched.
func (s *Service) Datasets() []dataset.Info { return s.registry.Current() }

// Health implements [search.Service]. It is red if no dataset can be searched, and
// yellow if a dataset cannot.
func (s *Service) Health(ctx context.Context) (search.Health, error) {
	_, err := s.registry.Sets(ctx)
	if ctx.Err() != nil {
		return search.Health{}, context.Cause(ctx)
	}
	if err != nil { // the folder cannot be read
		return search.Health{Status: "red"}, nil
	}
	list, err := s.registry.List(ctx)
	if err != nil {
		return search.Health{}, err
	}
	ready, bad := 0, 0
	for _, i := range list {
		switch {
		case i.State == dataset.Ready:
			ready++
		case i.State.Failed():
			bad++
		}
	}
	h := search.Health{Status: "green"}
	switch {
	case ready == 0:
		h.Status = "red"
	case bad > 0:
		h.Status = "yellow"
	}
	return h, nil
}

// Limits of lists of words.
const (
	suggestPool  = 20  // words that are looked at for one suggestion
	popularWords = 10  // in a list
	popularPool  = 200 // words that the list is chosen from
)

// mostFrequent returns the first n of words, which it orders by their documents.
func mostFrequent(words []segment.Word, n int) []segment.Word {
	slices.SortFunc(words, func(a, b segment.Word) int {
		return cmp.Or(cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Text, b.Text))
	})
	return words[:min(len(words), n)]
}

// Suggest implements [search.Service]. The words of the most documents come first.
func (s *Service) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	prefix := strings.TrimSpace(analysis.Lower(q.Prefix))
	if prefix == "" || len(prefix) > 256 || q.Langs != nil {
		return nil, ctx.Err()
	}
	titleOnly := len(q.Fields) == 1 && q.Fields[0] == "title"
	var out []search.Suggestion
	err := s.searching(ctx, q.Labels, func(ctx context.Context, e *evaluator) error {
		var words []segment.Word
		most := q.Num * suggestPool
		err := e.c.words.WordsWith(ctx, prefix, func(w segment.Word) bool {
			if words = append(words, w); len(words) >= 2*most {
				words = mostFrequent(words, most)
			}
			return true
		})
		if err != nil {
			return err
		}
		words = mostFrequent(words, most)
		if titleOnly {
			for i := range words {
				docs, err := e.c.words.WordDocs(words[i].Text, true)
				if err != nil {
					return err
				}
				words[i].Docs = docs.Count()
			}
			words = slices.DeleteFunc(words, func(w segment.Word) bool { return w.Docs == 0 })
		}
		for _, w := range mostFrequent(words, q.Num) {
			out = append(out, search.Suggestion{Text: w.Text, Labels: []string{s.label}})
		}
		return nil
	})
	return out, err
}

// PopularWords implements [search.Service]. The words are those of the most documents;
// the seed picks among words that are about equal, which means the same power of two.
func (s *Service) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	out := []string{}
	err := s.searching(ctx, q.Labels, func(_ context.Context, e *evaluator) error {
		words := slices.Clone(e.c.popular())
		hash := func(w string) uint64 {
			h := fnv.New64a()
			h.Write([]byte(q.Seed + "\x00" + w)) // never fails
			return h.Sum64()
		}
		slices.SortFunc(words, func(a, b segment.Word) int {
			return cmp.Or(cmp.Compare(bits.Len(uint(b.Docs)), bits.Len(uint(a.Docs))),
				cmp.Compare(hash(a.Text), hash(b.Text)), strings.Compare(a.Text, b.Text))
		})
		for _, w := range words[:min(len(words), popularWords)] {
			out = append(out, w.Text)
		}
		return nil
	})
	return out, err
}

// frequentWords returns the words of the most documents, except function words, numbers
// and words in more than half of the documents.
func (c *catalog) frequentWords() []segment.Word {
	docs := 0
	for _, t := range c.tables {
		docs += t.set.Originals()
	}
	var words []segment.Word
	// An error means that the words are damaged, and then there are fewer.
	_ = c.words.WordsWith(context.Background(), "", func(w segment.Word) bool {
		r, _ := utf8.DecodeRuneInString(w.Text)
		short := utf8.RuneCountInString(w.Text) < 3 && !analysis.IsCJK(r)
		if short || analysis.FunctionWord(w.Text, languages) || !unicode.IsLetter(r) || docs >= 20 && 2*w.Docs > docs {
			return true
		}
		if words = append(words, w); len(words) >= 10*popularPool {
			words = mostFrequent(words, popularPool)
		}
		return true
	})
	return mostFrequent(words, popularPool)
}
