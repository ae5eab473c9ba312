package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
	"knowhow/internal/segment"
)

// Search returns one page of the documents that match a query; see
// [search.Service].
//
// Words are joined by AND over the whole document. Words that every question
// has do not count in a plain query. For a plain query of three words or more,
// some of its words are enough. A query without text, or for everything, gives
// the newest documents first unless it says otherwise.
func (x *Index) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of this index has a location: %w", errkind.Unsupported)
	}
	var page *search.Page
	err := x.searching(ctx, q.Text.String(), q.Labels, func(e *evaluator) error {
		var err error
		page, err = e.find(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if page.Total > 0 && q.Start == 0 {
		x.counts.add(q.Text.Words(), q.Labels)
	}
	return page, nil
}

// searching calls f with an evaluator for a search under some labels (nil: all),
// within the time that a search may take.
func (x *Index) searching(ctx context.Context, text string, labels []string, f func(e *evaluator) error) error {
	until := time.Now().Add(x.searchTime)
	waiting, cancel := context.WithTimeout(ctx, x.waitTime)
	defer cancel()
	if isExpensive(text) {
		select {
		case x.expensive <- struct{}{}:
			defer func() { <-x.expensive }()
		case <-waiting.Done():
			return cmp.Or(ctx.Err(), errWaited)
		}
	}
	conn, err := x.r.Conn(waiting)
	if err != nil {
		if waiting.Err() != nil {
			err = errWaited
		}
		return cmp.Or(ctx.Err(), err)
	}
	defer conn.Close()
	return x.mend(ctx, func() error {
		return x.transact(ctx, conn, "searching", func(tx *sql.Tx) error {
			return x.evaluate(ctx, x.prepared(tx), labels, func(e *evaluator) error {
				e.until = until
				return f(e)
			})
		})
	})
}

// Find returns one document; see [search.Service]. Its digest is the beginning
// of the text.
func (x *Index) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	var h *search.Hit
	err := x.read(ctx, "finding a document", func(tx *sql.Tx) error {
		var doc int64
		var label string
		err := tx.QueryRowContext(ctx, `SELECT id, label FROM docs WHERE doc_id=?`, id).Scan(&doc, &label)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, label) {
			return document.Missing(id)
		}
		if err != nil {
			return err
		}
		e := evaluator{tx: x.prepared(tx)}
		hits, err := e.hits(ctx, []ranked{{doc: doc, chunk: -1}}, nil, nil)
		if err == nil {
			h = &hits[0]
		}
		return err
	})
	return h, err
}

// errWaited is the error of a search that other searches have kept waiting for
// the whole time that it may take.
var errWaited = fmt.Errorf("too many searches with many words or wildcards are running: try again in a few seconds: %w", errkind.Busy)

// Bounds of a query that does not wait for other expensive queries.
const (
	cheapWildcards = 8
	cheapWords     = 100
	cheapPrefix    = 2 // bytes before the first wildcard of a word
)

// isExpensive reports whether a query may take so long that it should not run
// beside many others like it.
func isExpensive(text string) bool {
	for w := range strings.FieldsSeq(text) {
		w = w[strings.LastIndexByte(w, ':')+1:] // without a field
		if i := strings.IndexAny(w, "*?"); i >= 0 && i < cheapPrefix && len(w) > 1 {
			return true
		}
	}
	return strings.Count(text, "*")+strings.Count(text, "?")+strings.Count(text, "~") > cheapWildcards || strings.Count(text, " ") > cheapWords
}

// matched is what a query matches.
type matched struct {
	found
	all   bool // the query is for all documents that meet the conditions
	n     int  // how many documents
	words int  // how many have all words that count; -1 unless some words are enough

	also map[int64][]int64 // by row: the other documents that match and have the same text

	missing []string // words of a plain query that no document has

	complete segment.Docs // those with all words that count; nil unless some are enough
	dense    *dense       // nil if the query is ranked by words only
}

