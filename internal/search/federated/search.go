package federated

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// An entry is a document of the merged list.
type entry struct {
	part
	search.Hit
	rank  int // in the list of its member, from 0
	score float64
}

// rankOffset is added to each rank, counted from 1. The score of a hit is the
// reciprocal of the sum (reciprocal rank fusion, Cormack, Clarke and Büttcher 2009).
// Their offset of 60 is for lists of the same documents. Here each document is in one
// list, and of the first hits of all lists, at most one is right.
const rankOffset = 2

// leastRest is the part of the time limit that members have at least for the texts of
// their hits: if one is late, the passages of the others are not lost.
const leastRest = 8

// Search implements [search.Service]. It merges at most [Window] hits.
func (s *Service) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(s.FacetFields()); err != nil {
		return nil, err
	}
	parts := s.parts(q.Labels)
	depth := min(max(q.Start+q.Num, compared), Window)
	begun := time.Now()
	pages, errs := each(ctx, s, parts, func(ctx context.Context, p part) (*search.Page, error) {
		return p.search(ctx, q, depth)
	})
	failures, err := failed(ctx, parts, errs)
	if err != nil {
		return nil, err
	}
	s.report(parts, failures)
	for i, f := range failures {
		failures[i].Err = forCallers(f.Err)
	}
	var answered []part
	for i, err := range errs {
		if err == nil {
			answered = append(answered, parts[i])
		}
	}
	if !q.Text.SomeSuffice() {
		leaveRelaxed(pages)
	}
	page := &search.Page{Failed: failures, Partial: failures != nil, Window: Window}
	var lists [][]entry
	for i, found := range pages {
		if found == nil {
			continue
		}
		sum(page, found)
		list := make([]entry, len(found.Hits))
		for rank, h := range found.Hits {
			list[rank] = entry{parts[i], h, rank, 1 / float64(rankOffset+rank+1)}
		}
		if len(list) > 0 {
			lists = append(lists, list)
		}
	}
	page.Relaxed = relaxed(pages)
	page.DidYouMean, page.Missing = advice(pages)
	page.Facets = mergeFacets(q.Facets, pages)
	list := merge(lists, q.Sort)
	if q.Num == 0 || q.Start >= len(list) {
		return page, nil
	}
	whole := len(list) >= page.Total
	// The hits are there. What else members are asked has the rest of their time.
	rest, cancel := context.WithTimeout(ctx, max(s.timeout-time.Since(begun), s.timeout/leastRest))
	defer cancel()
	words := newWords(q.Text, list)
	var counting sync.WaitGroup
	if q.Passages > 0 && len(lists) > 1 {
		counting.Go(func() { s.count(rest, answered, words) })
	}
	texts := s.newTexts()
	if q.Distinct {
		list = texts.distinct(rest, list, depth)
	}
	if whole {
		page.Window = min(Window, len(list)) // of documents that are one hit, Total counts each
	}
	counting.Wait()
	if byRelevance(q.Sort) && len(lists) > 1 {
		first := list[:min(compared, len(list))]
		texts.need(rest, first)
		texts.compare(words, list, first)
	}
	list = list[min(q.Start, len(list)):min(q.Start+q.Num, Window, len(list))]
	if q.Passages > 0 && !havePassages(list) {
		texts.need(rest, list)
		if err := texts.choose(ctx, words, list, q.Passages); err != nil {
			return nil, err
		}
	}
	for _, e := range list {
		if e.Score = 0; byRelevance(q.Sort) {
			e.Score = e.score
		}
		page.Hits = append(page.Hits, e.Hit)
	}
	return page, nil
}

// report logs the failures of sources, each once until the source answers or fails in
// another way.
func (s *Service) report(parts []part, failures []search.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		for _, label := range p.sources() {
			i := slices.IndexFunc(failures, func(f search.Failure) bool { return f.Label == label })
			switch {
			case i < 0 && s.failing[label] != "":
				s.log.Info("a source answers again", "source", label)
				delete(s.failing, label)
			case i >= 0 && s.failing[label] != failures[i].Err.Error():
				s.failing[label] = failures[i].Err.Error()
				s.log.Warn("a source does not answer searches", "source", label, "error", failures[i].Err)
			}
		}
	}
}

// search returns the first hits of a member for a query, at most depth, and the counts
// for its facets without a limit on their number.
func (p part) search(ctx context.Context, q search.Query, depth int) (*search.Page, error) {
	q.Labels, q.Start, q.Num = p.labels, 0, min(depth, search.MaxNum)
	if q.Facets != nil {
		f := *q.Facets
		f.Size, f.MinDocCount = facetSize, 1
		q.Facets = &f
	}
	page, err := search.Relax(ctx, p.Service, q)
	if err != nil {
		return nil, err
	}
	q.Facets, q.Passages = nil, 0
	for len(page.Hits) < min(depth, page.Total) {
		q.Start = len(page.Hits)
		q.Num = min(depth-q.Start, search.MaxNum)
		more, err := search.Relax(ctx, p.Service, q)
		if err != nil {
			return nil, err
		}
		if len(more.Hits) == 0 {
			break
		}
		page.Hits = append(page.Hits, more.Hits...)
	}
	page.Hits = page.Hits[:min(depth, len(page.Hits))]
	return page, nil
}

// forCallers returns an error without what only the log is to have.
func forCallers(err error) error {
	if errkind.Known(err) {
		return err
	}
	return fmt.Errorf("the search failed, see the log of knowhow: %w", errkind.Unavailable)
}

