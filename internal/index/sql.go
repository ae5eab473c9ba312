package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"knowhow/internal/errkind"
)

// write runs f in a durable transaction. op names the operation in errors.
func (x *Index) write(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.transact(ctx, x.w, op, f)
}

// writePrepared is write with statements that are prepared for later calls, too.
// Their texts must be constants.
func (x *Index) writePrepared(ctx context.Context, op string, f func(p *preparedTx) error) error {
	var used *preparedTx
	err := x.write(ctx, op, func(tx *sql.Tx) error {
		used = x.preparedChanges(tx)
		return f(used)
	})
	if err == nil {
		x.prepareChanges(ctx, used)
	}
	return err
}

// read runs f in a transaction that sees one state of the index.
func (x *Index) read(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.transact(ctx, x.r, op, f)
}

// A beginner is what *sql.DB and *sql.Conn have in common.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

func (x *Index) transact(ctx context.Context, db beginner, op string, f func(tx *sql.Tx) error) error {
	tx, err := begin(ctx, db, busyWait)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return x.fault(op, err)
	}
	return x.finish(ctx, tx, op, func(tx *sql.Tx) error {
		p := x.prepared(tx)
		if db == x.w {
			p = x.preparedChanges(tx)
		}
		if err := x.checkVersion(ctx, p); err != nil {
			return err
		}
		return f(tx)
	})
}

// finish runs f and commits the transaction, or rolls it back if f fails.
func (x *Index) finish(ctx context.Context, tx *sql.Tx, op string, f func(tx *sql.Tx) error) error {
	err := f(tx)
	if err == nil {
		err = tx.Commit()
	} else if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
		x.log.Debug("rolling back", "error", e)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return x.fault(op, err)
}

// How long a writer waits for other processes, and how often it retries.
// SQLite's own busy handler waits up to 100 ms between attempts, so that a
// process that writes without a pause starves all others.
const (
	busyWait = 10 * time.Second
	busyStep = time.Millisecond
)

// begin begins a transaction. If another process writes, it retries for up to
// wait.
func begin(ctx context.Context, db beginner, wait time.Duration) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if !busy(err) {
		return tx, err
	}
	step := time.NewTicker(busyStep)
	defer step.Stop()
	end := time.After(wait)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end:
			return nil, err
		case <-step.C:
		}
		if tx, err = db.BeginTx(ctx, nil); !busy(err) {
			return tx, err
		}
	}
}

// busy reports whether err means that another process holds a lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// fault turns an error of SQLite into one with a kind that says what to do. It
// returns errors that already have a kind unchanged.
func (x *Index) fault(op string, err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		if _, damaged := errors.AsType[*damagedSegment](err); damaged {
			return err
		}
		return errkind.Disk(op, err) // of the file of a segment
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		x.damaged.Store(true)
		return x.corrupt()
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%s: disk full: free space on the disk of %s and try again: %w", op, x.path, errkind.DiskFull)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: the disk of %s fails or is full: check it and try again: %w", op, x.path, errkind.Unavailable)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%s: another process is writing to %s; try again: %w", op, x.path, errkind.Busy)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %s cannot be written: allow it or choose another data folder: %w", op, x.path, errkind.Denied)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// corrupt returns the error for a damaged index.
func (x *Index) corrupt() error {
	return fmt.Errorf("the index %s is damaged: stop knowhow and copy the file and those beside it with the same name and -wal or -shm; "+
		"then restore a backup, or choose another data folder and index the sources there: %w", x.path, errkind.Corrupt)
}

// A querier is what *sql.DB and *sql.Tx have in common.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect runs a query and calls scan for each row.
func collect(ctx context.Context, q querier, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

const kvQuery = `SELECT value FROM kv WHERE key=?`

// kvValue returns a value of table kv, "" if there is none.
func kvValue(ctx context.Context, q querier, key string) (string, error) {
	var v string
	err := q.QueryRowContext(ctx, kvQuery, key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return v, err
}

// A changer is what *sql.Tx and *preparedTx have in common.
type changer interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A preparedTx runs queries in one transaction with prepared statements, because
// preparing one takes longer than most of them run. They are not interrupted when
// the context ends, because the driver would start a goroutine for each of them:
// they must be short. It is not safe for concurrent use.
type preparedTx struct {
	tx         *sql.Tx
	prepared   map[string]*sql.Stmt // of the Index
	statements map[string]*sql.Stmt // closed with the transaction
}

// prepared returns a preparedTx for a transaction of a read.
func (x *Index) prepared(tx *sql.Tx) *preparedTx { return &preparedTx{tx: tx, prepared: x.queries} }

// hotQueries are prepared once for each connection that reads.
var hotQueries = []string{versionQuery, kvQuery, segmentsQuery, labelSegmentsQuery, deletionsQuery, bodyQuery, columnQuery("modified"), hitRowsQuery, partsQuery, partQuery, chunkRowsQuery, placesQuery, languageQuery, nextJob}

// prepareHot prepares hotQueries. It must not be called in a transaction,
// because it needs a connection of its own.
func (x *Index) prepareHot(ctx context.Context) (err error) {
	x.queries, err = prepareAll(ctx, x.r, slices.Values(hotQueries))
	return err
}

// prepareAll prepares statements.
func prepareAll(ctx context.Context, db *sql.DB, texts iter.Seq[string]) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for text := range texts {
		s, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		all[text] = s
	}
	return all, nil
}

// preparedChanges returns a preparedTx for a transaction of a change.
func (x *Index) preparedChanges(tx *sql.Tx) *preparedTx {
	p := &preparedTx{tx: tx}
	if all := x.changes.Load(); all != nil {
		p.prepared = *all
	}
	return p
}

// prepareChanges prepares the statements that a change has used, for later ones.
// The texts of statements of changes are constants. It must not be called in a
// transaction.
func (x *Index) prepareChanges(ctx context.Context, used *preparedTx) {
	missing := map[string]bool{}
	for text := range used.statements {
		if used.prepared[text] == nil {
			missing[text] = true
		}
	}
	if len(missing) == 0 {
		return
	}
	x.preparing.Lock()
	defer x.preparing.Unlock()
	all := map[string]*sql.Stmt{}
	if before := x.changes.Load(); before != nil {
		maps.Copy(all, *before)
	}
	maps.DeleteFunc(missing, func(text string, _ bool) bool { return all[text] != nil })
	fresh, err := prepareAll(ctx, x.w, maps.Keys(missing))
	if err != nil { // the next change tries again
		x.log.Debug("preparing statements", "error", err)
		return
	}
	maps.Copy(all, fresh)
	x.changes.Store(&all)
}

func (p *preparedTx) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := p.statements[text]; s != nil {
		return s, nil
	}
	var s *sql.Stmt
	if hot := p.prepared[text]; hot != nil {
		s = p.tx.StmtContext(ctx, hot)
	} else {
		var err error
		if s, err = p.tx.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	if p.statements == nil {
		p.statements = map[string]*sql.Stmt{}
	}
	p.statements[text] = s
	return s, nil
}

// QueryRowContext runs a query that returns one row.
func (p *preparedTx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return p.tx.QueryRowContext(ctx, text, args...) // returns the same error
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...)
}

// QueryContext runs a query.
func (p *preparedTx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.WithoutCancel(ctx), args...)
}

// ExecContext runs a statement without rows.
func (p *preparedTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}

// readSegments is read for a function that reads segments. If another process
// merges segments away meanwhile, the function is called again with a later
// state. A damaged segment is built again in the background, and the function
// is called again without it.
func (x *Index) readSegments(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.mend(ctx, func() error { return x.read(ctx, op, f) })
}
