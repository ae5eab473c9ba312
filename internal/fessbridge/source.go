package fessbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// SourceOptions configures a [Source].
type SourceOptions struct {
	Config  *fessconfig.Config
	Label   string // of all documents; Fess is asked for the label of the configuration
	Version string // of the program
	Log     *slog.Logger
}

// A Source is the domain of a configuration as a search service with one label.
// Create one with [NewSource]. It implements [search.Service].
//
// A document has another ID than in Fess, which the source knows as long as the
// document is one of the last 100,000 that it found. ReadText also returns texts that
// Fess does not send, if the configuration permits to read the copy that Fess stored or
// the document at its URL. With the tokens of callers, every call asks Fess with that of
// its caller, also for a text that is cached.
type Source struct {
	config   *fessconfig.Config
	label    string
	name     string // for people
	domain   *domain
	ids      *ids
	inFlight chan struct{} // one element for each call
}

var (
	_ search.Service  = (*Source)(nil)
	_ search.Outliner = (*Source)(nil)
)

// NewSource returns a source. It does not ask Fess.
func NewSource(o SourceOptions) (*Source, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d, err := openDomain(o.Config, o.Version, o.Log)
	if err != nil {
		return nil, err
	}
	return &Source{
		config:   o.Config,
		label:    o.Label,
		name:     cmp.Or(o.Config.Domain.Name, o.Label),
		domain:   d,
		ids:      newIDs(maxIDs),
		inFlight: make(chan struct{}, max(o.Config.Limits.MaxInFlightRequests, 1)),
	}, nil
}

// Close closes the connections.
func (s *Source) Close() { s.domain.close() }

// within returns the labels for a call to Fess: those of the domain, or none, which
// no document has, if labels (nil: any) do not contain that of the source.
func (s *Source) within(labels []string) []string {
	if labels == nil || slices.Contains(labels, s.label) {
		return s.domain.labels
	}
	return []string{}
}

// do makes a call. It waits while too many are in progress.
func (s *Source) do(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.inFlight <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.inFlight }()
	return s.config.Explain(call())
}

