package index

import (
	"context"
	"database/sql"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// EmbedNext computes vectors of chunks; see [vectors.Store.EmbedNext].
func (x *Index) EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error) {
	return x.vectors.EmbedNext(ctx, e, labels, n)
}

// Embedded counts the chunks with a vector; see [vectors.Store.Embedded].
func (x *Index) Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error) {
	return x.vectors.Embedded(ctx, e, labels)
}

// SetVectorTime stores the estimated time until all chunks have vectors, for the
// [Stats] of all processes; 0 removes it.
func (x *Index) SetVectorTime(ctx context.Context, left time.Duration) error {
	return x.vectors.SetTimeLeft(ctx, left)
}

// Embedding returns how many chunks have a vector while vectors are being computed;
// see [search.Indexer].
func (x *Index) Embedding(ctx context.Context, labels []string) (done, total int, err error) {
	var left time.Duration
	if err := x.db.Read(ctx, "reading the time left for vectors", func(tx *sql.Tx) error {
		var err error
		left, err = vectors.TimeLeft(ctx, tx)
		return err
	}); err != nil || left == 0 || x.embedder == nil {
		return 0, 0, err
	}
	return x.Embedded(ctx, x.embedder, labels)
}

// Vectors returns the state of the vectors of documents with one of the labels
// (nil: all), by the embedder of the index. See [Index.Embedded] for its cost.
func (x *Index) Vectors(ctx context.Context, labels []string) (search.VectorState, error) {
	e := x.embedder
	if e == nil {
		return search.VectorState{}, nil
	}
	s := search.VectorState{Model: e.ID(), Dimensions: e.Dimension()}
	var err error
	s.Embedded, s.Chunks, err = x.Embedded(ctx, e, labels)
	return s, err
}
