// Package database opens the SQLite file of an index and runs transactions in
// it. Several processes may have the same file open. The package knows the
// version of the tables, and the schema creates them; what they contain is known
// to those who use it. Errors have a kind and say what the user can do.
package database

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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Options configures [Open].
type Options struct {
	Path   string // of the file; created with mode 0600 if it does not exist
	Schema Schema
	Log    *slog.Logger // required

	// ReadOnly opens a file that exists and cannot be written, for example on a
	// disk that is read-only. Changes give errors of kind Denied. A file that can
	// be written is opened as usual.
	ReadOnly bool

	// Inspect opens a file that exists as if it could not be written, so that nothing
	// is changed, not even the version of the tables. For a file of an older version
	// the error is ErrOlder.
	Inspect bool

	// Reads are statements that are prepared once for each connection that reads.
	Reads []string
}

// A DB is an open file. Its methods are safe for concurrent use.
type DB struct {
	path    string
	schema  Schema
	log     *slog.Logger
	access  access               // to the file
	w       *sql.DB              // one connection that writes
	r       *sql.DB              // connections that read
	readers int                  // connections of r
	reads   map[string]*sql.Stmt // for r; closed with it

	changes   atomic.Pointer[map[string]*sql.Stmt] // for w; closed with it; see prepareChanges
	preparing sync.Mutex

	damaged atomic.Bool // set when an operation finds damaged pages
}

