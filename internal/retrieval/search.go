package retrieval

import (
	"context"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Search returns one page of the documents that match a valid query; see
// [search.Service].
//
// Words are joined by AND over the whole document. Words that every question
// has do not count in a plain query. For a plain query of three words or more,
// some of its words are enough. A query for everything gives the newest documents
// first unless it says otherwise.
func Search(ctx context.Context, s Store, q search.Query, o Options) (*search.Page, error) {
	r := &Request{Query: q, Plan: newPlan(q.Text, o.Languages, false), Depth: q.Start + q.Num}
	if q.Num == 0 {
		r.Depth = 0
	}
	byScore := isByScore(q.Sort)
	if byScore && r.Depth > 0 && !r.Plan.isSingle() {
		r.Depth = max(r.Depth, NearHits)
	}
	x := &finder{store: s, o: o, r: r, meaning: r.Plan.Some && byScore, words: nearWords, near: nearCosine}
	c, similar, err := x.find(ctx)
	if err != nil {
		return nil, err
	}
	page := &search.Page{Total: c.Total, Partial: c.Partial, AtLeast: c.Partial, Facets: c.Facets, DidYouMean: similar}
	if r.Plan.Some {
		page.Staged, page.AllWords = true, c.Complete
		if len(c.Missing)*missingPart >= len(r.Plan.Words) {
			page.Missing = c.Missing
		}
	}
	list := c.Documents
	if byScore {
		list = rank(r.Plan, c)
	}
	list = list[min(q.Start, len(list)):min(q.Start+q.Num, len(list))]
	if len(list) == 0 {
		return page, nil
	}
	page.Hits, err = Read(ctx, s, r, list)
	return page, err
}

// missingPart is the part of the words of a query, as a divisor, from which those that
// no document has are reported.
const missingPart = 3

// isByScore reports whether documents are ordered by relevance, best first.
func isByScore(keys []search.SortKey) bool {
	return len(keys) == 0 || keys[0] == search.SortKey{Field: "score", Desc: true}
}

// emptyWait is how long a search that finds nothing by words waits for its vector at
// least.
const emptyWait = time.Second

// A finder gathers the candidates of one search.
type finder struct {
	store   Store
	o       Options
	r       *Request
	meaning bool    // documents are found by meaning, too
	words   int     // that count, for a query that finds documents without any of them
	near    float64 // least cosine of these
}

// find gathers candidates. If words are in no document, it returns the similar words
// of documents and gathers again.
func (x *finder) find(ctx context.Context) (c *Candidates, similar []string, err error) {
	r := x.r
	if x.meaning {
		if err := x.embed(ctx, x.o.Wait); err != nil {
			return nil, nil, err
		}
	}
	if c, err = x.store.Gather(ctx, r); err != nil || r.Plan.Words == nil {
		return c, nil, err
	}
	again := false
	if x.meaning && r.Vector == nil && x.extends() && c.Complete == 0 { // words alone do not answer the query
		if err := x.embed(ctx, max(x.o.Wait, emptyWait)); err != nil {
			return nil, nil, err
		}
		again = r.Vector != nil
	}
	if len(c.Missing) > 0 {
		again = r.Plan.Some && r.Plan.addPieces(c.Missing) || again
		words, of := lookedUp(c.Missing)
		if len(words) > 0 {
			near, err := x.store.Similar(ctx, words)
			if err != nil {
				return nil, nil, err
			}
			n := len(r.Plan.Extra)
			similar = r.Plan.didYouMean(near, of)
			again = again || len(r.Plan.Extra) > n && c.Total > 0
		}
	}
	if again {
		partial := c.Partial
		if c, err = x.store.Gather(ctx, r); err != nil {
			return nil, nil, err
		}
		c.Partial = c.Partial || partial
	}
	return c, similar, nil
}

// extends reports whether documents without a word of the query may match.
func (x *finder) extends() bool { return len(x.r.Plan.Words) >= x.words }

// embed sets the vector of the query, if it is there within limit.
func (x *finder) embed(ctx context.Context, limit time.Duration) error {
	if x.o.Vector == nil {
		return nil
	}
	v, err := x.o.Vector(ctx, x.r.Text.Plain(), limit)
	if err != nil && ctx.Err() == nil {
		x.o.Log.Debug("a query was ranked by words only", "error", err)
		return nil
	}
	if x.r.Vector = v; v != nil && x.r.Depth > 0 {
		x.r.Depth = max(x.r.Depth, Fused)
	}
	if v != nil && x.extends() {
		x.r.Near = x.near
	}
	return err
}

// Read returns the hits for documents, with passages and digests. It leaves out
// documents that do not exist any more.
func Read(ctx context.Context, s Store, r *Request, list []Document) ([]search.Hit, error) {
	contents, err := s.Read(ctx, r, list)
	if err != nil {
		return nil, err
	}
	hits := contents.Hits()
	all, inText, inTitle := contents.Conditions()
	size := passage.TextDigest
	if r.Passages > 0 {
		size = passage.ShortDigest
		chunks, err := contents.Chunks(ctx)
		if err != nil {
			return nil, err
		}
		best := passageChunks(list, chunks, passage.Full(all))
		passages, err := passage.Choose(ctx, contents, len(list), best, all, r.Passages)
		if err != nil {
			return nil, err
		}
		for i := range hits {
			hits[i].Passages = passages[i]
		}
	}
	var places []int // without passages
	for i := range hits {
		if len(hits[i].Passages) == 0 {
			places = append(places, i)
		}
	}
	texts, err := contents.Beginnings(ctx, places)
	if err != nil {
		return nil, err
	}
	var wanted, wantedInTitle *analysis.Wanted
	if len(all) > 0 {
		wanted, wantedInTitle = passage.Wanted(inText), passage.Wanted(inTitle)
	}
	for i, place := range places {
		hits[place].Digest = passage.Digest(texts[i], languageOf(&hits[place]), wanted, size)
	}
	out := hits[:0]
	for i := range hits {
		h := &hits[i]
		if h.ID == "" {
			continue
		}
		h.TitleExcerpt = passage.Digest(h.Title, languageOf(h), wantedInTitle, passage.TitleDigest)
		if len(r.Sort) == 0 || r.Sort[0].Field == "score" {
			h.Score = list[i].Score
		}
		out = append(out, *h)
	}
	return out, nil
}

// languageOf returns the language of a hit.
func languageOf(h *search.Hit) analysis.Language {
	if len(h.Langs) == 0 {
		return analysis.English
	}
	return analysis.LanguageOf(h.Langs[0])
}
