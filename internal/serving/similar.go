package serving

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

const (
	similarTime      = time.Second // for the search
	similarDocuments = 8
	similarChunks    = 64   // that are found; documents with many of them leave no room for others
	similarText      = 1000 // bytes of the text of a document that stand for all of it, about what a model reads
)

// similar returns documents that the caller may read and that are similar in meaning to one
// of them. It returns none if there are no vectors, or if the search takes too long.
func (s *Server) similar(ctx context.Context, id string) ([]console.Similar, error) {
	v := s.viewOf(ctx)
	hit, err := v.documents.Find(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, similarTime)
	defer cancel()
	found, err := v.similar(limited, hit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil, errors.Is(err, errkind.Unsupported), errors.Is(err, errkind.Timeout),
		errors.Is(err, errkind.Unavailable), errors.Is(err, errkind.Busy):
		return found, nil
	}
	return found, err
}

// similar returns documents that are similar in meaning to a document. With an error, it
// returns those that it found before.
func (v *view) similar(ctx context.Context, of *search.Hit) (found []console.Similar, err error) {
	q := search.ChunkQuery{Ranking: search.ByMeaning, Top: similarChunks}
	if q.Labels, q.Written, err = v.storedLabels(ctx); err != nil || len(q.Labels) == 0 {
		return nil, err
	}
	text, err := v.documents.ReadText(ctx, of.ID, nil, 0, similarText)
	if err != nil {
		return nil, err
	}
	whole := strings.ReplaceAll(of.Title+"\n"+text.Window, ":", " ") // conditions on fields are none here
	if q.Text, err = query.Read(whole); err != nil {
		return nil, nil // no letter and no digit
	}
	page, err := v.store().SearchChunks(ctx, q)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{of.ID: true}
	for _, c := range page.Hits {
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		h, err := v.documents.Find(ctx, c.ID, nil)
		if errors.Is(err, errkind.NotFound) { // removed meanwhile
			continue
		}
		if err != nil {
			return found, err
		}
		to := console.Similar{ID: h.ID, Title: h.Title, Path: h.Path, Score: c.Score}
		if len(h.Labels) > 0 {
			to.Source = h.Labels[0]
		}
		if found = append(found, to); len(found) == similarDocuments {
			break
		}
	}
	return found, nil
}

// storedLabels returns the labels of the documents of the view that the data folder has,
// and those of them of which only the documents count that users wrote.
func (v *view) storedLabels(ctx context.Context) (labels, written []string, err error) {
	labels, notes := v.stored(v.sources)
	for _, n := range notes {
		collections, err := n.Collections(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range collections {
			if !slices.Contains(labels, c) {
				labels, written = append(labels, c), append(written, c)
			}
		}
	}
	return labels, written, nil
}
