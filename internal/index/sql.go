package index

import (
	"context"
	"database/sql"
	"slices"

	"knowhow/internal/index/database"
	"knowhow/internal/index/queue"
	"knowhow/internal/index/segments"
)

type (
	querier    = database.Querier
	preparedTx = database.Prepared
)

// hotQueries are prepared once for each connection that reads.
var hotQueries = slices.Concat(segments.Reads, queue.Reads, []string{
	columnQuery("modified"), hitRowsQuery, partsQuery, partQuery, chunkRowsQuery, placesQuery, languageQuery})

// collect runs a query and calls scan for each row.
func collect(ctx context.Context, q querier, scan func(*sql.Rows) error, text string, args ...any) error {
	return database.Collect(ctx, q, scan, text, args...)
}

// read runs f in a transaction that sees one state of the index.
func (x *Index) read(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.db.Read(ctx, op, f)
}

// write runs f in a durable transaction. op names the operation in errors.
func (x *Index) write(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.db.Write(ctx, op, f)
}

// prepared returns the form of a transaction that uses prepared statements.
func (x *Index) prepared(tx *sql.Tx) *preparedTx { return x.db.Prepared(tx) }

// readSegments is read for a function that reads segments. If another process
// merges segments away meanwhile, the function is called again with a later
// state. A damaged segment is built again in the background, and the function
// is called again without it.
func (x *Index) readSegments(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.segments.Retry(ctx, func() error { return x.read(ctx, op, f) })
}
