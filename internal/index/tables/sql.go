package tables

import (
	"context"
	"database/sql"
	"errors"
)

// A Querier is what *sql.DB and *sql.Tx have in common.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Collect runs a query and passes each row to scan.
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

// Value reads one value of table kv, "" where it is missing.
func Value(ctx context.Context, q Querier, key string) (string, error) {
	var v string
	err := q.QueryRowContext(ctx, `SELECT value FROM kv WHERE key=?`, key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return v, err
}

// A Statements runs queries within one transaction and keeps each prepared,
// because a search asks the same of a hundred documents. It is not safe for
// concurrent use.
type Statements struct {
	Tx       *sql.Tx
	prepared map[string]*sql.Stmt // closed with the transaction
}

func (s *Statements) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if p := s.prepared[text]; p != nil {
		return p, nil
	}
	p, err := s.Tx.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if s.prepared == nil {
		s.prepared = map[string]*sql.Stmt{}
	}
	s.prepared[text] = p
	return p, nil
}

// QueryRowContext asks for one row.
func (s *Statements) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	p, err := s.prepare(ctx, text)
	if err != nil {
		return s.Tx.QueryRowContext(ctx, text, args...) // fails in the same way
	}
	return p.QueryRowContext(ctx, args...)
}

// QueryContext asks for rows.
func (s *Statements) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	p, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return p.QueryContext(ctx, args...)
}
