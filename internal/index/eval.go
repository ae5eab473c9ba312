package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/query"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// An evaluator evaluates queries in one transaction and so over one state of
// the index. It is not safe for concurrent use.
type evaluator struct {
	tx         *preparedTx
	sets       *setCache
	generation string
	now        time.Time
}

// newEvaluator returns an evaluator for tx. The cache is shared by all
// evaluators of one index.
func newEvaluator(ctx context.Context, tx *sql.Tx, sets *setCache) (*evaluator, error) {
	generation, err := kvValue(ctx, tx, keyGeneration)
	return &evaluator{tx: &preparedTx{tx: tx}, sets: sets, generation: generation, now: time.Now()}, err
}

// A found is what a part of a query's tree matches.
type found struct {
	docs docSet
	// void reports whether the part contains nothing to search for, such
	// as a dash alone. A void part is ignored.
	void bool
	// chunks is a full-text expression for the chunks that match the whole
	// part; "" if the part has no conditions on words.
	chunks string
	leaves []*leaf // conditions on words that are not negated
}

// eval returns the documents that match a tree.
func (e *evaluator) eval(ctx context.Context, n query.Node) (found, error) {
	switch n := n.(type) {
	case query.All:
		docs, err := e.every(ctx, conditions{})
		return found{docs: docs}, err
	case query.And:
		f, err := e.and(ctx, n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return f, err
		}
		more, err := e.or(ctx, n.Optional)
		f.leaves = append(f.leaves, more.leaves...)
		return f, err
	case query.Or:
		return e.or(ctx, n.Nodes)
	case query.Not:
		return e.and(ctx, []query.Node{n})
	case query.Boost:
		f, err := e.eval(ctx, n.Node)
		for _, l := range f.leaves {
			l.weight *= n.Factor
		}
		return f, err
	case query.Range:
		docs, err := e.inRange(ctx, n)
		return found{docs: docs}, err
	}
	field, text := fieldOf(n)
	if field == "" || field == "title" || field == "content" {
		return e.words(ctx, n, field)
	}
	docs, err := e.field(ctx, n, field, text)
	return found{docs: docs}, err
}

// fieldOf returns the field and the text of a leaf.
func fieldOf(n query.Node) (field, text string) {
	switch n := n.(type) {
	case query.Term:
		return n.Field, n.Text
	case query.Phrase:
		return n.Field, n.Text
	case query.Prefix:
		return n.Field, n.Text
	case query.Wildcard:
		return n.Field, n.Pattern
	case query.Fuzzy:
		return n.Field, n.Text
	}
	return "", ""
}

// and returns the documents that match all nodes and none of the negated ones.
func (e *evaluator) and(ctx context.Context, nodes []query.Node) (found, error) {
	out := found{void: true}
	var not docSet
	var chunks []string
	negated := false
	for _, n := range nodes {
		if no, ok := n.(query.Not); ok {
			f, err := e.eval(ctx, no.Node)
			if err != nil {
				return out, err
			}
			if !f.void {
				not, negated = union(not, f.docs), true
			}
			continue
		}
		f, err := e.eval(ctx, n)
		if err != nil {
			return out, err
		}
		if f.void {
			continue
		}
		if out.void {
			out.docs, out.void = f.docs, false
		} else {
			out.docs = intersect(out.docs, f.docs)
		}
		if f.chunks != "" {
			chunks = append(chunks, f.chunks)
		}
		out.leaves = append(out.leaves, f.leaves...)
	}
	out.chunks = join(chunks, " AND ")
	if !negated {
		return out, nil
	}
	if out.void {
		docs, err := e.every(ctx, conditions{})
		if err != nil {
			return out, err
		}
		out.docs, out.void = docs, false
	}
	out.docs = without(out.docs, not)
	return out, nil
}

// or returns the documents that match any node.
func (e *evaluator) or(ctx context.Context, nodes []query.Node) (found, error) {
	out := found{void: true}
	var chunks []string
	for _, n := range nodes {
		f, err := e.eval(ctx, n)
		if err != nil {
			return out, err
		}
		if f.void {
			continue
		}
		out.docs, out.void = union(out.docs, f.docs), false
		if f.chunks != "" {
			chunks = append(chunks, f.chunks)
		}
		out.leaves = append(out.leaves, f.leaves...)
	}
	out.chunks = join(chunks, " OR ")
	return out, nil
}

