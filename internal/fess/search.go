package fess

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Search implements [search.Service]. Fess joins the words of a plain query with
// AND. It counts at most 10,000 matches: AtLeast is set if there are more.
func (c *Client) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rest, err := conditions(q)
	if err != nil {
		return nil, err
	}
	if q.Labels != nil && len(q.Labels) == 0 || len(q.Text.Options()) > 0 {
		return nothing(q), nil // Fess does not index hyphens
	}
	text, err := textParams(q.Text.String(), q.Labels)
	if err != nil {
		return nil, err
	}
	a, err := c.page(ctx, q, text, rest)
	if err != nil {
		return nil, err
	}
	return pageOf(a, q), nil
}

// nothing returns the page for a query that no document can match.
func nothing(q search.Query) *search.Page {
	p := &search.Page{Hits: []search.Hit{}}
	if q.Facets != nil {
		p.Facets = countsOf(&wire.Page{}, q.Facets)
	}
	return p
}

// page requests the hits of q. It makes several requests if the maximum page
// size of the server (paging.search.page.max.size), which is only known from
// page_size in the answer, is smaller than q.Num.
func (c *Client) page(ctx context.Context, q search.Query, text, rest []param) (*wire.Page, error) {
	ask := func(start, num int) (*wire.Page, error) {
		params := append(text[:len(text):len(text)],
			param{wire.Start, strconv.Itoa(start)}, param{wire.Num, strconv.Itoa(num)})
		return c.documents(ctx, append(params, rest...), q.Facets)
	}
	a, err := ask(q.Start, max(q.Num, 1))
	if err != nil {
		return nil, err
	}
	size := int(a.PageSize)
	if size <= 0 || size >= q.Num {
		return a, nil
	}
	if !c.sawCapped.Swap(true) {
		c.log.WarnContext(ctx,
			"the Fess server returns fewer hits on a page than requested, so several requests are made",
			"asked", q.Num, "given", size)
	}
	for got := size; got < q.Num && q.Start+got < int(a.RecordCount); got += size {
		more, err := ask(q.Start+got, min(size, q.Num-got))
		if err != nil {
			return nil, err
		}
		if len(more.Data) == 0 {
			break
		}
		a.Data = append(a.Data, more.Data...)
	}
	return a, nil
}

// documents makes one search request. If the engine fails, Fess answers with
// status 200, no hits, a query time of 0 and none of the requested facets
// (RankFusionProcessor, 15.4 and later). Such an answer is accepted only if the
// server is healthy.
func (c *Client) documents(ctx context.Context, params []param, facets *search.Facets) (*wire.Page, error) {
	answer, err := c.get(ctx, question{to: documentsCall, params: params})
	if err != nil {
		return nil, err
	}
	a, err := decodePage(answer)
	if err != nil {
		return nil, err
	}
	counted := facets != nil && len(facets.Fields)+len(facets.Queries) > 0
	if a.RecordCount > 0 || a.QueryTime > 0 || counted && a.FacetFields != nil {
		return a, nil
	}
	c.log.DebugContext(ctx, "an empty answer with query time 0: checking the server's health")
	h, err := c.Health(ctx)
	switch {
	case err != nil:
		return nil, engineDown(answer.path, err)
	case h.Status == "red":
		return nil, &errkind.Remote{Kind: errkind.Unavailable, Endpoint: answer.path,
			Status:  http.StatusServiceUnavailable,
			Message: "the Fess server's search engine is in state red and found nothing; see the server's log"}
	case counted:
		return nil, &errkind.Remote{Kind: errkind.Unavailable, Endpoint: answer.path, Status: http.StatusBadGateway,
			Message: "the Fess server failed to count the facets without a reason; search without facets, or see its " +
				"log"}
	}
	return a, nil
}

// engineDown returns the failure of a health check as the failure of the search
// before it.
func engineDown(path string, err error) error {
	r, ok := errors.AsType[*errkind.Remote](err)
	if !ok || r.Status != http.StatusInternalServerError {
		return err
	}
	down := *r
	down.Endpoint, down.Status = path, http.StatusServiceUnavailable
	return &down
}
