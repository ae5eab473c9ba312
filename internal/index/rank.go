package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"knowhow/internal/analysis"
)

// How documents are ranked. FTS5's bm25 costs about two microseconds a
// matching chunk, whether it is wanted or not. So chunks that hold nothing but
// common words are not asked for where rarer ones can be had, and the best of
// those that are left are ranked again here, by all words.
const (
	rerank      = 100  // documents that are ranked again
	commonPart  = 0.1  // a word in more than this part of all chunks is common,
	commonLeast = 3000 // if it is in more chunks than this
	maxRanked   = 64   // conditions on words that count for the ranking
)

// rankedBy is how FTS5 weighs title, text and tags.
const rankedBy = `SELECT rowid, rank FROM fts WHERE fts MATCH ? AND rank MATCH 'bm25(3.0, 1.0, 0.0)' ORDER BY rank`

// A ranked document and the chunk it owes its place to.
type ranked struct {
	doc   int64
	chunk int64   // row of the chunk, -1 where no chunk decided
	score float64 // falls from document to document
}

// rank returns the first need documents of f by relevance, perhaps more. The
// order of documents does not depend on need: first those that have a chunk
// which meets the query by itself, then those with any chunk that meets a part
// of it, then the rest by number.
func (e *evaluator) rank(ctx context.Context, f found, c conditions, need int) ([]ranked, error) {
	leaves := rankLeaves(f.leaves)
	var out []ranked
	seen := map[int64]bool{}
	some, common, err := e.anyOf(ctx, leaves)
	if err != nil {
		return nil, err
	}
	exprs := []string{some}
	if f.chunks != "" && f.chunks != join(expressionsOf(leaves), " OR ") {
		exprs = []string{f.chunks, some}
	}
	for _, expr := range exprs {
		if len(out) >= min(need, len(f.docs)) {
			return out, nil
		}
		top, err := e.best(ctx, expr, f.docs, c, seen, max(need-len(out), rerank))
		if err != nil {
			return nil, err
		}
		if len(leaves) > 1 || common {
			if err := e.rerank(ctx, top[:min(rerank, len(top))], leaves); err != nil {
				return nil, err
			}
		}
		again := min(rerank, len(top))
		out = chain(chain(out, top[:again]), top[again:])
	}
	for _, doc := range f.docs {
		if len(out) >= need {
			break
		}
		if !seen[doc] {
			out = chain(out, []ranked{{doc: doc, chunk: -1}})
		}
	}
	return out, nil
}

// rankLeaves returns the leaves that count, the rarest if there are too many.
func rankLeaves(leaves []*leaf) []*leaf {
	if len(leaves) <= maxRanked {
		return leaves
	}
	leaves = slices.Clone(leaves)
	slices.SortStableFunc(leaves, func(a, b *leaf) int { return cmp.Compare(a.posting.chunks, b.posting.chunks) })
	return leaves[:maxRanked]
}

func expressionsOf(leaves []*leaf) []string {
	out := make([]string, len(leaves))
	for i, l := range leaves {
		out[i] = l.forRank()
	}
	return out
}

// anyOf is the expression for chunks that meet any of the leaves that are not
// common, or the rarest leaf if all are. common says that some were left out.
func (e *evaluator) anyOf(ctx context.Context, leaves []*leaf) (expr string, common bool, err error) {
	all, err := e.chunkCount(ctx)
	if err != nil {
		return "", false, err
	}
	limit := max(commonLeast, int(commonPart*float64(all)))
	var rare []*leaf
	for _, l := range leaves {
		if l.posting.chunks <= limit {
			rare = append(rare, l)
		}
	}
	if len(rare) == 0 {
		rare = []*leaf{slices.MinFunc(leaves, func(a, b *leaf) int { return cmp.Compare(a.posting.chunks, b.posting.chunks) })}
	}
	return join(expressionsOf(rare), " OR "), len(rare) < len(leaves), nil
}

// best returns up to n documents of a set that are not seen yet, by their best
// chunk that matches an expression, and marks them as seen.
func (e *evaluator) best(ctx context.Context, expr string, docs docSet, c conditions, seen map[int64]bool, n int) ([]ranked, error) {
	expr, err := e.narrow(ctx, expr, c)
	if err != nil {
		return nil, err
	}
	rows, err := e.tx.QueryContext(ctx, rankedBy, expr)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []ranked
	for len(out) < n && rows.Next() {
		var r ranked
		if err := rows.Scan(&r.chunk, &r.score); err != nil {
			return nil, err
		}
		r.doc, r.score = r.chunk>>chunkBits, -r.score
		if !seen[r.doc] && docs.contains(r.doc) {
			seen[r.doc] = true
			out = append(out, r)
		}
	}
	return out, rows.Err()
}

