// Package scope restricts a search service to some of its labels.
//
// A [Scope] does not give access to documents without its labels: every call
// contains these labels, whatever labels the caller requests. Command serve
// uses a Scope for all of its endpoints, so that a process serves exactly the
// sources that were requested.
package scope

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Service can be restricted. Package index implements it.
type Service interface {
	search.Service
	search.Indexer
	search.Outliner
}

// A Scope is a service that contains only the documents with one of some
// labels, and those that users wrote in some collections. Its methods are safe
// for concurrent use. Health and FacetFields are those of the whole service.
type Scope struct {
	service Service
	labels  []string // never nil
	notes   []Notes
}

// Notes is a source of what users wrote: notes and uploads. Its documents have its
// label instead of those of their collections, unless these are labels of the scope.
type Notes struct {
	Label string

	// Collections returns the labels of the collections, which may change.
	Collections func(context.Context) ([]string, error)
}

// New returns the part of a service with one of the labels. Without labels it
// contains no documents.
func New(s Service, labels ...string) *Scope { return WithNotes(s, labels, nil) }

// WithNotes returns the part of a service with one of the labels or in one of the
// notes.
func WithNotes(s Service, labels []string, notes []Notes) *Scope {
	return &Scope{service: s, labels: append([]string{}, labels...), notes: notes}
}

// A part is what a call selects of the documents of a scope.
type part struct {
	labels  []string          // of which all documents are selected; never nil, which would mean any label
	written []string          // of which only the documents are selected that users wrote
	notes   map[string]string // label of the notes by each of written
}

// part returns what a call selects: what is requested and belongs to the scope, or all
// of the scope if labels is nil.
func (s *Scope) part(ctx context.Context, labels []string) (part, error) {
	p := part{labels: s.whole(labels), notes: map[string]string{}}
	for _, n := range s.notes {
		if labels != nil && !slices.Contains(labels, n.Label) {
			continue
		}
		collections, err := n.Collections(ctx)
		if err != nil {
			return p, err
		}
		for _, c := range collections {
			if !slices.Contains(p.labels, c) && p.notes[c] == "" {
				p.written = append(p.written, c)
				p.notes[c] = n.Label
			}
		}
	}
	return p, nil
}

// all returns the labels of all documents that are selected, never nil.
func (p part) all() []string { return append(append([]string{}, p.labels...), p.written...) }

// contains reports whether a document is selected. Its label must be one of all.
func (p part) contains(h *search.Hit) bool {
	return h.Written || !slices.ContainsFunc(h.Labels, func(l string) bool { return p.notes[l] != "" })
}

// named replaces the labels of collections by those of the notes. Each label is
// returned once.
func (p part) named(labels []string) []string {
	if len(p.notes) == 0 {
		return labels
	}
	var out []string
	for _, l := range labels {
		if l = cmp.Or(p.notes[l], l); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// only returns those of the labels that belong to the scope. The result is
// never nil.
func (s *Scope) only(labels []string) []string {
	out := []string{}
	for _, l := range labels {
		if slices.Contains(s.labels, l) {
			out = append(out, l)
		}
	}
	return out
}

// Search implements [search.Service].
func (s *Scope) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	p, err := s.part(ctx, q.Labels)
	if err != nil {
		return nil, err
	}
	q.Labels, q.Written = p.all(), append(p.written, q.Written...)
	if len(p.notes) == 0 {
		return s.service.Search(ctx, q)
	}
	typed := q.Facets
	if q, err = s.ofCollections(q, p); err != nil {
		return nil, err
	}
	page, err := s.service.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	if page.Facets != nil {
		for i := range page.Facets.Queries {
			page.Facets.Queries[i].Value = typed.Queries[i]
		}
	}
	for i := range page.Hits {
		page.Hits[i].Labels = p.named(page.Hits[i].Labels)
	}
	if page.Facets != nil {
		for i := range page.Facets.Fields {
			if f := &page.Facets.Fields[i]; f.Name == "label" {
				p.nameCounts(f)
			}
		}
	}
	return page, nil
}

// ofCollections returns a query with conditions on the labels of collections in place of
// those on the labels of notes.
func (s *Scope) ofCollections(q search.Query, p part) (search.Query, error) {
	replaced := func(text query.Text) (_ query.Text, ok bool, err error) {
		ok = true
		for _, n := range s.notes {
			var of []string
			for _, c := range p.written {
				if p.notes[c] == n.Label {
					of = append(of, c)
				}
			}
			if text, ok, err = text.WithLabels(n.Label, of); err != nil || !ok {
				break
			}
		}
		return text, ok, err
	}
	text, ok, err := replaced(q.Text)
	if err != nil {
		return q, err
	}
	if q.Text = text; !ok {
		q.Text, q.Labels, q.Written = query.Text{}, []string{}, nil
	}
	if q.Facets == nil {
		return q, nil
	}
	f := *q.Facets
	f.Queries = slices.Clone(f.Queries)
	for i, typed := range f.Queries {
		if text, err := query.Parse(typed); err == nil { // the service reports an error
			if text, ok, err := replaced(text); err == nil && ok {
				f.Queries[i] = text.String()
			}
		}
	}
	q.Facets = &f
	return q, nil
}

// Find implements [search.Service].
func (s *Scope) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	p, err := s.part(ctx, labels)
	if err != nil {
		return nil, err
	}
	h, err := s.service.Find(ctx, id, p.all())
	switch {
	case err != nil:
		return nil, err
	case !p.contains(h):
		return nil, document.Missing(id)
	}
	h.Labels = p.named(h.Labels)
	return h, nil
}

