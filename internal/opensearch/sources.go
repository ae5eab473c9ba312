package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// sourceRow is what the IDs of the rows of sources begin with.
const sourceRow = "source-"

// A claim is a source, and the data folder that indexes it.
type claim struct {
	Source document.Source `json:"source"`
	Owner  string          `json:"owner"` // an ID of the data folder
	Host   string          `json:"host"`  // the name of its machine, for people
}

// ClaimSource records that a data folder, which has the ID owner and is on a
// machine named host, indexes a source. The error is of kind Conflict if another
// data folder indexes a source with the same label, because each would remove the
// documents of the other.
func (s *Store) ClaimSource(ctx context.Context, src document.Source, owner, host string) error {
	if err := s.Open(ctx); err != nil {
		return err
	}
	path := "/" + s.index(inState) + "/_doc/" + url.PathEscape(sourceRow+src.Label)
	for {
		var row struct {
			version
			Source struct {
				Kept claim `json:"kept"`
			} `json:"_source"`
		}
		params := url.Values{"refresh": {"true"}}
		err := s.client.do(ctx, http.MethodGet, path, nil, nil, &row)
		known := row.Source.Kept
		switch {
		case errors.Is(err, errMissing):
			params.Set("op_type", "create")
		case err != nil:
			return fmt.Errorf("recording a source: %w", err)
		case known.Owner != owner:
			return fmt.Errorf("the label %q belongs in this store to the folder %s of the machine %s: %w", src.Label,
				known.Source.Path, known.Host, errkind.Conflict)
		default:
			params.Set("if_seq_no", fmt.Sprint(row.Seq))
			params.Set("if_primary_term", fmt.Sprint(row.Term))
		}
		err = s.client.do(ctx, http.MethodPut, path, params, object{"kept": claim{src, owner, host}}, nil)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("recording a source: %w", err)
		}
		return nil
	}
}

// Sources returns the sources of all data folders, sorted by label.
func (s *Store) Sources(ctx context.Context) ([]document.Source, error) {
	claims, err := s.claims(ctx)
	var out []document.Source
	for _, c := range claims {
		out = append(out, c.Source)
	}
	slices.SortFunc(out, func(a, b document.Source) int { return strings.Compare(a.Label, b.Label) })
	return out, err
}

func (s *Store) claims(ctx context.Context) ([]claim, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.search(ctx, inState, object{"size": maxValues})
	if err != nil {
		return nil, fmt.Errorf("listing the sources: %w", err)
	}
	var out []claim
	for _, h := range r.Hits.Hits {
		if !strings.HasPrefix(h.ID, sourceRow) {
			continue
		}
		var row struct {
			Kept claim `json:"kept"`
		}
		if err := json.Unmarshal(h.Source, &row); err != nil {
			return nil, damaged(err)
		}
		out = append(out, row.Kept)
	}
	return out, nil
}

// RemoveSource removes a source and its documents, and returns how many there
// were. The error is of kind NotFound if there is no such source.
func (s *Store) RemoveSource(ctx context.Context, label string) (documents int, err error) {
	if err := s.Open(ctx); err != nil {
		return 0, err
	}
	path := "/" + s.index(inState) + "/_doc/" + url.PathEscape(sourceRow+label)
	err = s.client.do(ctx, http.MethodDelete, path, url.Values{"refresh": {"true"}}, nil, nil)
	known := err == nil
	if err != nil && !errors.Is(err, errMissing) {
		return 0, fmt.Errorf("removing a source: %w", err)
	}
	for {
		stamps, err := s.Stamps(ctx, label)
		if err != nil {
			return documents, err
		}
		if len(stamps) == 0 {
			break
		}
		var changes []document.Change
		for p := range stamps {
			changes = append(changes, document.Change{Delete: &document.Ref{Label: label, Path: p}})
		}
		if err := s.Apply(ctx, changes); err != nil {
			return documents, err
		}
		documents += len(stamps)
	}
	if !known && documents == 0 {
		return 0, fmt.Errorf("no source has the label %q: %w", label, errkind.NotFound)
	}
	return documents, nil
}

// Stats is how much a store holds.
type Stats struct {
	Documents int
	Chunks    int
	TextBytes int64 // of all texts
	DiskBytes int64 // of the indexes, on all nodes
	ByLabel   map[string]LabelStats
}

// LabelStats is how much a store holds under one label.
type LabelStats struct {
	Documents int
	TextBytes int64
	Languages map[string]int // documents by ISO 639-1 code; "" if it is not known
}

// Stats counts documents, chunks and bytes.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	out := Stats{ByLabel: map[string]LabelStats{}}
	if err := s.Open(ctx); err != nil {
		return out, err
	}
	r, err := s.search(ctx, inDocuments, object{"size": 0, "track_total_hits": true, "aggs": object{
		"labels": object{"terms": object{"field": "label", "size": maxValues}, "aggs": object{
			"langs": object{"terms": object{"field": "lang", "size": maxValues}},
			"size":  object{"sum": object{"field": "text_size"}}}},
		"chunks": object{"sum": object{"field": "chunk_count"}}}})
	if err != nil {
		return out, fmt.Errorf("counting documents: %w", err)
	}
	var agg struct {
		Buckets []struct {
			bucket
			Langs struct {
				Buckets []bucket `json:"buckets"`
			} `json:"langs"`
			Size struct {
				Value float64 `json:"value"`
			} `json:"size"`
		} `json:"buckets"`
	}
	if err := json.Unmarshal(r.Aggregations["labels"], &agg); err != nil {
		return out, notOpenSearch("/_search")
	}
	for _, b := range agg.Buckets {
		l := LabelStats{Documents: b.Count, TextBytes: int64(b.Size.Value), Languages: map[string]int{}}
		for _, lang := range b.Langs.Buckets {
			l.Languages[lang.text()] = lang.Count
		}
		out.ByLabel[b.text()] = l
		out.TextBytes += l.TextBytes
	}
	out.Documents, out.Chunks = r.Hits.Total.Value, r.value("chunks")
	var stats struct {
		All struct {
			Total struct {
				Store struct {
					Size int64 `json:"size_in_bytes"`
				} `json:"store"`
			} `json:"total"`
		} `json:"_all"`
	}
	path := "/" + s.alias(inDocuments)
	if s.HasVectors() {
		path += "," + s.alias(inVectors)
	}
	if err := s.client.do(ctx, http.MethodGet, path+"/_stats/store", nil, nil, &stats); err != nil {
		return out, fmt.Errorf("asking for the size of the store: %w", public(err))
	}
	out.DiskBytes = stats.All.Total.Store.Size
	return out, nil
}

// CopySources records the sources of a store, and which data folders index them,
// in another one.
func (s *Store) CopySources(ctx context.Context, to *Store) error {
	claims, err := s.claims(ctx)
	for _, c := range claims {
		if err == nil {
			err = to.ClaimSource(ctx, c.Source, c.Owner, c.Host)
		}
	}
	return err
}