// Search implements [search.Service].
func (s *Source) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(s.FacetFields()); err != nil {
		return nil, err
	}
	asked := q
	asked.Labels = s.within(q.Labels)
	text, ok, err := s.resolve(q.Text)
	if err != nil {
		return nil, err
	}
	if asked.Text = text; !ok {
		asked.Labels = []string{}
	}
	facets, err := s.facets(q.Facets)
	if err != nil {
		return nil, err
	}
	asked.Facets = facets.asked
	var page *search.Page
	err = s.do(ctx, func() (err error) {
		if words := question(asked); words != nil {
			page, err = s.answers(ctx, asked, words)
		} else {
			page, err = s.pages(ctx, asked)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range page.Hits {
		s.adopt(&page.Hits[i])
	}
	if q.Facets != nil {
		page.Facets = facets.answer(page)
	}
	return page, nil
}

// question returns the words that count of a question, or of other words of which some
// are enough, by relevance. Otherwise it returns nil.
func question(q search.Query) []string {
	byRelevance := len(q.Sort) == 0 || q.Sort[0] == (search.SortKey{Field: "score", Desc: true})
	if !byRelevance || !q.Text.SomeSuffice() || len(q.Text.Options()) > 0 {
		return nil
	}
	words, _ := query.Divide(q.Text.Words())
	return analysis.Significant(words, nil)
}

// answers searches for documents with some words: those with all of them come first, in
// the order of Fess, then the others. Fess itself finds the documents with all words of a
// query. For most questions, there are none, or one that is about something else.
func (s *Source) answers(ctx context.Context, q search.Query, words []string) (*search.Page, error) {
	start, num := q.Start, q.Num
	q.Start, q.Num = 0, start+num
	some := q
	some.Text = q.Text.AnyOf(words)
	page, err := s.pages(ctx, some)
	if err != nil {
		return nil, err
	}
	q.Facets = nil
	if q.Text, err = q.Text.AllOf(words); err != nil {
		return nil, err
	}
	all, err := s.pages(ctx, q)
	switch {
	case ctx.Err() != nil: // only their order is missing
		page.Hits = page.Hits[min(start, len(page.Hits)):]
		return page, nil
	case err != nil:
		return nil, err
	}
	page.Staged, page.AllWords = true, all.Total
	hits := all.Hits
	for _, h := range page.Hits {
		if !slices.ContainsFunc(all.Hits, func(a search.Hit) bool { return a.ID == h.ID }) {
			hits = append(hits, h)
		}
	}
	page.Hits = hits[min(start, len(hits)):min(start+num, len(hits))]
	return page, nil
}

// resolve returns a text without conditions on labels, and with the IDs of Fess; see
// [query.Text.WithLabel]. It looks for them in what package fess sends of the text: where
// that normalizes white space and removes operators, a word may become a condition.
func (s *Source) resolve(t query.Text) (query.Text, bool, error) {
	theirs := func(id string) string {
		id, _ = s.ids.get(id)
		return id
	}
	switch {
	case strings.TrimSpace(t.String()) == "":
		return t, true, nil
	case t.Kind() == query.Words:
		return t.WithLabel(s.label, theirs)
	}
	guarded, err := query.Guard(t.String())
	if err != nil {
		return t, false, err
	}
	sent, err := query.Parse(guarded.Q)
	if err != nil {
		return t, false, err
	}
	resolved, ok, err := sent.WithLabel(s.label, theirs)
	if ok && resolved.Equal(sent) {
		return t, true, nil
	}
	return resolved, ok, err
}

// pages searches with pages of the size that the configuration permits.
func (s *Source) pages(ctx context.Context, q search.Query) (*search.Page, error) {
	num := q.Num
	q.Num = min(num, s.config.Limits.MaxPageSize)
	page, err := s.domain.client.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	q.Facets = nil
	for full := len(page.Hits) == q.Num; full && len(page.Hits) < num; {
		q.Start += q.Num
		q.Num = min(num-len(page.Hits), s.config.Limits.MaxPageSize)
		more, err := s.domain.client.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		full = len(more.Hits) == q.Num
		page.Hits = append(page.Hits, more.Hits...)
	}
	return page, nil
}

// adopt makes a hit of Fess one of the source.
func (s *Source) adopt(h *search.Hit) {
	if text := s.domain.content.Cached(h.ID); h.TextHash == "" && text != nil && text.IsOf(h) {
		h.TextHash = text.Hash
	}
	id := document.IDOf(s.label, h.ID)
	s.ids.put(id, h.ID)
	h.ID, h.Labels, h.Extra = id, []string{s.label}, nil
	h.Path = pathOf(h.URL)
}

// pathOf returns the path of the document with an address: what follows the scheme.
func pathOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	return strings.TrimLeft(rest, "/")
}

// Sections implements [search.Outliner]. Fess knows no sections.
func (s *Source) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	_, err := s.Find(ctx, id, labels)
	return nil, err
}

// maxPlaces is how many documents with one path are found.
const maxPlaces = 10

// Locate implements [search.Outliner].
func (s *Source) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	if path == "" || strings.HasPrefix(path, "/") {
		return nil, nil
	}
	var addresses []string
	for _, start := range []string{"https://", "http://", "file:///", "file:/", "smb://", "ftp://"} {
		addresses = append(addresses, "url:"+query.Quote(start+path))
	}
	text, err := query.Parse(strings.Join(addresses, " OR "))
	if err != nil {
		return nil, nil // no address is so long
	}
	page, err := s.Search(ctx, search.Query{Text: text, Labels: labels, Num: maxPlaces})
	if err != nil {
		return nil, err
	}
	var places []search.Place
	for _, h := range page.Hits {
		if h.Path == path {
			places = append(places, search.Place{ID: h.ID, Label: s.label})
		}
	}
	return places, nil
}

// Find implements [search.Service].
func (s *Source) Find(ctx context.Context, id string, labels []string) (h *search.Hit, err error) {
	err = s.document(ctx, id, func(fess string) error {
		h, err = s.domain.client.Find(ctx, fess, s.within(labels))
		return err
	})
	if err != nil {
		return nil, err
	}
	s.adopt(h)
	return h, nil
}

