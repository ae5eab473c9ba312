// Package federated searches several search services as one.
//
// A search asks all of them at once, within a time limit, and merges their
// lists of hits by reciprocal ranks: scores of different services cannot be compared.
// The passages of all hits are chosen by package passage from their texts. A service
// that fails or is late is named in the page, and the hits of the others are returned.
package federated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Member is one of the services that are searched together.
//
// No two members have documents with one ID. If the service is a [search.Indexer] or a
// [search.Outliner], so is the member.
type Member struct {
	Labels  []string // that its documents have, at least one
	Sources []string // of Labels, those of which a failure is named; if these fail, a search fails
	Service search.Service
}

// Window is how many hits of a search can be paged.
const Window = 1000

// DefaultTimeout is the usual time limit of each member in a search, from its beginning.
const DefaultTimeout = 2 * time.Second

// Options configure a [Service].
type Options struct {
	Members []Member      // at least one; of equally good hits, those of the first come first
	Timeout time.Duration // of all calls to a member for a search; 0 means DefaultTimeout
	Log     *slog.Logger  // nil discards
}

// A Service is the documents of several services. It implements [search.Service],
// [search.Indexer] and [search.Outliner]. A call for labels asks only the members that
// have one of them.
type Service struct {
	members []Member
	timeout time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	failing map[string]string // what was logged about sources that do not answer
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{members: o.Members, timeout: cmp.Or(o.Timeout, DefaultTimeout), log: o.Log,
		failing: map[string]string{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// A part is a member that a call asks, and the labels of the call that it has.
type part struct {
	Member
	place  int      // among the members
	labels []string // nil for all
}

// parts returns the members with one of the labels; nil means any label.
func (s *Service) parts(labels []string) []part {
	var parts []part
	for i, m := range s.members {
		p := part{Member: m, place: i}
		if labels != nil {
			p.labels = slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return !slices.Contains(m.Labels, l) })
			if len(p.labels) == 0 {
				continue
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// sources returns the sources that a part is asked for.
func (p part) sources() []string {
	return slices.DeleteFunc(slices.Clone(p.Sources),
		func(l string) bool { return p.labels != nil && !slices.Contains(p.labels, l) })
}

// lateError is the error of a member that has not answered in time.
type lateError time.Duration

func (e lateError) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(e)) }

// Unwrap returns errkind.Timeout.
func (e lateError) Unwrap() error { return errkind.Timeout }

// each calls ask for each part at once, and returns the results and errors in their
// order. Each call ends at the time limit, or with ctx.
func each[T any](ctx context.Context, s *Service, parts []part,
	ask func(context.Context, part) (T, error)) ([]T, []error) {
	results, errs := make([]T, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, lateError(s.timeout))
			defer cancel()
			results[i], errs[i] = ask(ctx, p)
			if late := context.Cause(ctx); errs[i] != nil && late != nil {
				errs[i] = late
			}
		})
	}
	wg.Wait()
	return results, errs
}

// failed returns the failures of parts, and an error if no source has answered.
func failed(ctx context.Context, parts []part, errs []error) ([]search.Failure, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var failures []search.Failure
	answers := 0
	for i, err := range errs {
		sources := parts[i].sources()
		switch {
		case err == nil:
			answers += len(sources)
			continue
		case len(sources) == 0:
			sources = parts[i].Labels[:1]
		}
		for _, label := range sources {
			failures = append(failures, search.Failure{Label: label, Err: err})
		}
	}
	switch {
	case answers > 0 || len(failures) == 0:
		return failures, nil
	case len(failures) == 1 || errors.Is(failures[0].Err, errkind.Invalid):
		return nil, failures[0].Err
	}
	return nil, fmt.Errorf("no source answers: %w", joined(failures))
}

// joined returns an error with the messages of some failures. Its kind is that of the
// first one that a later attempt may not meet, or else of the first.
func joined(failures []search.Failure) error {
	message := ""
	for i, f := range failures {
		if i > 0 {
			message += "; "
		}
		message += f.Label + ": " + f.Err.Error()
	}
	i := slices.IndexFunc(failures, func(f search.Failure) bool { return errkind.Retryable(f.Err) })
	return &failuresError{message, failures[max(i, 0)].Err}
}

// A failuresError has the kind of one error.
type failuresError struct {
	message string
	like    error
}

func (e *failuresError) Error() string { return e.message }
func (e *failuresError) Unwrap() error { return e.like }

// holder returns the hit with an ID, and the member that has it. The error is of kind
// NotFound if none has it.
func (s *Service) holder(ctx context.Context, id string, labels []string) (*search.Hit, part, error) {
	var other error
	for _, p := range s.parts(labels) {
		h, err := p.Service.Find(ctx, id, p.labels)
		switch {
		case err == nil:
			return h, p, nil
		case !errors.Is(err, errkind.NotFound) && other == nil:
			other = err
		}
	}
	if other == nil {
		other = document.Missing(id)
	}
	return nil, part{}, other
}

// Find implements [search.Service].
func (s *Service) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	h, _, err := s.holder(ctx, id, labels)
	return h, err
}

// ReadText implements [search.Service].
func (s *Service) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	_, p, err := s.holder(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	return p.Service.ReadText(ctx, id, p.labels, off, n)
}

// Sections implements [search.Outliner].
func (s *Service) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	_, p, err := s.holder(ctx, id, labels)
	if err != nil {
		return nil, err
	}
	if o, ok := p.Service.(search.Outliner); ok {
		return o.Sections(ctx, id, p.labels)
	}
	return nil, nil
}

