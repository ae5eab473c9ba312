package index

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// Lease takes a lease for ttl, or renews the owner's, and reports whether the
// owner has it now. At most one owner has a lease at a time, among all
// processes; a lease that is not renewed ends with its ttl.
func (x *Index) Lease(ctx context.Context, name, owner string, ttl time.Duration) (bool, error) {
	if name == "" || owner == "" || ttl <= 0 {
		return false, fmt.Errorf("a lease needs a name, an owner and a time: %w", errkind.Invalid)
	}
	var got bool
	err := x.write(ctx, "taking a lease", func(tx *sql.Tx) error {
		now := time.Now()
		// A clock that was set back must not keep a lease alive for ever.
		r, err := tx.ExecContext(ctx, `INSERT INTO leases(name, owner, until) VALUES(?1, ?2, ?3)
			ON CONFLICT DO UPDATE SET owner=?2, until=?3 WHERE owner=?2 OR until<=?4 OR until>?4+86400000`,
			name, owner, now.Add(ttl).UnixMilli(), now.UnixMilli())
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		got = n > 0
		return err
	})
	return got, err
}

// Release gives a lease back. Nothing happens where the owner does not have
// it.
func (x *Index) Release(ctx context.Context, name, owner string) error {
	return x.write(ctx, "releasing a lease", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name=? AND owner=?`, name, owner)
		return err
	})
}

// Times of what is told about indexing.
const (
	progressEvery = 250 * time.Millisecond // how often it is written at most
	progressStale = 20 * time.Second       // when it is no longer believed
)

// SetProgress tells all processes how far indexing has come. done = total ends
// it. While it goes on it must be told again before 20 seconds are over, even if
// nothing has changed; calls in quick succession are dropped.
func (x *Index) SetProgress(ctx context.Context, done, total int) error {
	now := time.Now()
	x.mu.Lock()
	quick := done < total && now.Sub(x.progressAt) < progressEvery
	if !quick {
		x.progressAt = now
	}
	x.mu.Unlock()
	if quick {
		return ctx.Err()
	}
	return x.write(ctx, "writing the progress", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO kv(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value=excluded.value`,
			keyProgress, fmt.Sprint(done, " ", total, " ", now.UnixMilli()))
		return err
	})
}

// Indexing returns how many of how many documents are indexed, whichever process
// indexes them; busy is false when none does.
func (x *Index) Indexing(ctx context.Context) (done, total int, busy bool) {
	v, err := kvValue(ctx, x.r, keyProgress)
	var at int64
	if err != nil {
		return 0, 0, false
	}
	if n, err := fmt.Sscan(v, &done, &total, &at); n != 3 || err != nil {
		return 0, 0, false
	}
	age := time.Since(time.UnixMilli(at))
	if done >= total || age > progressStale || age < -progressStale {
		return 0, 0, false
	}
	return done, total, true
}

// Health reports green, or red once damage was met; see [search.Service].
func (x *Index) Health(ctx context.Context) (search.Health, error) {
	err := x.read(ctx, "checking the index", func(tx *sql.Tx) error {
		var n int64
		for _, s := range []string{`SELECT count(*) FROM sqlite_schema`, `SELECT coalesce(max(id), 0) FROM docs`,
			`SELECT coalesce(max(id), 0) FROM chunks`, `SELECT count(*) FROM (SELECT rowid FROM fts LIMIT 1)`} {
			if err := tx.QueryRowContext(ctx, s).Scan(&n); err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return search.Health{}, ctx.Err()
	}
	if err != nil || x.damaged.Load() {
		x.log.Error("the index is not healthy", "error", err)
		return search.Health{Status: "red"}, nil
	}
	return search.Health{Status: "green"}, nil
}

// Stats counts what an index holds.
type Stats struct {
	Documents int
	Chunks    int
	TextBytes int64 // of all texts
	FileBytes int64 // of the index file, without its write-ahead log
	ByLabel   map[string]LabelStats
}

// LabelStats counts what an index holds under one label.
type LabelStats struct {
	Documents int
	TextBytes int64
}

// Stats counts documents, chunks and bytes.
func (x *Index) Stats(ctx context.Context) (Stats, error) {
	s := Stats{ByLabel: map[string]LabelStats{}}
	err := x.read(ctx, "counting documents", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM chunks`).Scan(&s.Chunks); err != nil {
			return err
		}
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var label string
			var l LabelStats
			err := rows.Scan(&label, &l.Documents, &l.TextBytes)
			s.ByLabel[label] = l
			s.Documents += l.Documents
			s.TextBytes += l.TextBytes
			return err
		}, `SELECT label, count(*), sum(text_size) FROM docs GROUP BY label`)
	})
	if err != nil {
		return Stats{}, err
	}
	if info, err := os.Stat(x.path); err == nil {
		s.FileBytes = info.Size()
	}
	return s, nil
}
