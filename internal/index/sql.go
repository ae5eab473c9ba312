package index

import (
	"context"
	"database/sql"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
)

// hotQueries are prepared once for each connection that reads.
var hotQueries = slices.Concat(segments.Reads, queue.Reads, []string{
	columnQuery("modified"), hitRowsQuery, partsQuery, partQuery, chunkRowsQuery, placesQuery, traitsQuery})

// readSegments is read for a function that reads segments. If another process
// merges segments away meanwhile, the function is called again with a later
// state. A damaged segment is built again in the background, and the function
// is called again without it.
func (x *Index) readSegments(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.segments.Retry(ctx, func() error { return x.db.Read(ctx, op, f) })
}
