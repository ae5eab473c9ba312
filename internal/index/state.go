package index

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// Lease acquires leases for ttl, or renews those that the owner has. It returns
// the names of the leases that the owner now has. At most one owner among all
// processes has a lease at a time. A lease that is not renewed expires after
// its ttl.
func (x *Index) Lease(ctx context.Context, owner string, ttl time.Duration, names ...string) (held []string, err error) {
	if owner == "" || ttl <= 0 || slices.Contains(names, "") {
		return nil, fmt.Errorf("a lease needs a name, an owner and a time: %w", errkind.Invalid)
	}
	if len(names) == 0 {
		return nil, nil
	}
	err = x.write(ctx, "taking a lease", func(tx *sql.Tx) error {
		held = nil
		now := time.Now()
		for _, name := range names {
			// A clock that was set back must not extend a lease for ever.
			r, err := tx.ExecContext(ctx, `INSERT INTO leases(name, owner, until) VALUES(?1, ?2, ?3)
				ON CONFLICT DO UPDATE SET owner=?2, until=?3 WHERE owner=?2 OR until<=?4 OR until>?4+86400000`,
				name, owner, now.Add(ttl).UnixMilli(), now.UnixMilli())
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil {
				return err
			} else if n > 0 {
				held = append(held, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Release releases those of the named leases that the owner has.
func (x *Index) Release(ctx context.Context, owner string, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return x.write(ctx, "releasing a lease", func(tx *sql.Tx) error {
		for _, name := range names {
			if _, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name=? AND owner=?`, name, owner); err != nil {
				return err
			}
		}
		return nil
	})
}

// Leases returns the owners of the leases that have not expired, by name.
func (x *Index) Leases(ctx context.Context) (map[string]string, error) {
	owners := map[string]string{}
	err := x.read(ctx, "listing the leases", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var name, owner string
			err := rows.Scan(&name, &owner)
			owners[name] = owner
			return err
		}, `SELECT name, owner FROM leases WHERE until>?1 AND until<=?1+86400000`, time.Now().UnixMilli())
	})
	return owners, err
}

// progressStale is how long reported progress is valid.
const progressStale = 20 * time.Second

// A Progress is how far the indexing of the documents of one label has come.
type Progress struct {
	Label       string
	Done, Total int
}

// SetProgress reports to all processes how far indexing has come for some
// labels. Done = Total means that a label is done and other labels of the same
// run are not. Total = 0 ends the report. Until then, the process that indexes
// the label calls SetProgress at least every 20 seconds, even if nothing has
// changed. Each call is a transaction, so it should be called at most a few
// times a second.
func (x *Index) SetProgress(ctx context.Context, progress ...Progress) error {
	return x.write(ctx, "writing the progress", func(tx *sql.Tx) error {
		for _, p := range progress {
			query, args := `DELETE FROM kv WHERE key=?`, []any{keyProgress + p.Label}
			if p.Total > 0 {
				query = `INSERT INTO kv(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value=excluded.value`
				args = append(args, fmt.Sprint(p.Done, " ", p.Total, " ", time.Now().UnixMilli()))
			}
			if _, err := tx.ExecContext(ctx, query, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Indexing returns how far indexing has come in all processes; see
// [search.Indexer].
func (x *Index) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	err := x.read(ctx, "reading the progress", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var key, value string
			if err := rows.Scan(&key, &value); err != nil {
				return err
			}
			label := strings.TrimPrefix(key, keyProgress)
			if labels != nil && label != "" && !slices.Contains(labels, label) {
				return nil
			}
			var d, t int
			var at int64
			if n, err := fmt.Sscan(value, &d, &t, &at); n != 3 || err != nil {
				return nil
			}
			if age := time.Since(time.UnixMilli(at)); age > progressStale || age < -progressStale {
				return nil
			}
			done, total, busy = done+d, total+t, busy || d < t
			return nil
		}, `SELECT key, value FROM kv WHERE key>=?1 AND key<?1||char(0x10ffff)`, keyProgress)
	})
	if err != nil || !busy {
		return 0, 0, false // progress is optional information, so errors are ignored
	}
	return done, total, true
}

// Health reports green, or red once damage was met; see [search.Service].
func (x *Index) Health(ctx context.Context) (search.Health, error) {
	err := x.read(ctx, "checking the index", func(tx *sql.Tx) error {
		var n int64
		for _, s := range []string{`SELECT count(*) FROM sqlite_schema`, `SELECT coalesce(max(id), 0) FROM docs`,
			`SELECT coalesce(max(id), 0) FROM chunks`, `SELECT count(*) FROM segments`} {
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

// Stats is how much an index holds.
type Stats struct {
	Documents int
	Chunks    int
	Vectors   int   // chunks with a vector of the model that was used last
	TextBytes int64 // of all texts
	FileBytes int64 // of the index file with its write-ahead log, and of the segments in files
	Segments  int
	ByLabel   map[string]LabelStats
}

// LabelStats is how much an index holds under one label.
type LabelStats struct {
	Documents int
	TextBytes int64
	Languages map[string]int // documents by ISO 639-1 code; "" if it is not known
}

// Stats counts documents, chunks and bytes.
func (x *Index) Stats(ctx context.Context) (Stats, error) {
	s := Stats{ByLabel: map[string]LabelStats{}}
	err := x.read(ctx, "counting documents", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM chunks`).Scan(&s.Chunks); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM vectors WHERE model=(SELECT id FROM models ORDER BY used DESC LIMIT 1)`).Scan(&s.Vectors); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(iif(file<>'', size, 0)), 0) FROM segments`).Scan(&s.Segments, &s.FileBytes); err != nil {
			return err
		}
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var label, lang string
			var docs int
			var bytes int64
			err := rows.Scan(&label, &lang, &docs, &bytes)
			l := s.ByLabel[label]
			if l.Languages == nil {
				l.Languages = map[string]int{}
			}
			l.Languages[lang] += docs
			l.Documents += docs
			l.TextBytes += bytes
			s.ByLabel[label] = l
			s.Documents += docs
			s.TextBytes += bytes
			return err
		}, `SELECT label, lang, count(*), sum(text_size) FROM docs GROUP BY label, lang`)
	})
	if err != nil {
		return Stats{}, err
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(x.path + suffix); err == nil {
			s.FileBytes += info.Size()
		}
	}
	return s, nil
}
