package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// raw returns a connection beside those of the index.
func raw(t *testing.T, x *Index) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", x.db.Path()+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// execute runs a statement.
func execute(t *testing.T, x *Index, text string, args ...any) {
	t.Helper()
	if err := x.write(t.Context(), "testing", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, args...)
		return err
	}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// scanRow reads the row that a query returns.
func scanRow(t *testing.T, x *Index, text string, to ...any) error {
	t.Helper()
	return x.read(t.Context(), "testing", func(tx *sql.Tx) error { return tx.QueryRowContext(t.Context(), text).Scan(to...) })
}

// maintain builds missing segments.
func maintain(t *testing.T, x *Index) {
	t.Helper()
	if err := x.Maintain(t.Context(), nil); err != nil {
		t.Errorf("Maintain() = %v", err)
	}
}

// A State is what a check of an index has counted.
type State struct {
	Segments int
	Files    int // segments that are files
	Unlisted int // other files in the folder of segments
	Old      int // those that are older than an hour
}

// Check returns an error if the file, a segment or their relation is damaged:
// every document must be in exactly one segment.
func (x *Index) Check(ctx context.Context) (state State, err error) {
	var failures []error
	failed := func(format string, args ...any) { failures = append(failures, fmt.Errorf(format, args...)) }
	err = x.read(ctx, "checking", func(tx *sql.Tx) error {
		var result string
		if err := tx.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&result); err != nil || result != "ok" {
			failed("integrity_check: %s, %v", result, err)
		}
		rows, err := segmentRows(ctx, tx, nil)
		if err != nil {
			return err
		}
		files, in := map[string]bool{}, map[int64]int{}
		for _, r := range rows {
			state.Segments++
			if r.file != "" {
				state.Files++
				files[r.file] = true
			}
			h, err := x.openSegment(ctx, tx, r)
			if err != nil {
				failed("segment %d: %w", r.id, err)
				continue
			}
			deleted, err := deletions(ctx, tx, r)
			if err == nil && deleted.Count() != r.removed {
				failed("segment %d has %d deleted documents, want %d", r.id, deleted.Count(), r.removed)
			}
			err = errors.Join(err, h.seg.Verify(), h.seg.Rows(func(d int, row int64) {
				if deleted == nil || !deleted.Has(d) {
					in[row]++
				}
			}))
			x.release(h)
			if err != nil {
				failed("segment %d: %w", r.id, err)
			}
		}
		err = collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			if in[id] != 1 {
				failed("document %d is in %d segments", id, in[id])
			}
			delete(in, id)
			return err
		}, `SELECT id FROM docs`)
		if len(in) > 0 {
			failed("the segments have %d documents that do not exist", len(in))
		}
		entries, _ := os.ReadDir(filepath.Join(x.dir, segmentsDir))
		for _, e := range entries {
			if files[e.Name()] {
				continue
			}
			state.Unlisted++
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
				state.Old++
			}
		}
		return err
	})
	return state, errors.Join(append(failures, err)...)
}

// Age makes the files of the segments of a data folder, and its leases, older.
func Age(dir string, by time.Duration) error {
	entries, _ := os.ReadDir(filepath.Join(dir, segmentsDir))
	for _, e := range entries {
		at := time.Now().Add(-by)
		if err := os.Chtimes(filepath.Join(dir, segmentsDir, e.Name()), at, at); err != nil {
			return err
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, FileName))
	if err != nil {
		return err
	}
	_, err = db.Exec(`UPDATE leases SET until=until-?`, by.Milliseconds())
	return errors.Join(err, db.Close())
}
