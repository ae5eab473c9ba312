package index

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/segment"
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
	if err := x.db.Write(t.Context(), "testing", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, args...)
		return err
	}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// scanRow reads the row that a query returns.
func scanRow(t *testing.T, x *Index, text string, to ...any) error {
	t.Helper()
	return x.db.Read(t.Context(), "testing", func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), text).Scan(to...)
	})
}

// maintain builds missing segments.
func maintain(t *testing.T, x *Index) {
	t.Helper()
	if err := x.Maintain(t.Context(), nil); err != nil {
		t.Errorf("Maintain() = %v", err)
	}
}

// A State has the counts of a check of an index.
type State struct {
	Segments int
	Files    int // segments that are files
	Unlisted int // other files in the folder of segments
	Old      int // those that are older than an hour
}

// Check returns an error if the file, a segment or their relation is damaged:
// every document must be in exactly one segment.
func (x *Index) Check(t testing.TB) (state State, err error) {
	ctx := t.Context()
	var failures []error
	failed := func(format string, args ...any) { failures = append(failures, fmt.Errorf(format, args...)) }
	var result string
	if err := x.db.Read(ctx, "checking", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&result)
	}); err != nil || result != "ok" {
		failed("integrity_check: %s, %v", result, err)
	}
	files, in := map[string]bool{}, map[int64]int{}
	for _, r := range storedSegments(t, x) {
		state.Segments++
		if r.file != "" {
			state.Files++
			files[r.file] = true
		}
		s, err := segment.Open(r.body)
		if err != nil {
			failed("segment %d: %w", r.id, err)
			continue
		}
		removed := 0
		err = errors.Join(s.Verify(), s.Rows(func(d int, row int64) {
			if d/8 < len(r.deleted) && r.deleted[d/8]>>(d%8)&1 == 1 {
				removed++
			} else {
				in[row]++
			}
		}))
		if err != nil || removed != r.removed {
			failed("segment %d has %d deleted documents, %w, want %d", r.id, removed, err, r.removed)
		}
	}
	err = x.db.Read(ctx, "checking", func(tx *sql.Tx) error {
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			if in[id] != 1 {
				failed("document %d is in %d segments", id, in[id])
			}
			delete(in, id)
			return err
		}, `SELECT id FROM docs`)
	})
	if len(in) > 0 {
		failed("the segments have %d documents that do not exist", len(in))
	}
	entries, _ := os.ReadDir(filepath.Join(x.dir, segments.Dir))
	for _, e := range entries {
		if files[e.Name()] {
			continue
		}
		state.Unlisted++
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			state.Old++
		}
	}
	return state, errors.Join(append(failures, err)...)
}

// A storedSegment is a row of table segments with the bytes of the segment.
type storedSegment struct {
	id            int64
	label, file   string
	docs, removed int
	deleted, body []byte
}

// storedSegments returns all segments.
func storedSegments(t testing.TB, x *Index) (all []storedSegment) {
	t.Helper()
	err := x.db.Read(t.Context(), "listing segments", func(tx *sql.Tx) error {
		return database.Collect(t.Context(), tx, func(rows *sql.Rows) error {
			var s storedSegment
			err := rows.Scan(&s.id, &s.label, &s.file, &s.docs, &s.removed, &s.deleted, &s.body)
			if s.file != "" && err == nil {
				s.body, err = os.ReadFile(filepath.Join(x.dir, segments.Dir, s.file))
			}
			all = append(all, s)
			return err
		}, `SELECT s.id, label, file, docs, removed, deleted, body
			FROM segments s LEFT JOIN segment_bodies b ON b.id=s.id ORDER BY s.id`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Age makes the files of the segments of a data folder, and its leases, older.
func Age(dir string, by time.Duration) error {
	entries, _ := os.ReadDir(filepath.Join(dir, segments.Dir))
	for _, e := range entries {
		at := time.Now().Add(-by)
		if err := os.Chtimes(filepath.Join(dir, segments.Dir, e.Name()), at, at); err != nil {
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