// join joins full-text expressions.
func join(parts []string, op string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return "(" + strings.Join(parts, ")"+op+"(") + ")"
}

// words returns the documents that match a condition on words, such as a phrase
// or a prefix.
func (e *evaluator) words(ctx context.Context, n query.Node, field string) (found, error) {
	l := &leaf{weight: 1}
	switch field {
	case "title":
		l.column = "title"
	case "content":
		l.column = "text"
	}
	var err error
	switch n := n.(type) {
	case query.Term:
		l.add(termPattern(n.Text, 0))
	case query.Phrase:
		l.add(termPattern(n.Text, n.Slop))
	case query.Prefix:
		l.add(prefixPattern(n.Text))
		err = e.expandPrefix(ctx, l, n.Text)
	case query.Wildcard:
		if strings.Trim(n.Pattern, "*?") == "" {
			return e.eval(ctx, query.All{})
		}
		err = e.expandWildcard(ctx, l, n.Pattern)
		if err == nil && len(l.patterns) == 0 {
			return found{}, nil
		}
	case query.Fuzzy:
		l.add(termPattern(n.Text, 0))
		err = e.expandFuzzy(ctx, l, n.Text, n.Edits)
	default:
		return found{}, fmt.Errorf("the query has a part of an unknown kind (%T): %w", n, errkind.Invalid)
	}
	if err != nil || len(l.patterns) == 0 {
		return found{void: true}, err
	}
	return e.leaf(ctx, l)
}

// add adds a pattern if ok is true and the leaf does not have it yet.
func (l *leaf) add(p pattern, ok bool) {
	if !ok {
		return
	}
	same := func(q pattern) bool {
		return q.prefix == p.prefix && q.slop == p.slop && slices.Equal(q.tokens, p.tokens)
	}
	if len(l.patterns) < 16 && slices.ContainsFunc(l.patterns, same) {
		return
	}
	l.patterns = append(l.patterns, p)
}

// leaf returns the documents that match a leaf.
func (e *evaluator) leaf(ctx context.Context, l *leaf) (found, error) {
	for _, expr := range l.expressions() {
		p, err := e.match(ctx, expr)
		if err != nil {
			return found{}, err
		}
		l.posting.docs = union(l.posting.docs, p.docs)
		l.posting.chunks += p.chunks
	}
	return found{docs: l.posting.docs, chunks: l.forRank(), leaves: []*leaf{l}}, nil
}

// match returns the documents with a chunk that matches a full-text expression.
func (e *evaluator) match(ctx context.Context, expr string) (posting, error) {
	return e.cached(ctx, "fts "+expr, `SELECT rowid>>`+itoa(chunkBits)+` FROM fts WHERE fts MATCH ?`, expr)
}

// every returns all documents that meet conditions.
func (e *evaluator) every(ctx context.Context, c conditions) (docSet, error) {
	where, args := c.where()
	p, err := e.cached(ctx, "docs "+c.key(), `SELECT d.id FROM docs d WHERE `+where+` ORDER BY d.id`, args...)
	return p.docs, err
}

// cached returns the document numbers that a query selects, in rising order.
// The query must order them; it may return a number more than once. The result
// is cached under key.
func (e *evaluator) cached(ctx context.Context, key, text string, args ...any) (posting, error) {
	if p, ok := e.sets.get(e.generation, key); ok {
		return p, ctx.Err()
	}
	p := posting{docs: docSet{}}
	err := collect(ctx, e.tx, func(rows *sql.Rows) error {
		var doc int64
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		p.chunks++
		if n := len(p.docs); n == 0 || p.docs[n-1] != doc {
			p.docs = append(p.docs, doc)
		}
		return nil
	}, text, args...)
	if err != nil {
		return posting{}, err
	}
	p.docs = slices.Clip(p.docs)
	e.sets.put(e.generation, key, p)
	return p, nil
}

// chunkCount returns the number of chunks in the index.
func (e *evaluator) chunkCount(ctx context.Context) (int, error) {
	const key = "chunks"
	if p, ok := e.sets.get(e.generation, key); ok {
		return p.chunks, nil
	}
	var p posting
	if err := e.tx.QueryRowContext(ctx, `SELECT count(*) FROM chunks`).Scan(&p.chunks); err != nil {
		return 0, err
	}
	e.sets.put(e.generation, key, p)
	return p.chunks, nil
}