// sum adds the numbers of the page of a member.
func sum(page, found *search.Page) {
	page.Total += found.Total
	page.AtLeast = page.AtLeast || found.AtLeast
	page.Partial = page.Partial || found.Partial
	page.Failed = append(page.Failed, found.Failed...)
	page.Staged = page.Staged || found.Staged
	switch {
	case found.Staged:
		page.AllWords += found.AllWords
	case !found.Relaxed:
		page.AllWords += found.Total
	}
}

// leaveRelaxed removes the pages of documents with some of the words if another page has
// documents with all of them.
func leaveRelaxed(pages []*search.Page) {
	complete := func(p *search.Page) bool { return p != nil && p.Total > 0 && !p.Relaxed }
	if slices.ContainsFunc(pages, complete) {
		for i, p := range pages {
			if p != nil && p.Relaxed {
				pages[i] = nil
			}
		}
	}
}

// relaxed reports whether all pages with documents were found by another search.
func relaxed(pages []*search.Page) bool {
	some := false
	for _, p := range pages {
		if p != nil && p.Total > 0 {
			if !p.Relaxed {
				return false
			}
			some = true
		}
	}
	return some
}

// advice returns the advice of the members about words that no document has, if all
// that found something or know their words agree that there are some.
func advice(pages []*search.Page) (didYouMean, missing []string) {
	first := true
	for _, p := range pages {
		switch {
		case p == nil || p.Total == 0 && p.Missing == nil && p.DidYouMean == nil:
			continue
		case first:
			didYouMean, missing, first = p.DidYouMean, p.Missing, false
			continue
		}
		missing = slices.DeleteFunc(slices.Clone(missing), func(w string) bool { return !slices.Contains(p.Missing, w) })
		if p.DidYouMean == nil {
			didYouMean = nil
		}
	}
	return didYouMean, missing
}

// byRelevance reports whether hits are sorted by their scores.
func byRelevance(keys []search.SortKey) bool { return len(keys) == 0 || keys[0].Field == "score" }

// merge returns the entries of lists as one list: by their scores, or by the fields by
// which the lists are sorted. Of equal entries, the first of each list come first.
func merge(lists [][]entry, keys []search.SortKey) []entry {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b entry) int {
		if !byRelevance(keys) {
			for _, k := range keys {
				if c := compareBy(k, a, b); c != 0 {
					return c
				}
			}
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.rank, b.rank), cmp.Compare(a.place, b.place))
	})
	return all
}

// compareBy compares two entries by a field. Those without a value come last.
func compareBy(k search.SortKey, a, b entry) int {
	c := 0
	switch k.Field {
	case "score":
		return cmp.Compare(b.score, a.score)
	case "filename":
		if a.Filename == "" || b.Filename == "" {
			return cmp.Compare(b.Filename, a.Filename)
		}
		c = strings.Compare(a.Filename, b.Filename)
	case "content_length":
		if a.Size < 0 || b.Size < 0 {
			return cmp.Compare(min(b.Size, 0), min(a.Size, 0))
		}
		c = cmp.Compare(a.Size, b.Size)
	case "click_count", "favorite_count":
		x, hasX := a.Extra[k.Field].(int64)
		y, hasY := b.Extra[k.Field].(int64)
		if hasX != hasY {
			return cmp.Compare(number(hasY), number(hasX))
		}
		c = cmp.Compare(x, y)
	default:
		x, y := timeOf(k.Field, &a.Hit), timeOf(k.Field, &b.Hit)
		if x.IsZero() || y.IsZero() {
			return cmp.Compare(number(x.IsZero()), number(y.IsZero()))
		}
		c = x.Compare(y)
	}
	if k.Desc {
		return -c
	}
	return c
}

// number returns 1 for true and 0 for false.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// timeOf returns a time of a hit by the name of its field.
func timeOf(field string, h *search.Hit) time.Time {
	switch field {
	case "created":
		return h.Created
	case "last_modified":
		return h.Modified
	}
	return h.Timestamp
}

// facetSize is how many counts of a field a member is asked for. The counts of the
// merged list are exact if no field has more values.
const facetSize = 1000

// mergeFacets returns the sums of the counts of pages; nil if none were requested.
func mergeFacets(f *search.Facets, pages []*search.Page) *search.FacetCounts {
	if f == nil {
		return nil
	}
	out := &search.FacetCounts{}
	for _, name := range f.Fields {
		counts := map[string]int{}
		for _, p := range pages {
			if p == nil || p.Facets == nil {
				continue
			}
			for _, field := range p.Facets.Fields {
				if field.Name == name {
					for _, c := range field.Counts {
						counts[c.Value] += c.Count
					}
				}
			}
		}
		out.Fields = append(out.Fields, search.FieldCounts{Name: name, Counts: sorted(f, counts)})
	}
	for i, text := range f.Queries {
		count := search.Count{Value: text}
		for _, p := range pages {
			if p != nil && p.Facets != nil && i < len(p.Facets.Queries) {
				count.Value = p.Facets.Queries[i].Value
				count.Count += p.Facets.Queries[i].Count
			}
		}
		out.Queries = append(out.Queries, count)
	}
	return out
}

// defaultFacetSize is how many counts of a field there are by default.
const defaultFacetSize = 10

// sorted returns the counts of a field in the order that f asks for.
func sorted(f *search.Facets, counts map[string]int) []search.Count {
	out := []search.Count{}
	for value, n := range counts {
		if n >= f.MinDocCount {
			out = append(out, search.Count{Value: value, Count: n})
		}
	}
	slices.SortFunc(out, f.Compare)
	return out[:min(cmp.Or(f.Size, defaultFacetSize), len(out))]
}
