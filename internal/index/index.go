// Package index is the embedded document store. An SQLite file holds documents,
// their texts and tags, sources and leases, and lists the segments (package
// segment) that searches read. Large segments are files beside it.
//
// The package implements the interfaces of package search over that file. Each
// change is one transaction. Several processes may have the same index open;
// each search reads one consistent state. Documents, texts, tags and sources
// may be the only copy of what users wrote, so every migration of the tables
// keeps them. Segments and vectors are derived and can be rebuilt (see
// [Index.Maintain]).
package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/segment"
)

// FileName is the name of the index file inside the data folder.
const FileName = "knowhow.db"

// maxSearchTime is how long a search may wait for others, evaluate and rank.
// After this time, it returns what it has found, or an error of kind Busy if it
// has only waited.
const maxSearchTime = 2 * time.Second

// Options configures [Open].
type Options struct {
	Dir string       // the data folder; created with mode 0700 if it does not exist
	Log *slog.Logger // nil discards

	// ReadOnly opens an index that exists and cannot be written, for example on a
	// disk that is read-only. Changes give errors of kind Denied. An index that can
	// be written is opened as usual.
	ReadOnly bool

	// Embedder turns queries into vectors. With it, questions also find what
	// is close in meaning, among the chunks that have vectors (see
	// [Index.EmbedNext]). nil means that searches use words only.
	Embedder embed.Embedder

	// EmbedTime is how long a search waits for the vector of its query, before
	// it uses words only; 0 means 50 ms. A search that finds nothing by words
	// waits for at least a second.
	EmbedTime time.Duration
}

// An Index is an open index file. Its methods are safe for concurrent use.
type Index struct {
	path    string
	log     *slog.Logger
	access  access               // to the file
	version int                  // of the tables; see migrations
	w       *sql.DB              // one connection that writes
	r       *sql.DB              // connections that read
	queries map[string]*sql.Stmt // of hotQueries, for r; closed with it

	changes   atomic.Pointer[map[string]*sql.Stmt] // for w; closed with it; see prepareChanges
	preparing sync.Mutex

	damaged atomic.Bool // set when an operation finds damaged pages
	open    openSegments
	popular wordCache // fallback of PopularWords
	counts  searchLog // words that were searched for and are not yet written
	vectors vectors   // what searches by meaning need
	jobs    newJobs

	builders sync.Pool // of empty *segment.Builder

	searchTime   time.Duration // for waiting, matching and ranking in one search
	waitTime     time.Duration // for waiting in one search
	verifiedSize int           // these are as the constants, except in tests
	gatherLimit  int
	expensive    chan struct{} // has a place for each expensive search that runs

	maintaining chan struct{} // has a place for one call of Maintain
	mergeSoon   chan struct{} // one signal for segmentLoop
	rebuildSoon chan struct{} // the same
	verifySoon  chan struct{} // one signal for verifyLoop
	stop        context.CancelFunc
	done        sync.WaitGroup
}

// Open opens the index in a data folder and creates it if there is none. A file
// of an older version of the program is migrated without loss. The error is of
// kind Corrupt for a file that is damaged or not an index, and of kind
// Unsupported for a file of a newer version. Such a file is not changed, and
// the error names it.
func Open(ctx context.Context, o Options) (*Index, error) { return open(ctx, o, migrations) }

// open opens an index and runs the migrations in steps that the file lacks.
func open(ctx context.Context, o Options, steps []migration) (*Index, error) {
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
	x := &Index{path: filepath.Join(dir, FileName), log: o.Log,
		searchTime: maxSearchTime, waitTime: maxSearchTime, verifiedSize: verifiedSize, gatherLimit: gatherLimit,
		maintaining: make(chan struct{}, 1),
		mergeSoon:   make(chan struct{}, 1), rebuildSoon: make(chan struct{}, 1), verifySoon: make(chan struct{}, 1)}
	x.vectors.embedder, x.vectors.limit, x.vectors.loadSoon = o.Embedder, cmp.Or(o.EmbedTime, embedTime), make(chan struct{}, 1)
	x.jobs.adding = make(chan struct{}, 1)
	x.builders.New = func() any { return &segment.Builder{} }
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	err = x.openFile(ctx, steps)
	if o.ReadOnly && errors.Is(err, errkind.Denied) && ctx.Err() == nil {
		err = x.openReadOnly(ctx, steps, err)
	}
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	x.done.Go(func() { x.verifyLoop(background) })
	if o.Embedder != nil {
		x.done.Go(func() { x.loadLoop(background) })
	}
	if x.access != readWrite {
		return x, nil
	}
	x.sweep(ctx)
	signal(x.mergeSoon) // a process that died may have left it undone
	x.done.Go(func() { x.recordSearches(background) })
	x.done.Go(func() { x.segmentLoop(background) })
	return x, nil
}

