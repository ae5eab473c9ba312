package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/search"
)

// Search returns one page of the documents that match a query; see
// [search.Service].
//
// Words are joined by AND over the whole document. A plain query of three words
// or more is staged: first come the documents with all its words, then those
// with some. That holds for each order: a field orders within these groups.
// A query without text, or for everything, gives the newest documents first
// unless it says otherwise.
func (x *Index) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of this index has a location: %w", errkind.Unsupported)
	}
	var page *search.Page
	err := x.read(ctx, "searching", func(tx *sql.Tx) error {
		e, err := newEvaluator(ctx, tx, &x.sets)
		if err != nil {
			return err
		}
		page, err = e.search(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if page.Total > 0 && q.Start == 0 {
		x.counts.add(q.Text, q.Labels)
	}
	return page, nil
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
			return noDocument(id)
		}
		if err != nil {
			return err
		}
		e := evaluator{tx: &preparedTx{tx: tx}}
		h, err = e.hit(ctx, ranked{doc: doc, chunk: -1}, nil)
		return err
	})
	return h, err
}

// stagedWords is the least number of words for which a plain query also finds
// documents with only some of them.
const stagedWords = 3

// A group is a part of the result. Its documents come before those of the next
// group.
type group struct {
	found
	all bool // the group is all documents that meet the conditions; found is empty
	n   int  // how many documents
}

// search returns one page of the documents that match a valid query.
func (e *evaluator) search(ctx context.Context, q search.Query) (*search.Page, error) {
	groups, err := e.groups(ctx, q)
	if err != nil {
		return nil, err
	}
	page := &search.Page{Staged: len(groups) > 1}
	if page.Staged {
		page.AllWords = groups[0].n
	}
	var leaves []*leaf
	for _, g := range groups {
		page.Total += g.n
		leaves = g.leaves
	}
	list, err := e.list(ctx, groups, q)
	if err != nil {
		return nil, err
	}
	byScore := len(q.Sort) == 0 || q.Sort[0].Field == "score"
	for _, r := range list {
		h, err := e.hit(ctx, r, leaves)
		if err != nil {
			return nil, err
		}
		if byScore {
			h.Score = r.score
		}
		page.Hits = append(page.Hits, *h)
	}
	if q.Facets != nil {
		page.Facets, err = e.facets(ctx, groups, q)
	}
	return page, err
}

// groups returns the documents that match a query.
func (e *evaluator) groups(ctx context.Context, q search.Query) ([]group, error) {
	c := conditionsOf(q)
	if query.Plain(q.Text) {
		if words := query.Words(q.Text); len(words) >= stagedWords {
			return e.staged(ctx, words, c)
		}
	}
	node, err := query.Parse(q.Text)
	if err != nil {
		return nil, err
	}
	if _, ok := node.(query.All); ok {
		g := group{all: true}
		where, args := c.where()
		err := e.tx.QueryRowContext(ctx, `SELECT count(*) FROM docs d WHERE `+where, args...).Scan(&g.n)
		return []group{g}, err
	}
	f, err := e.eval(ctx, node)
	if err != nil {
		return nil, err
	}
	g, err := e.within(ctx, f, c)
	return []group{g}, err
}

// within returns the documents of f that meet the conditions. Labels are
// enforced here, whatever the query contains.
func (e *evaluator) within(ctx context.Context, f found, c conditions) (group, error) {
	if !c.none() {
		docs, err := e.every(ctx, c)
		if err != nil {
			return group{}, err
		}
		f.docs = intersect(f.docs, docs)
	}
	return group{found: f, n: len(f.docs)}, nil
}

// staged returns the documents with all words and those with only some.
func (e *evaluator) staged(ctx context.Context, words []string, c conditions) ([]group, error) {
	nodes := make([]query.Node, len(words))
	for i, w := range words {
		nodes[i] = query.Term{Text: w}
	}
	all, err := e.and(ctx, nodes)
	if err != nil {
		return nil, err
	}
	some, err := e.or(ctx, nodes)
	if err != nil {
		return nil, err
	}
	some.docs = without(some.docs, all.docs)
	first, err := e.within(ctx, all, c)
	if err != nil {
		return nil, err
	}
	second, err := e.within(ctx, some, c)
	return []group{first, second}, err
}

