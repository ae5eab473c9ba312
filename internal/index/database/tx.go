package database

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"
)

// Write runs f in a durable transaction. op names the operation in errors.
func (d *DB) Write(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return d.transact(ctx, d.w, op, f)
}

// WritePrepared is Write with statements that are prepared for later calls, too.
// Their texts must be constants.
func (d *DB) WritePrepared(ctx context.Context, op string, f func(p *Prepared) error) error {
	var used *Prepared
	err := d.Write(ctx, op, func(tx *sql.Tx) error {
		used = d.preparedChanges(tx)
		return f(used)
	})
	if err == nil {
		d.prepareChanges(ctx, used)
	}
	return err
}

// Read runs f in a transaction that sees one state of the index.
func (d *DB) Read(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return d.transact(ctx, d.r, op, f)
}

// A beginner is an *sql.DB or an *sql.Conn.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Conn returns a connection for [DB.ReadIn], as soon as one is free.
func (d *DB) Conn(ctx context.Context) (*sql.Conn, error) { return d.r.Conn(ctx) }

// ReadIn is Read in a connection of Conn.
func (d *DB) ReadIn(ctx context.Context, c *sql.Conn, op string, f func(tx *sql.Tx) error) error {
	return d.transact(ctx, c, op, f)
}

func (d *DB) transact(ctx context.Context, db beginner, op string, f func(tx *sql.Tx) error) error {
	tx, err := begin(ctx, db, busyWait)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return d.Fault(op, err)
	}
	return d.finish(ctx, tx, op, func(tx *sql.Tx) error {
		p := d.Prepared(tx)
		if db == d.w {
			p = d.preparedChanges(tx)
		}
		if err := d.checkVersion(ctx, p); err != nil {
			return err
		}
		return f(tx)
	})
}

// finish runs f and commits the transaction, or rolls it back if f fails or panics.
func (d *DB) finish(ctx context.Context, tx *sql.Tx, op string, f func(tx *sql.Tx) error) error {
	defer tx.Rollback() // only a panic leaves something to roll back: closing the connection would wait for it
	err := f(tx)
	if err == nil {
		err = tx.Commit()
	} else if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
		d.log.Debug("rolling back", "error", e)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return d.Fault(op, err)
}

// How long a writer waits for other processes, and how often it retries.
// SQLite's own busy handler waits up to 100 ms between attempts, so that a
// process that writes without a pause starves all others.
const (
	busyWait = 10 * time.Second
	BusyStep = time.Millisecond
)

// begin begins a transaction. If another process writes, it retries for up to
// wait.
func begin(ctx context.Context, db beginner, wait time.Duration) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if !busy(err) {
		return tx, err
	}
	step := time.NewTicker(BusyStep)
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

// A Querier is an *sql.DB or an *sql.Tx.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Collect runs a query and calls scan for each row.
func Collect(ctx context.Context, q Querier, scan func(*sql.Rows) error, text string, args ...any) error {
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

// ValueQuery reads a value of table kv, which every schema has.
const ValueQuery = `SELECT value FROM kv WHERE key=?`

// Value returns a value of table kv, "" if there is none.
func Value(ctx context.Context, q Querier, key string) (string, error) {
	var v string
	err := q.QueryRowContext(ctx, ValueQuery, key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return v, err
}

// A Changer is an *sql.Tx or a *Prepared.
type Changer interface {
	Querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A Prepared runs queries in one transaction with prepared statements, because
// preparing one takes longer than most of them run. They are not interrupted when
// the context ends, because the driver would start a goroutine for each of them:
// they must be short. It is not safe for concurrent use.
type Prepared struct {
	tx         *sql.Tx
	prepared   map[string]*sql.Stmt // of the Index
	statements map[string]*sql.Stmt // closed with the transaction
}

// Prepared returns a Prepared for a transaction of a read.
func (d *DB) Prepared(tx *sql.Tx) *Prepared { return &Prepared{tx: tx, prepared: d.reads} }

// prepareAll prepares statements. It must not be called in a transaction, because
// it needs a connection of its own.
func prepareAll(ctx context.Context, db *sql.DB, texts []string) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range texts {
		s, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		all[text] = s
	}
	return all, nil
}

// preparedChanges returns a Prepared for a transaction of a change.
func (d *DB) preparedChanges(tx *sql.Tx) *Prepared {
	p := &Prepared{tx: tx}
	if all := d.changes.Load(); all != nil {
		p.prepared = *all
	}
	return p
}

// prepareChanges prepares the statements that a change has used, for later ones.
// The texts of statements of changes are constants. It must not be called in a
// transaction.
func (d *DB) prepareChanges(ctx context.Context, used *Prepared) {
	missing := map[string]bool{}
	for text := range used.statements {
		if used.prepared[text] == nil {
			missing[text] = true
		}
	}
	if len(missing) == 0 {
		return
	}
	d.preparing.Lock()
	defer d.preparing.Unlock()
	all := map[string]*sql.Stmt{}
	if before := d.changes.Load(); before != nil {
		maps.Copy(all, *before)
	}
	maps.DeleteFunc(missing, func(text string, _ bool) bool { return all[text] != nil })
	fresh, err := prepareAll(ctx, d.w, slices.Collect(maps.Keys(missing)))
	if err != nil { // the next change tries again
		d.log.Debug("preparing statements", "error", err)
		return
	}
	maps.Copy(all, fresh)
	d.changes.Store(&all)
}

func (p *Prepared) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
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
func (p *Prepared) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return p.tx.QueryRowContext(ctx, text, args...) // returns the same error
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...)
}

// QueryContext runs a query.
func (p *Prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.WithoutCancel(ctx), args...)
}

// ExecContext runs a statement without rows.
func (p *Prepared) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s, err := p.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}