// find returns one page of the documents that match a valid query.
func (e *evaluator) find(ctx context.Context, q search.Query) (*search.Page, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	m, err := e.match(limited, q)
	if e.timedOut(limited, err) {
		return &search.Page{Partial: true, AtLeast: true}, nil
	}
	if err == nil {
		err = e.dense(limited, m, q)
	}
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	if q.Distinct {
		if err := e.collapse(limited, m, q.Labels); err != nil && !e.timedOut(limited, err) {
			return nil, err
		}
	}
	list, err := e.list(limited, m, q)
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	partial := e.ended || e.view.incomplete
	page := &search.Page{Total: m.n, Partial: partial, AtLeast: partial}
	if m.words >= 0 {
		page.Staged, page.AllWords = true, m.words
	}
	if page.DidYouMean, err = e.similar(limited, m.missing); err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	var passages [][]search.Passage
	if q.Passages > 0 {
		if passages, err = e.passages(limited, list, m, q.Passages); err != nil {
			return nil, err
		}
	}
	byScore := len(q.Sort) == 0 || q.Sort[0].Field == "score"
	hits, err := e.hits(ctx, list, m.leaves, passages)
	if err != nil {
		return nil, err
	}
	if err := e.addAlso(ctx, hits, list, m.also); err != nil {
		return nil, err
	}
	page.Hits = slices.Grow(page.Hits, len(hits))
	for i, r := range list {
		h := &hits[i]
		if h.ID == "" || !admits(q.Labels, h.Labels[0]) {
			// The segment has a document that it cannot have. If it is not
			// damaged, the database was changed by hand.
			if err := e.view.verify(); err != nil {
				return nil, err
			}
			continue
		}
		if byScore {
			h.Score = r.score
		}
		page.Hits = append(page.Hits, *h)
	}
	if q.Facets == nil {
		return page, nil
	}
	if least := time.Now().Add(facetTime); e.until.Before(least) {
		e.until = least
	}
	limited, cancel = context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	page.Facets, err = e.facets(limited, m, q)
	if err != nil && e.timedOut(limited, err) {
		page.Partial, page.Facets = true, cmp.Or(page.Facets, &search.FacetCounts{})
		return page, nil
	}
	return page, err
}

// facetTime is the least time for counting, after a search that has used up its
// time.
const facetTime = 200 * time.Millisecond

// match returns the documents that match a query.
func (e *evaluator) match(ctx context.Context, q search.Query) (*matched, error) {
	c := conditionsOf(q)
	m := &matched{words: -1}
	if q.Text.Kind() == query.Words {
		typed := q.Text.Words()
		words, divided := significant(typed, e.langs)
		some := e.anyWord || len(typed) >= relevance.SomeWords || divided
		if err := e.matchWords(ctx, m, words, some, c); err != nil {
			return m, err
		}
		if divided {
			if err := e.preferWhole(ctx, m, typed); err != nil {
				return m, err
			}
		}
		return m, e.matchSigns(ctx, m, analysis.Signs(q.Text.Typed()), some, c)
	}
	if q.Text.Kind() == query.Everything {
		m.all = true
		every, err := e.every(ctx, c)
		if err != nil {
			return m, err
		}
		m.docs = every.Clone()
		m.n = m.docs.Count()
		return m, nil
	}
	var err error
	if m.found, err = e.eval(ctx, q.Text.Tree()); err != nil {
		return nil, err
	}
	if m.void {
		m.docs = e.view.None()
	}
	m.n, err = e.within(ctx, m.docs, c)
	return m, err
}

// significant returns the words that count of the words of a plain query. divided
// reports whether a word in a script without blanks between words consists of
// several that count: then the query is a question.
func significant(words []string, among []analysis.Language) (counting []string, divided bool) {
	words, divided = query.Divide(words)
	counting = analysis.Significant(words, among)
	return counting, divided && len(counting) > 1
}

// preferWhole adds to the ranking the words that were divided, as they are in the
// query.
func (e *evaluator) preferWhole(ctx context.Context, m *matched, words []string) error {
	for _, w := range words {
		if _, divided := query.Divide([]string{w}); !divided {
			continue
		}
		f, err := e.eval(ctx, query.Term{Text: w})
		if e.timedOut(ctx, err) {
			return nil
		}
		if err != nil {
			return err
		}
		m.addLeaves(f.leaves)
	}
	return nil
}

