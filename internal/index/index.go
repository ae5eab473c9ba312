// Package index is the embedded document store. An SQLite file holds documents,
// their texts and tags, sources and leases, and lists the segments (package
// segment) that searches read. Large segments are files beside it.
//
// The package implements the interfaces of package search over that file. Each
// change is one transaction. Several processes may have the same index open;
// each search reads one consistent state. Documents, texts, tags and sources
// may be the only copy of what users wrote, so every upgrade of the tables keeps
// them. Segments and vectors are derived and can be rebuilt (see
// [Index.Maintain]).
package index

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
)

// FileName is the name of the index file inside the data folder.
const FileName = "knowhow.db"

// ErrOlder is the error for an index of an older version that is opened without being
// upgraded.
var ErrOlder = database.ErrOlder

// maxSearchTime is how long a search may wait for others, evaluate and rank.
// After this time, it returns what it has found, or an error of kind Busy if it
// has only waited.
const maxSearchTime = 2 * time.Second

// embedTime is how long a search waits for the vector of its query, by default.
const embedTime = 50 * time.Millisecond

// Options configures [Open].
type Options struct {
	Dir string       // the data folder; created with mode 0700 if it does not exist
	Log *slog.Logger // nil discards

	// ReadOnly opens an index that exists and cannot be written, for example on a
	// disk that is read-only. Changes give errors of kind Denied. An index that can
	// be written is opened as usual.
	ReadOnly bool

	// Inspect opens an index that exists without changing anything, as if it could not
	// be written. For one of an older version the error is ErrOlder.
	Inspect bool

	// Embedder turns queries into vectors. With it, questions also find what
	// is close in meaning, among the chunks that have vectors (see
	// [Index.EmbedNext]). nil means that searches use words only.
	Embedder embed.Embedder

	// EmbedTime is how long a search waits for the vector of its query, before
	// it uses words only; 0 means 50 ms. A search that finds nothing by words
	// waits for at least a second.
	EmbedTime time.Duration

	// ComputeTime is how long a search computes the vectors that its best documents by
	// words lack, which are then stored; 0 means that it computes none.
	ComputeTime time.Duration
}

// An Index is an open index file. Its methods are safe for concurrent use.
type Index struct {
	dir         string // the data folder
	db          *database.DB
	log         *slog.Logger
	segments    *segments.Store
	popular     wordCache // fallback of PopularWords
	counts      searchLog // words that were searched for and are not yet written
	vectors     *vectors.Store
	embedder    embed.Embedder // nil: searches use words only
	embedTime   time.Duration  // for embedding a query
	computeTime time.Duration  // for vectors of documents
	queue       *queue.Queue

	searchTime time.Duration // for waiting, matching and ranking in one search
	waitTime   time.Duration // for waiting in one search
	expensive  chan struct{} // has a place for each expensive search that runs

	stop context.CancelFunc
	done sync.WaitGroup
}

// Open opens the index in a data folder and creates it if there is none. A file
// of an older version of the program is upgraded without loss. The error is of
// kind Corrupt for a file that is damaged or not an index, and of kind
// Unsupported for a file of a newer version or of one before the first release.
// Such a file is not changed, and the error names it.
func Open(ctx context.Context, o Options) (*Index, error) {
	return open(ctx, o, setup{schema: schema})
}

// A setup has the values that tests change.
type setup struct {
	schema   database.Schema
	segments segments.Options
}

func open(ctx context.Context, o Options, s setup) (*Index, error) {
	if o.Dir == "" {
		return nil, &errkind.Argument{Name: "data", Want: "a folder"}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, errkind.Disk("making "+o.Dir, fmt.Errorf("making the data folder: %w", err))
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := database.CheckFolder(filepath.Join(dir, segments.Dir)); err != nil {
		return nil, err
	}
	x := &Index{dir: dir, log: o.Log, embedder: o.Embedder, embedTime: cmp.Or(o.EmbedTime, embedTime),
		computeTime: o.ComputeTime, searchTime: maxSearchTime, waitTime: maxSearchTime}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	x.db, err = database.Open(ctx, database.Options{
		Path: filepath.Join(dir, FileName), Schema: s.schema, ReadOnly: o.ReadOnly, Inspect: o.Inspect,
		Reads: hotQueries, Log: x.log,
	})
	if err != nil {
		return nil, err
	}
	x.queue = queue.New(x.db)
	x.segments = segments.New(segments.Options{
		DB: x.db, Documents: storedDocuments{}, Leases: x, Log: x.log,
		Progress: func(ctx context.Context, done, total int) {
			_ = x.SetProgress(ctx, Progress{Done: done, Total: total})
		},
		VerifiedSize: s.segments.VerifiedSize, BuildLimit: s.segments.BuildLimit,
	})
	x.vectors = vectors.New(vectors.Options{DB: x.db, Embedder: o.Embedder, Log: x.log, Text: window,
		Generation: segments.Generation})
	x.expensive = make(chan struct{}, x.db.Readers()-1) // one connection is left for other searches
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	if x.db.Writable() {
		x.segments.Sweep(ctx)
	}
	x.done.Go(func() { x.segments.Run(background) })
	if o.Embedder != nil {
		x.done.Go(func() { x.vectors.Run(background) })
	}
	if !x.db.Writable() {
		return x, nil
	}
	x.done.Go(func() { x.recordSearches(background) })
	return x, nil
}

// Close waits for background work to end and closes the file.
func (x *Index) Close() error {
	x.stop()
	x.done.Wait()
	x.segments.Close()
	return x.db.Close()
}

// Maintain builds missing segments; see [segments.Store.Maintain].
func (x *Index) Maintain(ctx context.Context, progress func(done, total int)) error {
	return x.segments.Maintain(ctx, progress)
}