// ReadText implements [search.Service]. If Fess does not send the text and it must not
// be read elsewhere, the error is of kind Denied.
func (s *Source) ReadText(
	ctx context.Context, id string, labels []string, off int64, n int,
) (t *search.Text, err error) {
	if off < 0 {
		return nil, &errkind.Argument{Name: "offset", Value: off, Want: "an integer from 0"}
	}
	err = s.document(ctx, id, func(fess string) error {
		h, body, ok, err := s.domain.client.FindText(ctx, fess, s.within(labels))
		if err != nil {
			return err
		}
		hash := h.TextHash
		if !ok {
			text := s.domain.content.Current(h)
			if text == nil {
				if text, err = s.domain.content.Read(ctx, h, func(float64, float64, string) {}); err != nil {
					return err
				}
			}
			body, hash = text.Body, text.Hash
		}
		t = search.WindowOf(body, off, n)
		t.DocID, t.URL, t.Hash = id, h.URL, hash
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// document calls read with the ID that a document has in Fess. Its error is the same
// for a document that the source does not know and one that Fess does not have or show.
func (s *Source) document(ctx context.Context, id string, read func(fess string) error) error {
	missing := fmt.Errorf("document %.32q: search again, because ids may change when documents are crawled again: %w",
		id, errkind.NotFound)
	return s.do(ctx, func() error {
		fess, ok := s.ids.get(id)
		if !ok {
			return missing
		}
		err := read(fess)
		if _, remote := errors.AsType[*errkind.Remote](err); !remote && errors.Is(err, errkind.NotFound) {
			return missing
		}
		return err
	})
}

// Suggest implements [search.Service].
func (s *Source) Suggest(ctx context.Context, q search.SuggestQuery) (found []search.Suggestion, err error) {
	q.Labels = s.within(q.Labels)
	err = s.do(ctx, func() error {
		found, err = s.domain.client.Suggest(ctx, q)
		return err
	})
	for i := range found {
		found[i].Labels = []string{s.label}
	}
	return found, err
}

// PopularWords implements [search.Service].
func (s *Source) PopularWords(ctx context.Context, q search.WordsQuery) (words []string, err error) {
	q.Labels = s.within(q.Labels)
	err = s.do(ctx, func() error {
		words, err = s.domain.client.PopularWords(ctx, q)
		return err
	})
	return words, err
}

// Labels implements [search.Service].
func (s *Source) Labels(ctx context.Context) ([]search.Label, error) {
	return []search.Label{{Name: s.name, Value: s.label}}, ctx.Err()
}

// Health implements [search.Service].
func (s *Source) Health(ctx context.Context) (h search.Health, err error) {
	err = s.do(ctx, func() error {
		h, err = s.domain.client.Health(ctx)
		return err
	})
	return h, err
}

// FacetFields implements [search.Service].
func (s *Source) FacetFields() []string { return s.domain.client.FacetFields() }

// facets are the facets of a query for the source. What depends on labels is not
// counted by Fess.
type facets struct {
	label  string
	wanted *search.Facets
	asked  *search.Facets // of Fess
	met    []int          // for each query, its place in asked.Queries, or all or none
}

// Places of queries that all documents meet, or none.
const (
	all  = -1
	none = -2
)

// facets returns the facets to ask Fess for.
func (s *Source) facets(wanted *search.Facets) (facets, error) {
	f := facets{label: s.label, wanted: wanted}
	if wanted == nil {
		return f, nil
	}
	asked := *wanted
	asked.Fields = slices.DeleteFunc(slices.Clone(wanted.Fields), func(name string) bool { return name == "label" })
	asked.Queries = nil
	for _, q := range wanted.Queries {
		text, err := query.Parse(q)
		if err != nil {
			return f, err
		}
		text, ok, err := s.resolve(text)
		switch {
		case err != nil:
			return f, err
		case !ok:
			f.met = append(f.met, none)
		case text.Kind() == query.Everything:
			f.met = append(f.met, all)
		default:
			f.met = append(f.met, len(asked.Queries))
			asked.Queries = append(asked.Queries, text.String())
		}
	}
	f.asked = &asked
	return f, nil
}

// answer returns the counts of a page for the wanted facets.
func (f facets) answer(page *search.Page) *search.FacetCounts {
	counts := &search.FacetCounts{}
	fields := page.Facets.Fields
	for i, name := range f.wanted.Fields {
		switch {
		case slices.Contains(f.wanted.Fields[:i], name):
		case name == "label":
			own := search.FieldCounts{Name: name, Counts: []search.Count{}}
			if page.Total >= max(f.wanted.MinDocCount, 1) {
				own.Counts = append(own.Counts, search.Count{Value: f.label, Count: page.Total})
			}
			counts.Fields = append(counts.Fields, own)
		default:
			counts.Fields, fields = append(counts.Fields, fields[0]), fields[1:]
		}
	}
	for i, text := range f.wanted.Queries {
		c := search.Count{Value: text}
		switch at := f.met[i]; at {
		case all:
			c.Count = page.Total
		case none:
		default:
			c.Count = page.Facets.Queries[at].Count
		}
		counts.Queries = append(counts.Queries, c)
	}
	return counts
}
