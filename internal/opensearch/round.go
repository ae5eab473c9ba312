package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"knowhow/internal/errkind"
)

// A kind is one of the indexes of a store.
type kind int

const (
	inDocuments kind = iota
	inChunks
	inState
)

// A round is searches that do not need the results of each other, so that they
// can be sent in one request.
type round struct {
	s    *Store
	list []roundSearch
}

type roundSearch struct {
	in   kind
	body object
	then func(*result) error
}

// add adds a search. send calls then with its result.
func (r *round) add(in kind, body object, then func(*result) error) {
	r.list = append(r.list, roundSearch{in, body, then})
}

// send sends the searches and uses their results in order. Without searches, it
// sends nothing.
func (r *round) send(ctx context.Context) error {
	var results []*result
	var err error
	switch len(r.list) {
	case 0:
		return ctx.Err()
	case 1:
		results = make([]*result, 1)
		results[0], err = r.s.search(ctx, r.list[0].in, r.list[0].body)
	default:
		err = r.s.present(ctx, func(in names) (err error) {
			results, err = r.s.searchAll(ctx, in, r.list)
			return err
		})
	}
	for i, x := range r.list {
		if err == nil {
			err = x.then(results[i])
		}
	}
	r.list = nil
	return err
}

// searchAll sends several searches in one request. The error is the first one of
// a search.
func (s *Store) searchAll(ctx context.Context, in names, list []roundSearch) ([]*result, error) {
	const path = "/_msearch"
	var body bytes.Buffer
	out := json.NewEncoder(&body)
	out.SetEscapeHTML(false)
	for _, x := range list {
		header := object{"index": in.of(x.in), "allow_partial_search_results": false}
		if err := errors.Join(out.Encode(header), out.Encode(x.body)); err != nil {
			return nil, fmt.Errorf("writing a request to OpenSearch: %w", err)
		}
	}
	var results []*result
	err := s.client.again(ctx, func() error {
		var answer struct {
			Responses []struct {
				result
				Status int             `json:"status"`
				Error  json.RawMessage `json:"error"`
			} `json:"responses"`
		}
		if err := s.client.once(ctx, http.MethodPost, path, lessOfSearches, "application/x-ndjson", body.Bytes(), &answer); err != nil {
			if errors.Is(err, errMissing) {
				err = notOpenSearch(path)
			}
			return err
		}
		if len(answer.Responses) != len(list) {
			return notOpenSearch(path)
		}
		results = make([]*result, len(list))
		for i := range answer.Responses {
			a := &answer.Responses[i]
			if a.Error != nil {
				var f failure
				_ = json.Unmarshal(a.Error, &f) // a text instead of an object has no type
				return f.error(path, a.Status)
			}
			results[i] = &a.result
		}
		return nil
	})
	return results, err
}

// What is left out of the answers to searches: only the sums of twins are used.
var (
	lessOfSearch   = url.Values{"allow_partial_search_results": {"false"}, "filter_path": {"-took,-timed_out,-_shards,-hits.hits._index,-aggregations.twins,-aggregations.complete.twins"}}
	lessOfSearches = url.Values{"filter_path": {"-took,-responses.took,-responses.timed_out,-responses._shards,-responses.hits.hits._index,-responses.aggregations.twins,-responses.aggregations.complete.twins"}}
)

// search sends a search to an index. If another process has replaced the indexes,
// it is sent to the new ones, which have the same revisions.
func (s *Store) search(ctx context.Context, in kind, body object) (*result, error) {
	var r *result
	err := s.present(ctx, func(n names) (err error) {
		r, err = s.searchIn(ctx, n.of(in), body)
		return err
	})
	return r, err
}

// searchIn sends a search to an index with a name.
func (s *Store) searchIn(ctx context.Context, index string, body object) (*result, error) {
	r := &result{}
	path := "/" + index + "/_search"
	// allow_partial_search_results makes a search fail instead of leaving out the
	// documents of a shard that is missing.
	err := s.client.do(ctx, http.MethodPost, path, lessOfSearch, body, r)
	if errors.Is(err, errMissing) {
		err = notOpenSearch(path)
	}
	return r, err
}

// again calls f until it returns another error than that the cluster is too busy.
func (c *client) again(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if !errors.Is(err, errkind.Busy) || n == attempts {
			return err
		}
		if err := wait(ctx, firstPause<<(n-1)); err != nil {
			return err
		}
	}
}