// Locate implements [search.Outliner]. A member that fails matters only if no other one
// has a document with the path.
func (s *Service) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	parts := s.parts(labels)
	lists, errs := each(ctx, s, parts, func(ctx context.Context, p part) ([]search.Place, error) {
		if o, ok := p.Service.(search.Outliner); ok {
			return o.Locate(ctx, path, p.labels)
		}
		return nil, nil
	})
	places := slices.Concat(lists...)
	if failures, err := failed(ctx, parts, errs); err != nil {
		return nil, err
	} else if len(places) == 0 && len(failures) > 0 {
		return nil, failures[0].Err
	}
	slices.SortStableFunc(places, func(a, b search.Place) int { return cmp.Compare(a.Label, b.Label) })
	return places, nil
}

// Suggest implements [search.Service]. Members that fail or know no words are left out.
func (s *Service) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	parts := s.parts(q.Labels)
	lists, errs := each(ctx, s, parts, func(ctx context.Context, p part) ([]search.Suggestion, error) {
		q := q
		q.Labels = p.labels
		return p.Service.Suggest(ctx, q)
	})
	if _, err := failed(ctx, parts, errs); err != nil {
		return nil, err
	}
	var out []search.Suggestion
	for _, next := range alternating(lists) {
		i := slices.IndexFunc(out, func(o search.Suggestion) bool { return o.Text == next.Text })
		switch {
		case i >= 0:
			out[i].Labels = append(slices.Clone(out[i].Labels), next.Labels...)
		case len(out) < q.Num:
			out = append(out, next)
		}
	}
	return out, nil
}

// maxWords is how many popular words there are.
const maxWords = 10

// PopularWords implements [search.Service]. Members that fail or know no words are left
// out.
func (s *Service) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	parts := s.parts(q.Labels)
	lists, errs := each(ctx, s, parts, func(ctx context.Context, p part) ([]string, error) {
		q := q
		q.Labels = p.labels
		return p.Service.PopularWords(ctx, q)
	})
	if _, err := failed(ctx, parts, errs); err != nil {
		return nil, err
	}
	var out []string
	for _, w := range alternating(lists) {
		if len(out) < maxWords && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out, nil
}

// alternating returns the elements of lists, the first of each list first.
func alternating[T any](lists [][]T) (out []T) {
	for i := 0; ; i++ {
		n := len(out)
		for _, list := range lists {
			if i < len(list) {
				out = append(out, list[i])
			}
		}
		if len(out) == n {
			return out
		}
	}
}

// Labels implements [search.Service].
func (s *Service) Labels(ctx context.Context) ([]search.Label, error) {
	parts := s.parts(nil)
	lists, errs := each(ctx, s, parts, func(ctx context.Context, p part) ([]search.Label, error) {
		return p.Service.Labels(ctx)
	})
	if _, err := failed(ctx, parts, errs); err != nil {
		return nil, err
	}
	var all []search.Label
	for _, l := range slices.Concat(lists...) { // a collection may have the label of a member
		if !slices.ContainsFunc(all, func(o search.Label) bool { return o.Value == l.Value }) {
			all = append(all, l)
		}
	}
	return all, nil
}

// Health implements [search.Service]. The status is green if that of all members is,
// red if none can be searched, otherwise yellow.
func (s *Service) Health(ctx context.Context) (search.Health, error) {
	parts := s.parts(nil)
	all, errs := each(ctx, s, parts, func(ctx context.Context, p part) (search.Health, error) {
		return p.Service.Health(ctx)
	})
	if _, err := failed(ctx, parts, errs); err != nil {
		return search.Health{}, err
	}
	sum, green, red := search.Health{}, 0, 0
	for i, h := range all {
		sum.TimedOut = sum.TimedOut || h.TimedOut || errors.Is(errs[i], errkind.Timeout)
		switch {
		case errs[i] != nil || h.Status == "red":
			red++
		case h.Status == "green":
			green++
		}
	}
	switch len(all) {
	case green:
		sum.Status = "green"
	case red:
		sum.Status = "red"
	default:
		sum.Status = "yellow"
	}
	return sum, nil
}

// FacetFields implements [search.Service]. It returns the fields that every member can
// count by.
func (s *Service) FacetFields() []string {
	fields := s.members[0].Service.FacetFields()
	for _, m := range s.members[1:] {
		other := m.Service.FacetFields()
		fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !slices.Contains(other, f) })
	}
	return fields
}

// Indexing implements [search.Indexer].
func (s *Service) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	for _, p := range s.parts(labels) {
		if x, ok := p.Service.(search.Indexer); ok {
			d, t, b := x.Indexing(ctx, p.labels)
			done, total, busy = done+d, total+t, busy || b
		}
	}
	return done, total, busy
}

// Unfinished implements [search.Indexer].
func (s *Service) Unfinished(ctx context.Context, labels []string) (all []search.Unfinished, err error) {
	for _, p := range s.parts(labels) {
		if x, ok := p.Service.(search.Indexer); ok {
			list, err := x.Unfinished(ctx, p.labels)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
	}
	return all, nil
}

// Embedding implements [search.Indexer].
func (s *Service) Embedding(ctx context.Context, labels []string) (done, total int, err error) {
	for _, p := range s.parts(labels) {
		if x, ok := p.Service.(search.Indexer); ok {
			d, t, err := x.Embedding(ctx, p.labels)
			if err != nil {
				return 0, 0, err
			}
			done, total = done+d, total+t
		}
	}
	return done, total, nil
}
