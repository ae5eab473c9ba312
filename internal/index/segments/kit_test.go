package segments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A kit is a store over documents that have a text only, as one process has it.
type kit struct {
	t *testing.T
	*Store
	db     *database.DB
	leases *leases

	mu       sync.Mutex
	progress []int // totals that were reported
}

var schema = database.Schema{Application: 1, First: 1, Create: `
	CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL);
	CREATE TABLE docs(id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, text TEXT NOT NULL);` + Tables}

// open opens the store in a folder until the test ends. It does nothing in the
// background.
func open(t *testing.T, dir string, o Options) *kit {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, "test.db"), Schema: schema,
		Reads: Reads, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, db: db, leases: &leases{owners: map[string]string{}}}
	o.DB, o.Documents, o.Leases, o.Progress = db, k, k.leases, k.report
	k.Store = New(o)
	t.Cleanup(func() {
		k.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *kit) report(_ context.Context, _, total int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.progress = append(k.progress, total)
}

// reported returns the total that was reported last; -1 if none was.
func (k *kit) reported() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.progress) == 0 {
		return -1
	}
	return k.progress[len(k.progress)-1]
}

// Leases that never end.
type leases struct {
	mu     sync.Mutex
	owners map[string]string
}

func (l *leases) Lease(_ context.Context, owner string, _ time.Duration, names ...string) (held []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		if l.owners[n] == "" || l.owners[n] == owner {
			l.owners[n] = owner
			held = append(held, n)
		}
	}
	return held, nil
}

func (l *leases) Release(_ context.Context, owner string, names ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		if l.owners[n] == owner {
			delete(l.owners, n)
		}
	}
	return nil
}

func (k *kit) Numbers(ctx context.Context, q database.Querier) (map[string][]int64, error) {
	numbers := map[string][]int64{}
	err := database.Collect(ctx, q, func(rows *sql.Rows) error {
		var label string
		var id int64
		err := rows.Scan(&label, &id)
		numbers[label] = append(numbers[label], id)
		return err
	}, `SELECT label, id FROM docs ORDER BY id`)
	return numbers, err
}

func (k *kit) Document(ctx context.Context, q database.Querier, number int64) (*Document, error) {
	d := &Document{Number: number, Title: "title", Language: "en"}
	err := q.QueryRowContext(ctx, `SELECT label, text FROM docs WHERE id=?`, number).Scan(&d.Label, &d.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	d.Chunks = []document.Chunk{{Length: len(d.Text)}}
	return d, err
}

// add stores documents under a label in one transaction, and returns their numbers.
func (k *kit) add(label string, texts ...string) (numbers []int64) {
	k.t.Helper()
	k.change(func(tx *database.Prepared, c *Change) error {
		numbers = nil
		for _, text := range texts {
			var n int64
			if err := tx.QueryRowContext(k.t.Context(), `INSERT INTO docs(label, text) VALUES(?, ?) RETURNING id`,
				label, text).Scan(&n); err != nil {
				return err
			}
			d, err := k.Document(k.t.Context(), tx, n)
			if err != nil {
				return err
			}
			if err := c.Add(k.t.Context(), *d); err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		return nil
	})
	return numbers
}

// remove removes documents of a label.
func (k *kit) remove(label string, numbers ...int64) {
	k.t.Helper()
	k.change(func(tx *database.Prepared, c *Change) error {
		for _, n := range numbers {
			if err := c.Remove(k.t.Context(), n, label); err != nil {
				return err
			}
			if _, err := tx.ExecContext(k.t.Context(), `DELETE FROM docs WHERE id=?`, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *kit) change(f func(tx *database.Prepared, c *Change) error) {
	k.t.Helper()
	if err := k.Change(k.t.Context(), "changing", nil, f); err != nil {
		k.t.Fatal(err)
	}
}

// execute runs a statement.
func (k *kit) execute(text string) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), "testing", func(tx *sql.Tx) error {
		_, err := tx.Exec(text)
		return err
	}); err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
}

// view calls f with a view of all documents.
func (k *kit) view(f func(v *View) error) {
	k.t.Helper()
	err := k.Retry(k.t.Context(), func() error {
		return k.db.Read(k.t.Context(), "searching", func(tx *sql.Tx) error {
			v, err := k.View(k.t.Context(), tx, nil)
			if err != nil {
				return err
			}
			defer v.Close()
			return v.Fault(f(v))
		})
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// find returns how many documents have a word, and whether some may be missing.
func (k *kit) find(word string) (n int, incomplete bool) {
	k.t.Helper()
	k.view(func(v *View) error {
		docs, err := v.WordDocs(word, false)
		n, incomplete = docs.Count(), v.Incomplete
		return err
	})
	return n, incomplete
}

// check checks that each stored document is in exactly one segment, and returns how
// many segments there are.
func (k *kit) check() (segments int) {
	k.t.Helper()
	var stored, have []int64
	err := k.db.Read(k.t.Context(), "checking", func(tx *sql.Tx) error {
		rows, err := rowsOf(k.t.Context(), tx, nil)
		if err != nil {
			return err
		}
		segments = len(rows)
		numbers, err := k.Numbers(k.t.Context(), tx)
		for _, n := range numbers {
			stored = append(stored, n...)
		}
		for _, r := range rows {
			if err := k.use(k.t.Context(), tx, r, func(g *Segment, deleted segment.Bits) error {
				return errors.Join(g.verify(), g.Rows(func(place int, n int64) {
					if deleted == nil || !deleted.Has(place) {
						have = append(have, n)
					}
				}))
			}); err != nil {
				return err
			}
		}
		return err
	})
	slices.Sort(stored)
	slices.Sort(have)
	if err != nil || !slices.Equal(stored, have) {
		k.t.Errorf("the segments have the documents %v, %v, want %v", have, err, stored)
	}
	return segments
}

// files returns the paths of the segments in files.
func (k *kit) files() []string {
	k.t.Helper()
	files, err := filepath.Glob(filepath.Join(k.dir, "*"+segmentSuffix))
	if err != nil {
		k.t.Fatal(err)
	}
	return files
}

// long returns a text with so many words that no other text has.
func long(i, words int) string {
	var b strings.Builder
	b.WriteString("walrus")
	for n := range words {
		fmt.Fprintf(&b, " w%dx%d", i, n)
	}
	return b.String()
}

// flip inverts bytes of a file.
func flip(t *testing.T, path string, off, n int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b[off+i] ^= 0xff
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b[off:off+n], off); err != nil {
		t.Fatal(err)
	}
}
