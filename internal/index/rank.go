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

// Limits of the ranking. FTS5's bm25 takes about two microseconds for each
// matching chunk. So chunks that match only common words are skipped if the
// query has rarer words, and the best of the remaining chunks are ranked again
// here, by all words.
const (
	rerank      = 100  // documents that are ranked again
	commonPart  = 0.1  // a word in more than this part of all chunks is common
	commonLeast = 3000 // if it is also in more chunks than this
	maxRanked   = 64   // leaves that are used for ranking
)

// rankedBy selects matching chunks, the best first. The weights are those of
// title, text and tags.
const rankedBy = `SELECT rowid, rank FROM fts WHERE fts MATCH ? AND rank MATCH 'bm25(3.0, 1.0, 0.0)' ORDER BY rank`

// A ranked is a document with its score and its best chunk.
type ranked struct {
	doc   int64
	chunk int64   // row of the chunk, -1 if the document was not ranked by a chunk
	score float64 // decreases from document to document
}

// rank returns at least the first need documents of f by relevance. The order
// of documents does not depend on need: first those with a chunk that meets the
// whole query, then those with a chunk that meets a part of it, then the rest
// by number.
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

// rankLeaves returns the leaves that are used for ranking: the rarest if there
// are too many.
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

// anyOf returns an expression for the chunks that meet any leaf that is not
// common, or the rarest leaf if all are common. common reports whether leaves
// were left out.
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

// best returns up to n documents of docs that are not in seen, ordered by their
// best chunk that matches expr, and adds them to seen.
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

// narrow adds the label to an expression, so that chunks with other labels are
// not ranked. It does so only if most documents have other labels, because bm25
// evaluates every token of an expression, including the label's, over all
// chunks. The isolation of labels does not depend on it: [evaluator.best]
// checks the set of documents.
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

// chain appends more to out and lowers the scores of more below those of out.
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

// Constants of [score]: BM25 in which a word of the title counts three times.
const (
	bmK          = 1.2
	bmB          = 0.75
	usualLength  = 150.0 // words in an average chunk
	titleWeight  = 3.0
	nearBonus    = 0.3 // for two leaves that match next to each other
	nearDistance = 8   // words
)

// rerank orders documents by the scores of their best chunks for all leaves.
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

// score returns the relevance of a chunk: BM25 over title and text, and a bonus
// for leaves that match close together and in the order of the query.
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
		return "", "", nil // postings without their chunk: the next Maintain repairs this
	}
	if err != nil {
		return "", "", err
	}
	text, err = window(ctx, e.tx, row>>chunkBits, off, off+min(n, maxScored))
	return cutBytes(title, titleSize), text, err
}

// maxScored is how many bytes of a chunk are used for ranking and excerpts.
const maxScored = 64 << 10
