// Package index is the embedded store: one SQLite file that holds documents,
// their texts and tags, the postings for full-text search, sources and leases.
//
// It implements package search over that file, and ingestion stores documents
// in it. One transaction covers everything that a change touches. Several
// processes may have one index open at once; each search reads one consistent
// state. Documents, texts, tags and sources may be the only copy of what users
// wrote: they outlive every new version of the tables. Postings, words and
// vectors are derived and can be made again (see [Index.Maintain]).
package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

	"knowhow/internal/errkind"
)

// FileName is the name of the index file inside the data folder.
const FileName = "knowhow.db"

// Options say where an index lies.
type Options struct {
	Dir string       // the data folder; made with mode 0700 where it is missing
	Log *slog.Logger // nil discards
}

// An Index is an open index file. Its methods are safe for concurrent use.
type Index struct {
	path    string
	log     *slog.Logger
	version int     // of the tables; see migrations
	w       *sql.DB // one connection that writes
	r       *sql.DB // connections that read

	damaged atomic.Bool // whether an operation met damaged pages
	sets    setCache    // sets of documents by word
	popular wordCache   // fallback of PopularWords
	counts  searchLog   // words searched for, not yet written

	stop context.CancelFunc
	done sync.WaitGroup
}

// Open opens the index in a data folder and makes it where there is none. A
// file that an older version of the program wrote is migrated; it keeps all
// that it holds. A file that is no index or is damaged gives an error of kind
// Corrupt, one of a newer program an error of kind Unsupported; such a file is
// left as it is, and the error names it.
func Open(ctx context.Context, o Options) (*Index, error) { return open(ctx, o, migrations) }

// open opens an index and brings it to the version that the steps lead to.
func open(ctx context.Context, o Options, steps []migration) (*Index, error) {
	if o.Dir == "" {
		return nil, &errkind.Argument{Name: "data", Want: "a folder"}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder: %w", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	x := &Index{path: filepath.Join(dir, FileName), log: o.Log}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	if err := x.checkHeader(); err != nil {
		return nil, err
	}
	if x.w, err = x.connect(1, true); err != nil {
		return nil, err
	}
	if x.r, err = x.connect(min(4, max(2, runtime.GOMAXPROCS(0))), false); err != nil {
		return nil, err
	}
	if err := x.prepare(ctx, steps); err != nil {
		return nil, errors.Join(x.fault("opening the index", err), x.w.Close(), x.r.Close())
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	x.done.Go(func() { x.recordSearches(background) })
	return x, nil
}

// Close waits for what is running in the background and closes the file.
func (x *Index) Close() error {
	x.stop()
	x.done.Wait()
	return errors.Join(x.r.Close(), x.w.Close())
}

// cacheKiB is the page cache of one connection. SQLite's memory is outside
// Go's heap, so that no memory limit of the runtime covers it.
const cacheKiB = 8192

// connect returns a pool of n connections.
func (x *Index) connect(n int, write bool) (*sql.DB, error) {
	v := url.Values{"_pragma": {
		"busy_timeout(10000)", "synchronous(full)", "foreign_keys(1)", "temp_store(memory)",
		fmt.Sprintf("cache_size(-%d)", cacheKiB), "journal_size_limit(67108864)", "trusted_schema(0)",
	}, "_dqs": {"0"}, "_defensive": {"1"}}
	if write {
		v.Set("_txlock", "immediate")
	} else {
		v.Set("_query_only", "1")
	}
	// A path may hold what is special in a URI; on Windows it has no
	// leading slash.
	path := filepath.ToSlash(x.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	c, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: v.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("opening the index: %w", err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}
