package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// sweepAge is the age from which chunks that no document names are removed.
// Younger ones may belong to a change that is being made.
const sweepAge = time.Hour

// Sweep removes chunks that changes have left behind which were interrupted. It
// reads the revisions of all chunks, so it should be called rarely.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.Open(ctx); err != nil {
		return err
	}
	source := object{"size": pageSize, "sources": []object{{"revision": object{"terms": object{"field": "revision"}}}}}
	for {
		r, err := s.search(ctx, inChunks, object{"size": 0, "aggs": object{"revisions": object{"composite": source}}})
		if err != nil {
			return fmt.Errorf("looking for old chunks: %w", err)
		}
		var page struct {
			After   object `json:"after_key"`
			Buckets []struct {
				Key struct {
					Revision string `json:"revision"`
				} `json:"key"`
			} `json:"buckets"`
		}
		if err := json.Unmarshal(r.Aggregations["revisions"], &page); err != nil {
			return notOpenSearch("/_search")
		}
		var old []string
		for _, b := range page.Buckets {
			if revisionTime(b.Key.Revision).Before(time.Now().Add(-sweepAge)) {
				old = append(old, b.Key.Revision)
			}
		}
		if err := s.sweep(ctx, old); err != nil {
			return fmt.Errorf("removing old chunks: %w", public(err))
		}
		if page.After == nil || len(page.Buckets) == 0 {
			return nil
		}
		source["after"] = page.After
	}
}

// sweep removes the chunks of those of some revisions that no document names.
func (s *Store) sweep(ctx context.Context, revisions []string) error {
	if len(revisions) == 0 {
		return nil
	}
	r, err := s.search(ctx, inDocuments, object{"size": len(revisions), "_source": []string{"revision"}, "query": oneOf("revision", revisions)})
	if err != nil {
		return err
	}
	rows, err := r.rows()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, r := range rows {
		named[r.Revision] = true
	}
	var gone []string
	for _, revision := range revisions {
		if !named[revision] {
			gone = append(gone, revision)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return s.client.do(ctx, http.MethodPost, "/"+s.names().chunks+"/_delete_by_query", map[string][]string{"conflicts": {"proceed"}, "refresh": {"true"}},
		object{"query": oneOf("revision", gone)}, nil)
}

// revisionTime returns the time of a revision, or the zero time if it has none.
func revisionTime(revision string) time.Time {
	if len(revision) < 11 {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(revision[:11], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
