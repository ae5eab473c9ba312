// Package scope restricts a search service to some of its labels.
//
// A [Scope] does not give access to documents without its labels: every call
// contains these labels, whatever labels the caller requests. Command serve
// uses a Scope for all of its endpoints, so that a process serves exactly the
// sources that were requested.
package scope

import (
	"context"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Service can be restricted. Package index implements it.
type Service interface {
	search.Service
	search.Indexer
	search.Outliner
}

// A Scope is a service that contains only the documents with one of some
// labels. Its methods are safe for concurrent use. Health and FacetFields are
// those of the whole service.
type Scope struct {
	service Service
	labels  []string // never nil
}

// New returns the part of a service with one of the labels. Without labels it
// contains no documents.
func New(s Service, labels ...string) *Scope {
	return &Scope{service: s, labels: append([]string{}, labels...)}
}

// within returns the labels for a call: the requested ones that belong to the
// scope, or all of the scope if labels is nil. The result is never nil, which
// would mean any label.
func (s *Scope) within(labels []string) []string {
	if labels == nil {
		return slices.Clone(s.labels)
	}
	return s.only(labels)
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
	q.Labels = s.within(q.Labels)
	return s.service.Search(ctx, q)
}

// Find implements [search.Service].
func (s *Scope) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	return s.service.Find(ctx, id, s.within(labels))
}

// ReadText implements [search.Service].
func (s *Scope) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	return s.service.ReadText(ctx, id, s.within(labels), off, n)
}

// Sections implements [search.Outliner].
func (s *Scope) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	return s.service.Sections(ctx, id, s.within(labels))
}

// Locate implements [search.Outliner].
func (s *Scope) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	return s.service.Locate(ctx, path, s.within(labels))
}

// Suggest implements [search.Service].
func (s *Scope) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	q.Labels = s.within(q.Labels)
	found, err := s.service.Suggest(ctx, q)
	for i := range found {
		found[i].Labels = s.only(found[i].Labels)
	}
	return found, err
}

// PopularWords implements [search.Service].
func (s *Scope) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	q.Labels = s.within(q.Labels)
	return s.service.PopularWords(ctx, q)
}

// Labels implements [search.Service]. It returns the labels of the scope that
// exist in the service.
func (s *Scope) Labels(ctx context.Context) ([]search.Label, error) {
	all, err := s.service.Labels(ctx)
	return slices.DeleteFunc(slices.Clone(all), func(l search.Label) bool { return !slices.Contains(s.labels, l.Value) }), err
}

// Health implements [search.Service].
func (s *Scope) Health(ctx context.Context) (search.Health, error) { return s.service.Health(ctx) }

// Indexing implements [search.Indexer].
func (s *Scope) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	return s.service.Indexing(ctx, s.within(labels))
}

// Unfinished implements [search.Indexer].
func (s *Scope) Unfinished(ctx context.Context, labels []string) ([]search.Unfinished, error) {
	return s.service.Unfinished(ctx, s.within(labels))
}

// Embedding implements [search.Indexer].
func (s *Scope) Embedding(ctx context.Context, labels []string) (done, total int, err error) {
	return s.service.Embedding(ctx, s.within(labels))
}

// FacetFields implements [search.Service].
func (s *Scope) FacetFields() []string { return s.service.FacetFields() }