// openFile opens the connections and runs the migrations in steps that the file
// lacks.
func (x *Index) openFile(ctx context.Context, steps []migration) (err error) {
	if err := cmp.Or(x.checkHeader(), checkFolder(filepath.Join(filepath.Dir(x.path), segmentsDir))); err != nil {
		return err
	}
	if x.w, err = x.connect(1, true); err != nil {
		return err
	}
	readers := min(4, max(2, runtime.GOMAXPROCS(0)))
	if x.r, err = x.connect(readers, false); err != nil {
		return err
	}
	x.expensive = make(chan struct{}, readers-1)                                  // one connection is left for other searches
	if err = x.prepare(ctx, steps); err == nil && len(steps) == len(migrations) { // tests open older tables
		err = x.prepareHot(ctx)
	}
	if err != nil {
		return errors.Join(x.fault("opening the index", err), x.w.Close(), x.r.Close())
	}
	return nil
}

// An access is how SQLite opens the file.
type access string

const (
	readWrite access = ""
	readOnly  access = "mode=ro"             // beside processes that may write
	immutable access = "mode=ro&immutable=1" // nobody writes, and the log is ignored
)

// openReadOnly opens an index that cannot be written. denied is the error of
// opening it for writing.
func (x *Index) openReadOnly(ctx context.Context, steps []migration, denied error) error {
	// SQLite cannot make the files beside the database. If they are there, they are
	// those of a process that writes, or of one that died.
	log, err := os.Stat(x.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.access = immutable
		err = x.openFile(ctx, steps)
	case err == nil:
		x.access = readOnly
		if err = x.openFile(ctx, steps); errors.Is(err, errkind.Denied) && log.Size() == 0 {
			x.access = immutable
			err = x.openFile(ctx, steps)
		}
	}
	switch {
	case errors.Is(err, errkind.Denied) && log != nil && log.Size() > 0:
		return fmt.Errorf("opening the index: %s cannot be written, and the last changes in %s were not completed: "+
			"copy the data folder to a place that can be written, and use the copy: %w", x.path, filepath.Base(x.path)+"-wal", errkind.Denied)
	case errors.Is(err, errkind.Denied):
		return denied
	}
	return err
}

// Close waits for background work to end and closes the file.
func (x *Index) Close() error {
	x.stop()
	x.done.Wait()
	x.closeSegments()
	return errors.Join(x.r.Close(), x.w.Close())
}

// Sizes of one connection's page cache, in KiB. SQLite's memory is not part of
// Go's heap, so the runtime's memory limit does not cover it. Most pages that
// searches read are texts, which a larger cache would rarely have.
const (
	readCache  = 2048
	writeCache = 8192
)

// connect returns a pool of n connections.
func (x *Index) connect(n int, write bool) (*sql.DB, error) {
	cache, wait := readCache, busyWait
	if write {
		cache, wait = writeCache, 0 // see begin
	}
	v := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()), "synchronous(full)", "foreign_keys(1)", "temp_store(memory)",
		fmt.Sprintf("cache_size(-%d)", cache), "journal_size_limit(67108864)", "trusted_schema(0)",
	}, "_dqs": {"0"}, "_defensive": {"1"}}
	if write && x.access == readWrite {
		v.Set("_txlock", "immediate")
	} else {
		v.Set("_query_only", "1")
	}
	// A path may contain characters that are special in a URI. On
	// Windows it has no leading slash.
	path := filepath.ToSlash(x.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	c, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: strings.TrimSuffix(v.Encode()+"&"+string(x.access), "&")}).String())
	if err != nil {
		return nil, fmt.Errorf("opening the index: %w", err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}