// list returns the documents of the page.
func (e *evaluator) list(ctx context.Context, groups []group, q search.Query) ([]ranked, error) {
	var out []ranked
	start, num := q.Start, q.Num
	for i, g := range groups {
		if start >= g.n {
			start -= g.n
			continue
		}
		n := min(num-len(out), g.n-start)
		if n <= 0 {
			break
		}
		part, err := e.listGroup(ctx, g, q, start, n)
		if err != nil {
			return nil, err
		}
		for _, r := range part {
			r.score = squash(r.score) + float64(len(groups)-1-i)
			out = append(out, r)
		}
		start = 0
	}
	return out, nil
}

// squash maps a score to 0..1, so that adding whole numbers separates the
// groups of a result.
func squash(score float64) float64 { return max(score, 0) / (max(score, 0) + 10) }

// listGroup returns up to n documents of a group, beginning with number start.
func (e *evaluator) listGroup(ctx context.Context, g group, q search.Query, start, n int) ([]ranked, error) {
	keys := q.Sort
	byScore := len(keys) == 0 || keys[0].Field == "score"
	if g.all || len(g.leaves) == 0 {
		if len(keys) == 0 {
			keys = []search.SortKey{{Field: "timestamp", Desc: true}}
		}
		return e.sorted(ctx, g, conditionsOf(q), keys, nil, start, n)
	}
	needScore := slices.ContainsFunc(keys, func(k search.SortKey) bool { return k.Field == "score" })
	if byScore && (len(keys) == 0 || keys[0].Desc) {
		list, err := e.rank(ctx, g.found, conditionsOf(q), start+n)
		if err != nil {
			return nil, err
		}
		return list[start:min(start+n, len(list))], nil
	}
	var order []ranked
	if needScore {
		var err error
		if order, err = e.rank(ctx, g.found, conditionsOf(q), g.n); err != nil {
			return nil, err
		}
	}
	return e.sorted(ctx, g, conditionsOf(q), keys, order, start, n)
}

// sorted returns up to n documents of a group, beginning with number start,
// ordered by fields. order is the group by relevance, if a sort key needs it.
func (e *evaluator) sorted(ctx context.Context, g group, c conditions, keys []search.SortKey, order []ranked, start, n int) ([]ranked, error) {
	by := make([]string, 0, len(keys)+1)
	for _, k := range keys {
		direction := ""
		if k.Desc {
			direction = " DESC"
		}
		switch k.Field {
		case "filename":
			by = append(by, "d.filename"+direction)
		case "created":
			by = append(by, "d.created"+direction)
		case "content_length":
			by = append(by, "d.size"+direction)
		case "last_modified", "timestamp":
			by = append(by, "d.modified"+direction)
		case "score":
			if order != nil {
				// j.key is 0 for the best document.
				by = append(by, "j.key"+map[bool]string{true: "", false: " DESC"}[k.Desc])
			}
		}
	}
	// The document number breaks ties, in the order of the index on times.
	last := "d.id"
	if len(keys) > 0 && keys[0].Desc {
		last = "d.id DESC"
	}
	ids := g.docs
	if order != nil {
		ids = make(docSet, len(order))
		for i, r := range order {
			ids[i] = r.doc
		}
	}
	from, args := e.source(g.all, ids, c)
	scores := map[int64]float64{}
	for _, r := range order {
		scores[r.doc] = r.score
	}
	var out []ranked
	err := collect(ctx, e.tx, func(rows *sql.Rows) error {
		r := ranked{chunk: -1}
		err := rows.Scan(&r.doc)
		r.score = scores[r.doc]
		out = append(out, r)
		return err
	}, `SELECT d.id `+from+` ORDER BY `+strings.Join(append(by, last), ", ")+` LIMIT ? OFFSET ?`, append(args, n, start)...)
	return out, err
}

// source returns the FROM and WHERE clauses of a statement over documents d,
// and their arguments. The documents are all, or those of ids, that meet the
// conditions.
func (e *evaluator) source(all bool, ids docSet, c conditions) (from string, args []any) {
	where, args := c.where()
	if all {
		return `FROM docs d WHERE ` + where, args
	}
	list := make([]byte, 1, 8*len(ids)+2)
	list[0] = '['
	for i, id := range ids {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, id, 10)
	}
	list = append(list, ']')
	return `FROM json_each(?) j CROSS JOIN docs d ON d.id=j.value WHERE ` + where, append([]any{string(list)}, args...)
}