// found returns the labels under which a document can be looked up, or the error of
// Find.
func (s *Scope) found(ctx context.Context, id string, labels []string) ([]string, error) {
	p, err := s.part(ctx, labels)
	if err == nil && len(p.notes) > 0 {
		_, err = s.Find(ctx, id, labels)
	}
	return p.all(), err
}

// ReadText implements [search.Service].
func (s *Scope) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	labels, err := s.found(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	return s.service.ReadText(ctx, id, labels, off, n)
}

// Sections implements [search.Outliner].
func (s *Scope) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	labels, err := s.found(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	return s.service.Sections(ctx, id, labels)
}

// Locate implements [search.Outliner].
func (s *Scope) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	p, err := s.part(ctx, labels)
	if err != nil {
		return nil, err
	}
	places, err := s.service.Locate(ctx, path, p.all())
	if err != nil {
		return nil, err
	}
	out := places[:0]
	for _, place := range places {
		if notes := p.notes[place.Label]; notes != "" {
			h, err := s.service.Find(ctx, place.ID, p.all())
			if errors.Is(err, errkind.NotFound) || err == nil && !p.contains(h) {
				continue
			} else if err != nil {
				return nil, err
			}
			place.Label = notes
		}
		out = append(out, place)
	}
	return out, nil
}

// Suggest implements [search.Service].
func (s *Scope) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	q.Labels = s.whole(q.Labels)
	found, err := s.service.Suggest(ctx, q)
	for i := range found {
		found[i].Labels = s.only(found[i].Labels)
	}
	return found, err
}

// PopularWords implements [search.Service].
func (s *Scope) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	q.Labels = s.whole(q.Labels)
	return s.service.PopularWords(ctx, q)
}

// Labels implements [search.Service]. It returns the labels of the scope that
// exist in the service, and those of the notes.
func (s *Scope) Labels(ctx context.Context) ([]search.Label, error) {
	all, err := s.service.Labels(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(l search.Label) bool { return !slices.Contains(s.labels, l.Value) })
	for _, n := range s.notes {
		all = append(all, search.Label{Name: n.Label, Value: n.Label})
	}
	return all, nil
}

// Health implements [search.Service].
func (s *Scope) Health(ctx context.Context) (search.Health, error) { return s.service.Health(ctx) }

// Indexing implements [search.Indexer].
func (s *Scope) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	return s.service.Indexing(ctx, s.whole(labels))
}

// Unfinished implements [search.Indexer].
func (s *Scope) Unfinished(ctx context.Context, labels []string) ([]search.Unfinished, error) {
	return s.service.Unfinished(ctx, s.whole(labels))
}

// Embedding implements [search.Indexer].
func (s *Scope) Embedding(ctx context.Context, labels []string) (done, total int, err error) {
	return s.service.Embedding(ctx, s.whole(labels))
}

// FacetFields implements [search.Service].
func (s *Scope) FacetFields() []string { return s.service.FacetFields() }

// whole returns the labels of a call about sources that are indexed whole: the
// requested ones that belong to the scope, or all of them if labels is nil. The result
// is never nil.
func (s *Scope) whole(labels []string) []string {
	if labels == nil {
		return slices.Clone(s.labels)
	}
	return s.only(labels)
}

// nameCounts adds the counts of collections to those of their notes.
func (p part) nameCounts(f *search.FieldCounts) {
	var out []search.Count
	for _, c := range f.Counts {
		c.Value = cmp.Or(p.notes[c.Value], c.Value)
		if i := slices.IndexFunc(out, func(o search.Count) bool { return o.Value == c.Value }); i >= 0 {
			out[i].Count += c.Count
		} else {
			out = append(out, c)
		}
	}
	f.Counts = out
}