// Open opens a file, and creates it if there is none. The tables of an older
// version are upgraded. The error is of kind Corrupt for a file that is damaged or
// of another program, and of kind Unsupported for a file of a newer version or of
// one that cannot be upgraded. Such a file is not changed, and the error names it.
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{path: o.Path, schema: o.Schema, log: o.Log}
	if o.Inspect {
		denied := fmt.Errorf("opening the index: %s cannot be read: allow it or choose another data folder: %w", d.path,
			errkind.Denied)
		if err := d.openReadOnly(ctx, o.Reads, denied); err != nil {
			return nil, err
		}
		return d, nil
	}
	err := d.open(ctx, o.Reads)
	if o.ReadOnly && errors.Is(err, errkind.Denied) && ctx.Err() == nil {
		err = d.openReadOnly(ctx, o.Reads, err)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// open opens the connections and prepares the tables and the statements.
func (d *DB) open(ctx context.Context, reads []string) (err error) {
	if err := d.checkHeader(); err != nil {
		return err
	}
	if d.w, err = d.connect(1, true); err != nil {
		return err
	}
	d.readers = min(4, max(2, runtime.GOMAXPROCS(0)))
	if d.r, err = d.connect(d.readers, false); err != nil {
		return err
	}
	if err = d.prepareTables(ctx); err == nil {
		d.reads, err = prepareAll(ctx, d.r, reads)
	}
	if err != nil {
		return errors.Join(d.Fault("opening the index", err), d.w.Close(), d.r.Close())
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

// openReadOnly opens a file that cannot be written. denied is the error of opening
// it for writing.
func (d *DB) openReadOnly(ctx context.Context, reads []string, denied error) error {
	// SQLite cannot make the files beside the database. If they are there, they are
	// those of a process that writes, or of one that died.
	log, err := os.Stat(d.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.access = immutable
		err = d.open(ctx, reads)
	case err == nil:
		d.access = readOnly
		if err = d.open(ctx, reads); errors.Is(err, errkind.Denied) && log.Size() == 0 {
			d.access = immutable
			err = d.open(ctx, reads)
		}
	}
	switch {
	case errors.Is(err, errkind.Denied) && log != nil && log.Size() > 0:
		return fmt.Errorf("opening the index: %s cannot be written, and the last changes in %s were not completed: "+
			"copy the data folder to a place that can be written, and use the copy: %w",
			d.path, filepath.Base(d.path)+"-wal", errkind.Denied)
	case errors.Is(err, errkind.Denied):
		return denied
	}
	return err
}

// Close closes the file.
func (d *DB) Close() error { return errors.Join(d.r.Close(), d.w.Close()) }

// Path returns the path of the file.
func (d *DB) Path() string { return d.path }

// Writable reports whether the file can be written.
func (d *DB) Writable() bool { return d.access == readWrite }

// Damaged reports whether an operation has found damaged pages.
func (d *DB) Damaged() bool { return d.damaged.Load() }

// Readers returns how many transactions can read at the same time.
func (d *DB) Readers() int { return d.readers }

// Size returns how many bytes the file and its log have.
func (d *DB) Size() (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(d.path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// Sizes of one connection's page cache, in KiB. SQLite's memory is not part of
// Go's heap, so the runtime's memory limit does not cover it. Most pages that
// searches read are texts, which a larger cache would rarely have.
const (
	readCache  = 2048
	writeCache = 8192
)

// connect returns a pool of n connections.
func (d *DB) connect(n int, write bool) (*sql.DB, error) {
	cache, wait := readCache, busyWait
	if write {
		cache, wait = writeCache, 0 // see begin
	}
	v := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)",
			wait.Milliseconds()), "synchronous(full)", "fullfsync(1)", "foreign_keys(1)", "temp_store(memory)",
		fmt.Sprintf("cache_size(-%d)", cache), "journal_size_limit(67108864)", "trusted_schema(0)",
	}, "_dqs": {"0"}, "_defensive": {"1"}}
	if write && d.access == readWrite {
		v.Set("_txlock", "immediate")
	} else {
		v.Set("_query_only", "1")
	}
	// A path may contain characters that are special in a URI. On
	// Windows it has no leading slash.
	path := filepath.ToSlash(d.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	query := strings.TrimSuffix(v.Encode()+"&"+string(d.access), "&")
	c, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: query}).String())
	if err != nil {
		return nil, fmt.Errorf("opening the index: %w", err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// unlocked calls f again while another process has locked the file, for busyWait
// at most.
func (d *DB) unlocked(ctx context.Context, f func() error) error {
	retry := time.NewTicker(BusyStep)
	defer retry.Stop()
	for begin := time.Now(); time.Since(begin) < busyWait; {
		if err := f(); !busy(err) {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("opening %s: another process is using it, try again: %w", d.path, errkind.Busy)
}

// Backup writes a consistent copy of the file to a new one, which is complete in
// one file. Other processes may write meanwhile. The statements in changes are run
// in the copy. The error is of kind Conflict if the new file exists.
func (d *DB) Backup(ctx context.Context, file string, changes []string) (err error) {
	const op = "writing a backup"
	exists := fmt.Errorf("%s: %s exists: choose another name: %w", op, file, errkind.Conflict)
	if _, err := os.Lstat(file); err == nil {
		return exists
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".knowhow-backup-*")
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	made := &DB{path: filepath.Join(dir, filepath.Base(d.path)), log: d.log}
	if err := d.exec(ctx, `VACUUM INTO ?`, made.path); err != nil {
		return d.Fault(op, err)
	}
	for _, text := range append(changes, `PRAGMA journal_mode=delete`) { // one file
		if err := made.exec(ctx, text); err != nil {
			return made.Fault(op, err)
		}
	}
	if err := cmp.Or(os.Chmod(made.path, 0o600), syncFile(made.path)); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	// Unlike Rename, Link does not replace a file that was made meanwhile.
	if err := os.Link(made.path, file); errors.Is(err, os.ErrExist) {
		return exists
	} else if err == nil {
		return nil
	}
	return os.Rename(made.path, file) // a file system without links
}

// exec runs a statement in a connection of its own.
func (d *DB) exec(ctx context.Context, text string, args ...any) error {
	db, err := d.connect(1, true)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, text, args...)
	return errors.Join(err, db.Close())
}

// syncFile makes the bytes of a file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