// matchWords finds the documents with all words or, if some are enough, with
// any of them.
func (e *evaluator) matchWords(ctx context.Context, m *matched, words []string, some bool, c conditions) error {
	var nodes []query.Node
	var different []string
	times := map[string]float32{} // how often the query has a word
	for _, w := range words {
		if times[w]++; times[w] == 1 || !some {
			nodes = append(nodes, query.Identifier(w, analysis.Parts(w)))
			different = append(different, w)
		}
	}
	var err error
	if !some {
		if m.found, err = e.and(ctx, nodes); err != nil {
			return err
		}
		if m.void {
			m.docs = e.view.None()
		}
		if m.n, err = e.within(ctx, m.docs, c); m.n == 0 {
			m.missing = words
		}
		return err
	}
	m.void = true
	var all segment.Docs
	var pieces []string // of words that no document has
	for i, n := range nodes {
		f, err := e.eval(ctx, n)
		if err == nil && !f.void && f.docs.Count() == 0 {
			m.missing = append(m.missing, different[i])
			pieces = append(pieces, query.Pieces(different[i])...)
		}
		switch {
		case e.timedOut(ctx, err):
			continue
		case err != nil:
			return err
		case f.void:
			continue
		case m.void:
			m.void, all, m.docs = false, f.docs.Clone(), f.docs
		default:
			all.And(f.docs)
			m.docs.Or(f.docs)
		}
		for _, l := range f.leaves {
			l.Weight *= min(times[different[i]], relevance.MaxWeight)
		}
		m.addLeaves(f.leaves)
	}
	if m.void {
		m.docs, all = e.view.None(), e.view.None()
	}
	if m.words, err = e.within(ctx, all, c); err != nil {
		return err
	}
	m.complete = all
	for _, p := range pieces[:min(len(pieces), maxRanked)] {
		f, err := e.eval(ctx, query.Term{Text: p})
		if e.timedOut(ctx, err) {
			break
		}
		if err != nil {
			return err
		}
		if !f.void {
			m.docs.Or(f.docs)
			m.addLeaves(f.leaves)
		}
	}
	if m.n, err = e.within(ctx, m.docs, c); err != nil || m.n == 0 {
		return err
	}
	return e.rankSimilar(ctx, m)
}

// rankSimilar adds to the ranking, for each word that no document has, the most
// similar word. What the query finds does not depend on it.
func (e *evaluator) rankSimilar(ctx context.Context, m *matched) error {
	for _, w := range m.missing[:min(len(m.missing), similarTo)] {
		words, err := e.similar(ctx, []string{w})
		if err == nil && len(words) > 0 {
			var f found
			f, err = e.eval(ctx, query.Term{Text: words[0]})
			m.addLeaves(f.leaves)
		}
		if err != nil && !e.timedOut(ctx, err) {
			return err
		}
	}
	return nil
}

// matchSigns adds the signs of a plain query to the ranking and, if some words are
// enough, the documents with them to those that match.
func (e *evaluator) matchSigns(ctx context.Context, m *matched, signs []string, some bool, c conditions) error {
	for _, sign := range signs[:min(len(signs), relevance.MaxSigns)] {
		l, docs, err := e.signed(ctx, sign)
		if e.timedOut(ctx, err) {
			break
		}
		if err != nil {
			return err
		}
		m.addLeaves([]*leaf{l})
		if some {
			m.docs.Or(docs)
		}
	}
	if len(signs) == 0 || !some {
		return nil
	}
	var err error
	m.n, err = e.within(ctx, m.docs, c)
	return err
}

// within removes the documents that are deleted or do not meet the conditions,
// and returns how many are left.
func (e *evaluator) within(ctx context.Context, docs segment.Docs, c conditions) (int, error) {
	for i := range docs {
		if live := e.view.Live(i); live != nil && docs[i] != nil {
			docs[i].And(live)
		}
	}
	if c.beyondLabels() {
		allowed, err := e.every(ctx, c)
		if err != nil {
			return 0, err
		}
		docs.And(allowed)
	}
	return docs.Count(), nil
}

// list returns the documents of the page.
func (e *evaluator) list(ctx context.Context, m *matched, q search.Query) ([]ranked, error) {
	keys := q.Sort
	n := min(q.Num, max(m.n-q.Start, 0))
	if n == 0 {
		return nil, nil
	}
	if len(m.leaves) == 0 && (m.dense == nil || !m.dense.added) {
		if len(keys) == 0 {
			keys = []search.SortKey{{Field: "timestamp", Desc: true}}
		}
		return e.sorted(ctx, m, keys, nil, q.Start, n)
	}
	if len(keys) == 0 || keys[0] == (search.SortKey{Field: "score", Desc: true}) {
		list, err := e.rank(ctx, m, q.Text, q.Start+n)
		return list[min(q.Start, len(list)):min(q.Start+n, len(list))], err
	}
	var order []ranked
	if slices.ContainsFunc(keys, func(k search.SortKey) bool { return k.Field == "score" }) {
		var err error
		if order, err = e.rank(ctx, m, q.Text, m.n); err != nil {
			return nil, err
		}
	}
	return e.sorted(ctx, m, keys, order, q.Start, n)
}

