package federated_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/federated"
)

// A few is a member with documents whose texts are their titles. If it hangs, no call
// returns before its context ends.
type few struct {
	search.Service
	label string
	hangs bool
	wait  time.Duration // before each answer
	err   error
	calls int // of Search
}

func (f *few) answer(ctx context.Context) error {
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(f.wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.err
}

func (f *few) FacetFields() []string { return nil }

func (f *few) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	f.calls++
	if err := f.answer(ctx); err != nil {
		return nil, err
	}
	p := &search.Page{Total: 2}
	if q.Facets != nil {
		p.Facets = &search.FacetCounts{Queries: make([]search.Count, len(q.Facets.Queries))}
	}
	for i := range min(2, q.Num) {
		id := fmt.Sprint(f.label, i)
		p.Hits = append(p.Hits, search.Hit{ID: id, Title: "pears " + id, Labels: []string{f.label},
			Digest: search.Excerpt{Text: "digest"}})
	}
	return p, nil
}

func (f *few) ReadText(ctx context.Context, id string, _ []string, _ int64, _ int) (*search.Text, error) {
	return &search.Text{Window: "pears " + id}, f.answer(ctx)
}

func members(list ...*few) (out []federated.Member) {
	for _, f := range list {
		out = append(out, federated.Member{Labels: []string{f.label}, Sources: []string{f.label}, Service: f})
	}
	return out
}

// A search waits for a member once, whatever else it wants to know.
func TestHangingMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &few{label: "c", hangs: true}
		s := federated.New(federated.Options{Timeout: 3 * time.Second,
			Members: members(&few{label: "a"}, &few{label: "b"}, hanging)})
		begun := time.Now()
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("pears"), Num: 10, Passages: 1000, Distinct: true})
		if err != nil || len(p.Hits) != 4 || len(p.Failed) != 1 || p.Failed[0].Label != "c" || !p.Partial ||
			!errors.Is(p.Failed[0].Err, errkind.Timeout) {
			t.Errorf("Search = %+v, %v, want four hits and one failure", p, err)
		}
		if d := time.Since(begun); d != 3*time.Second || hanging.calls != 1 {
			t.Errorf("Search took %v and %d calls, want 3s and one", d, hanging.calls)
		}
		for _, h := range p.Hits {
			if len(h.Passages) == 0 {
				t.Errorf("%s has no passage although its text can be read", h.ID)
			}
		}
	})
}

// All calls to a slow member for a search have one time limit. Its hits are returned even
// if their texts are not read in time.
func TestSlowMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			wait, took time.Duration
			hits       int
		}{
			{500 * time.Millisecond, time.Second, 4}, // with texts
			{1500 * time.Millisecond, 2 * time.Second, 4},
			{1900 * time.Millisecond, 2150 * time.Millisecond, 4},
			{2100 * time.Millisecond, 2 * time.Second, 2}, // the texts of the other one take no time
		} {
			slow := &few{label: "b", wait: tt.wait}
			s := federated.New(federated.Options{Timeout: 2 * time.Second, Members: members(&few{label: "a"}, slow)})
			begun := time.Now()
			p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("pears"), Num: 10, Passages: 1000, Distinct: true})
			if err != nil || len(p.Hits) != tt.hits || len(p.Failed) != (4-tt.hits)/2 {
				t.Fatalf("after %v each: Search = %+v, %v, want %d hits", tt.wait, p, err, tt.hits)
			}
			if d := time.Since(begun); d != tt.took {
				t.Errorf("after %v each: Search took %v, want %v", tt.wait, d, tt.took)
			}
			for _, h := range p.Hits {
				switch late := tt.wait > time.Second && strings.HasPrefix(h.ID, "b"); {
				case late && h.Digest.Text != "digest", !late && len(h.Passages) == 0:
					t.Errorf("after %v each: hit %+v has neither passages nor its digest", tt.wait, h)
				}
			}
		}
	})
}

// If all members fail, the search can be repeated if one of them may then answer.
func TestAllFail(t *testing.T) {
	s := federated.New(federated.Options{Members: members(&few{label: "a", err: fmt.Errorf("one: %w", errkind.Denied)},
		&few{label: "b", err: fmt.Errorf("two: %w", errkind.Unavailable)})})
	_, err := s.Search(t.Context(), search.Query{Num: 10})
	if !errkind.Retryable(err) || !strings.Contains(err.Error(), "a: one") || !strings.Contains(err.Error(), "b: two") {
		t.Errorf("Search = %v, want an error that may be retried, with both messages", err)
	}
	s = federated.New(federated.Options{Members: members(&few{label: "a", err: errkind.Denied},
		&few{label: "b", err: errkind.Unauthorized})})
	if _, err = s.Search(t.Context(), search.Query{Num: 10}); errkind.Retryable(err) || !errors.Is(err, errkind.Denied) {
		t.Errorf("Search = %v, want the kind of the first", err)
	}
}
