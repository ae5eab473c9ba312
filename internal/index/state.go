package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Lease acquires leases for ttl, or renews those that the owner has. It returns
// the names of the leases that the owner now has. At most one owner among all
// processes has a lease at a time. A lease that is not renewed expires after
// its ttl.
func (x *Index) Lease(
	ctx context.Context, owner string, ttl time.Duration, names ...string,
) (held []string, err error) {
	if owner == "" || ttl <= 0 || slices.Contains(names, "") {
		return nil, fmt.Errorf("a lease needs a name, an owner and a time: %w", errkind.Invalid)
	}
	if len(names) == 0 {
		return nil, nil
	}
	err = x.db.Write(ctx, "taking a lease", func(tx *sql.Tx) error {
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
	return x.db.Write(ctx, "releasing a lease", func(tx *sql.Tx) error {
		for _, name := range names {
			if _, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name=? AND owner=?`, name, owner); err != nil {
				return err
			}
		}
		return nil
	})
}

// Leases returns the owners of the leases that have not expired, by name.
func (x *Index) Leases(ctx context.Context) (owners map[string]string, err error) {
	err = x.db.Read(ctx, "listing the leases", func(tx *sql.Tx) (err error) {
		owners, err = database.Map[string, string](ctx, tx,
			`SELECT name, owner FROM leases WHERE until>?1 AND until<=?1+86400000`, time.Now().UnixMilli())
		return err
	})
	return owners, err
}

// progressStale is how long reported progress is valid.
const progressStale = 20 * time.Second

// A Progress is how far the indexing of the documents of one label has come.
type Progress struct {
	Label       string
	Done, Total int
	Unchanged   int // further documents, which do not have to be indexed; -1 if nothing has been counted yet

	// Stopped is why indexing ended before it was complete; "" while it
	// continues. Message is what to do, if more is known.
	Stopped search.Stop
	Message string
}

// SetProgress reports to all processes how far indexing has come for some
// labels. Done = Total means that a label is done and other labels of the same
// run are not. Total = 0 without Stopped ends the report. Until then, the process
// that indexes the label calls SetProgress at least every 20 seconds, even if
// nothing has changed. What remains of the report after that, or with Stopped,
// is returned by [Index.Unfinished]. Each call is a transaction, so it should be
// called at most a few times a second.
func (x *Index) SetProgress(ctx context.Context, progress ...Progress) error {
	running, stopped := false, false
	for _, p := range progress {
		running, stopped = running || p.Total > 0 && p.Stopped == "", stopped || p.Stopped != ""
	}
	reserve := filepath.Join(x.dir, reserveName)
	if running {
		keepReserve(reserve)
	}
	err := x.setProgress(ctx, progress)
	if stopped && errors.Is(err, errkind.DiskFull) && os.Remove(reserve) == nil {
		err = x.setProgress(ctx, progress)
	}
	if !running {
		_ = os.Remove(reserve) // usually, it exists
	}
	return err
}

// While documents are being indexed, the data folder has a file that takes space.
// It is removed to store that the disk is full.
const (
	reserveName = "reserve"
	reserveSize = 256 << 10
)

// keepReserve makes the reserve if it does not exist. Without space for it, there
// is none.
func keepReserve(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, err = f.Write(make([]byte, reserveSize))
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
}

// setProgress is SetProgress without the reserve.
func (x *Index) setProgress(ctx context.Context, progress []Progress) error {
	return x.db.Write(ctx, "writing the progress", func(tx *sql.Tx) error {
		for _, p := range progress {
			query, args := `DELETE FROM kv WHERE key=?`, []any{keyProgress + p.Label}
			if p.Total > 0 || p.Stopped != "" {
				now := time.Now().UnixMilli()
				if p.Stopped != "" {
					now = 0
				}
				query = `INSERT INTO kv(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value=excluded.value`
				args = append(args, fmt.Sprintf("%d %d %d %d %s %s", p.Done, p.Total, now, p.Unchanged, p.Stopped,
					p.Message))
			}
			if _, err := tx.ExecContext(ctx, query, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// readProgress calls f with the reported progress of the labels (nil: all). running is
// false if the report was not renewed in time.
func readProgress(ctx context.Context, tx *sql.Tx, labels []string, f func(p Progress, running bool)) error {
	return database.Collect(ctx, tx, func(rows *sql.Rows) error {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		p := Progress{Label: strings.TrimPrefix(key, keyProgress)}
		if labels != nil && p.Label != "" && !slices.Contains(labels, p.Label) {
			return nil
		}
		var at int64
		fields := strings.SplitN(value, " ", 6)
		if n, _ := fmt.Sscan(value, &p.Done, &p.Total, &at, &p.Unchanged); n < 4 || len(fields) < 6 {
			return nil
		}
		p.Stopped, p.Message = search.Stop(fields[4]), fields[5]
		age := time.Since(time.UnixMilli(at))
		f(p, age <= progressStale && age >= -progressStale)
		return nil
	}, `SELECT key, value FROM kv WHERE key>=?1 AND key<?1||char(0x10ffff)`, keyProgress)
}

// Unfinished returns the sources with one of the labels (nil: all) whose last
// indexing has ended before it was complete, or has not begun; see
// [search.Indexer].
func (x *Index) Unfinished(ctx context.Context, labels []string) ([]search.Unfinished, error) {
	var out []search.Unfinished
	err := x.db.Read(ctx, "looking for sources that are indexed in part", func(tx *sql.Tx) error {
		out = nil
		// Labels, and whether they were indexed completely before.
		seen, err := database.Map[string, bool](ctx, tx, `SELECT label, left_out<>'' FROM sources`)
		if err != nil {
			return err
		}
		maps.DeleteFunc(seen, func(label string, _ bool) bool { return !admits(labels, label) })
		if err := readProgress(ctx, tx, labels, func(p Progress, running bool) {
			complete, source := seen[p.Label]
			delete(seen, p.Label)
			if running || !source || p.Stopped == "" && p.Done >= p.Total {
				return
			}
			u := search.Unfinished{Label: p.Label, Stop: p.Stopped, Message: p.Message, Earlier: complete}
			if u.Stop == "" {
				u.Stop = search.Interrupted // the process ended without a report
			}
			if p.Unchanged >= 0 {
				u.Done, u.Total = p.Done+p.Unchanged, p.Total+p.Unchanged
			}
			out = append(out, u)
		}); err != nil {
			return err
		}
		for label, complete := range seen {
			if !complete {
				out = append(out, search.Unfinished{Label: label, Stop: search.NotBegun})
			}
		}
		slices.SortFunc(out, func(a, b search.Unfinished) int { return strings.Compare(a.Label, b.Label) })
		return nil
	})
	return out, err
}

// Indexing returns how far indexing has come in all processes; see
// [search.Indexer].
func (x *Index) Indexing(ctx context.Context, labels []string) (done, total int, busy bool) {
	err := x.db.Read(ctx, "reading the progress", func(tx *sql.Tx) error {
		done, total, busy = 0, 0, false
		return readProgress(ctx, tx, labels, func(p Progress, running bool) {
			if running {
				done, total, busy = done+p.Done, total+p.Total, busy || p.Done < p.Total
			}
		})
	})
	if err != nil || !busy {
		return 0, 0, false // progress is optional information, so errors are ignored
	}
	return done, total, true
}

// Health reports green, or red once damage was met; see [search.Service].
func (x *Index) Health(ctx context.Context) (search.Health, error) {
	err := x.db.Read(ctx, "checking the index", func(tx *sql.Tx) error {
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
	if err != nil || x.db.Damaged() {
		x.log.Error("the index is not healthy", "error", err)
		return search.Health{Status: "red"}, nil
	}
	return search.Health{Status: "green"}, nil
}

// Stats is how much an index holds.
type Stats struct {
	Documents int
	Chunks    int
	Vectors   int // chunks with a vector of the model that was used last
	// estimated time until all chunks have one; 0 if it is not known, or nothing is being computed
	VectorTime time.Duration
	TextBytes  int64 // of all texts
	FileBytes  int64 // of the index file with its write-ahead log, and of the segments in files
	Segments   int
	ByLabel    map[string]LabelStats
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
	err := x.db.Read(ctx, "counting documents", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM chunks`).Scan(&s.Chunks); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, vectors.CountQuery).Scan(&s.Vectors); err != nil {
			return err
		}
		var err error
		if s.VectorTime, err = vectors.TimeLeft(ctx, tx); err != nil {
			return err
		}
		if s.Segments, s.FileBytes, err = segments.Stats(ctx, tx); err != nil {
			return err
		}
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
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
	s.FileBytes += x.db.Size()
	return s, nil
}