// A member is a document of a set.
type member struct {
	segment, doc int
	row          int64
}

// members returns the documents of a set. rows are those of the documents of each
// segment.
func members(docs segment.Docs, rows [][]int64) iter.Seq[member] {
	return func(yield func(member) bool) {
		for i, b := range docs {
			for d := b.Next(0); d >= 0; d = b.Next(d + 1) {
				if !yield(member{i, d, rows[i][d]}) {
					return
				}
			}
		}
	}
}

// sorted returns up to n documents that match, beginning with number start,
// ordered by fields. order is all of them by relevance, if a sort key needs it.
func (e *evaluator) sorted(ctx context.Context, m *matched, keys []search.SortKey, order []ranked, start, n int) ([]ranked, error) {
	rank := map[int64]int{}
	for i, r := range order {
		rank[r.doc] = i
	}
	var by []func(a, b member) int
	for _, k := range keys {
		compare, err := e.comparison(ctx, k.Field, rank)
		switch {
		case err != nil:
			return nil, err
		case compare == nil:
		case k.Desc != (k.Field == "score"): // the best document is the first of order
			by = append(by, func(a, b member) int { return compare(b, a) })
		default:
			by = append(by, compare)
		}
	}
	// The document number breaks ties.
	last := func(a, b member) int { return cmp.Compare(a.row, b.row) }
	if len(keys) > 0 && keys[0].Desc {
		last = func(a, b member) int { return cmp.Compare(b.row, a.row) }
	}
	by = append(by, last)
	rows := make([][]int64, len(m.docs))
	for i, h := range e.view.handles {
		var err error
		if rows[i], err = h.rowsOf(); err != nil {
			return nil, err
		}
	}
	var out []ranked
	for _, p := range best(members(m.docs, rows), start+n, func(a, b member) int {
		for _, compare := range by {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}) {
		r := ranked{doc: p.row, chunk: -1}
		if i, ok := rank[p.row]; ok {
			r.score = order[i].score
		}
		out = append(out, r)
	}
	out = out[min(start, len(out)):]
	return out, e.addChunks(ctx, m, out)
}

// addChunks sets the best chunk of each document of a list, for the excerpts.
func (e *evaluator) addChunks(ctx context.Context, m *matched, list []ranked) error {
	if len(m.leaves) == 0 {
		return nil
	}
	rows := make([]int64, len(list))
	for i, r := range list {
		rows[i] = r.doc
	}
	docs, err := e.view.Rows(slices.Sorted(slices.Values(rows)))
	if err != nil {
		return err
	}
	hits, err := e.search.Top(ctx, leavesOf(rarest(slices.Clone(m.leaves), maxRanked)), docs, len(list))
	if err != nil && !e.timedOut(ctx, err) {
		return err
	}
	for _, h := range hits {
		list[slices.Index(rows, h.Row)].chunk = rowOf(h.Row, h.Chunk)
	}
	return nil
}

// comparison returns a function that compares documents by a field of
// [search.SortFields], nil if all documents are equal. rank is the place of each
// document by relevance, empty if it is not known.
func (e *evaluator) comparison(ctx context.Context, field string, rank map[int64]int) (func(a, b member) int, error) {
	switch field {
	case "score":
		if len(rank) == 0 {
			return nil, nil
		}
		return func(a, b member) int { return cmp.Compare(rank[a.row], rank[b.row]) }, nil
	case "filename", "created":
	case "content_length":
		field = "size"
	case "last_modified", "timestamp":
		field = "modified"
	default:
		return nil, nil
	}
	columns, err := e.column(ctx, field)
	if err != nil {
		return nil, err
	}
	if isNumber(field) {
		return func(a, b member) int {
			return cmp.Compare(columns[a.segment].numbers[a.doc], columns[b.segment].numbers[b.doc])
		}, nil
	}
	return func(a, b member) int {
		return strings.Compare(columns[a.segment].text(a.doc), columns[b.segment].text(b.doc))
	}, nil
}

// jsonList returns numbers as a list in JSON.
func jsonList(numbers []int64) string {
	list := make([]byte, 1, 8*len(numbers)+2)
	list[0] = '['
	for i, n := range numbers {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, n, 10)
	}
	return string(append(list, ']'))
}