// narrow adds the label to an expression, so that chunks outside need not be
// ranked. That pays where most documents are outside: ranking counts every
// token of an expression over all chunks, the label's too. What may be seen
// does not hang on it: [evaluator.best] looks at the set of documents.
func (e *evaluator) narrow(ctx context.Context, expr string, c conditions) (string, error) {
	if c.labels == nil || len(c.labels) > maxAlternatives {
		return expr, nil
	}
	all, err := e.every(ctx, conditions{})
	if err != nil {
		return "", err
	}
	if inside, err := e.every(ctx, c); err != nil || 2*len(inside) > len(all) {
		return expr, err
	}
	ids, err := findTags(ctx, e.tx, tagLabel, c.labels)
	if err != nil || len(ids) == 0 {
		return expr, err
	}
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = quote(tagToken(id))
	}
	return "(" + expr + ") AND (tags : (" + strings.Join(parts, " OR ") + "))", nil
}

// chain puts documents behind others and makes their scores go on falling.
func chain(out, more []ranked) []ranked {
	if len(out) == 0 || len(more) == 0 {
		return append(out, more...)
	}
	last, top := out[len(out)-1].score, more[0].score
	if top <= 0 {
		top = 1
	}
	for _, r := range more {
		r.score = min(max(r.score/top, 0), 1) * last * 0.99
		out = append(out, r)
	}
	return out
}

// Constants of the ranking in Go: BM25 with the title's words counted thrice.
const (
	bmK          = 1.2
	bmB          = 0.75
	usualLength  = 150.0 // words of a chunk
	titleWeight  = 3.0
	nearBonus    = 0.3 // for two conditions met side by side
	nearDistance = 8   // words
)

// rerank orders documents by all leaves, looking at the text of their best
// chunks. Those that come behind in out keep scores below.
func (e *evaluator) rerank(ctx context.Context, top []ranked, leaves []*leaf) error {
	if len(top) == 0 {
		return nil
	}
	all, err := e.chunkCount(ctx)
	if err != nil {
		return err
	}
	idf := make([]float64, len(leaves))
	for i, l := range leaves {
		df := float64(l.posting.chunks)
		idf[i] = l.weight * math.Log(1+max(float64(all)-df+0.5, 0)/(df+0.5))
	}
	for i := range top {
		title, text, err := e.chunkText(ctx, top[i].chunk)
		if err != nil {
			return err
		}
		top[i].score = score(leaves, idf, tokensOf(title), tokensOf(text))
	}
	slices.SortStableFunc(top, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	return nil
}

// tokensOf returns the tokens of a text.
func tokensOf(text string) []string {
	var out []string
	for t := range analysis.Tokens(text) {
		out = append(out, t.Text)
	}
	return out
}

// score is the relevance of a chunk: BM25 over title and text, and a little
// for conditions that are met close together, in the order of the query.
func score(leaves []*leaf, idf []float64, title, text []string) float64 {
	var sum, near float64
	before, beforeIDF := -1, 0.0
	for i, l := range leaves {
		var tf float64
		first := -1
		if l.column != "text" {
			n, _ := l.count(title)
			tf += titleWeight * float64(n)
		}
		if l.column != "title" {
			var n int
			n, first = l.count(text)
			tf += float64(n)
		}
		sum += idf[i] * tf * (bmK + 1) / (tf + bmK*(1-bmB+bmB*float64(len(text))/usualLength))
		if before >= 0 && first > before && first-before <= nearDistance {
			near += nearBonus * min(idf[i], beforeIDF) / float64(first-before)
		}
		before, beforeIDF = first, idf[i]
	}
	return sum + near
}

// chunkText reads the title and the text of a chunk.
func (e *evaluator) chunkText(ctx context.Context, row int64) (title, text string, err error) {
	var off, n int64
	err = e.tx.QueryRowContext(ctx, `SELECT c.off, c.len, d.title FROM chunks c CROSS JOIN docs d ON d.id=c.id>>? WHERE c.id=?`, chunkBits, row).
		Scan(&off, &n, &title)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil // postings without their chunk: a later Maintain mends it
	}
	if err != nil {
		return "", "", err
	}
	text, err = window(ctx, e.tx, row>>chunkBits, off, off+min(n, maxScored))
	return cutBytes(title, titleSize), text, err
}

// maxScored is how many bytes of a chunk are looked at for ranking and
// excerpts.
const maxScored = 64 << 10
