package database

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// first is a schema without upgrades.
var first = Schema{Application: 42, First: 3, Create: `
	CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL);
	CREATE TABLE notes(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL);`}

// upgraded returns first with upgrades.
func upgraded(upgrades ...Upgrade) Schema {
	s := first
	s.Upgrades = upgrades
	return s
}

// statements returns an upgrade that runs statements.
func statements(text string) Upgrade {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}
}

func openWith(ctx context.Context, path string, s Schema) (*DB, error) {
	return Open(ctx, Options{Path: path, Schema: s, Log: slog.New(slog.DiscardHandler)})
}

func closeIt(t *testing.T, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// stored returns a file of the first version with two notes.
func stored(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notes.db")
	d, err := openWith(t.Context(), path, first)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write(t.Context(), "writing notes", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes(text) VALUES('one'), ('two')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, d)
	return path
}

// checkNotes checks the version of a file of stored, and that its notes are
// unchanged.
func checkNotes(t *testing.T, path string, version int) {
	t.Helper()
	// The connection of an Open that was cancelled may still roll back.
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var v int
	var notes string
	err = db.QueryRow(`SELECT user_version, (SELECT group_concat(id||text) FROM notes)
		FROM pragma_user_version`).Scan(&v, &notes)
	if err != nil || v != version || notes != "1one,2two" {
		t.Errorf("version %d with the notes %q, %v, want version %d with 1one,2two", v, notes, err, version)
	}
}

// TestUpgrade opens a new file, and one of the first version, with two upgrades.
func TestUpgrade(t *testing.T) {
	later := upgraded(statements(`ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'me'`),
		statements(`ALTER TABLE notes RENAME COLUMN author TO writer`))
	old := stored(t)
	for _, path := range []string{filepath.Join(t.TempDir(), "new.db"), old} {
		d, err := openWith(t.Context(), path, later)
		if err != nil {
			t.Fatal(err)
		}
		var writers []string
		err = d.Read(t.Context(), "reading notes", func(tx *sql.Tx) error {
			return Collect(t.Context(), d.Prepared(tx), func(rows *sql.Rows) error {
				var w string
				err := rows.Scan(&w)
				writers = append(writers, w)
				return err
			}, `SELECT writer FROM notes`)
		})
		if want := slices.Repeat([]string{"me"}, 2); err != nil || path == old && !cmp.Equal(writers, want) {
			t.Errorf("the notes have the writers %v, %v, want %v", writers, err, want)
		}
		closeIt(t, d)
	}
	checkNotes(t, old, 5)
	if _, err := openWith(t.Context(), old, first); !errors.Is(err, errkind.Unsupported) ||
		!strings.Contains(err.Error(), "update knowhow") {
		t.Errorf("Open() of a newer version = %v, want an error of kind Unsupported that contains \"update knowhow\"",
			err)
	}
	checkNotes(t, old, 5)
}

// TestOlder opens a file of a version that is not upgraded any more.
func TestOlder(t *testing.T) {
	path := stored(t)
	d, err := openWith(t.Context(), path, Schema{Application: 42, First: 4, Create: first.Create})
	if err == nil {
		closeIt(t, d)
	}
	if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), "choose another data folder") {
		t.Errorf("Open() = %v, want an error of kind Unsupported that names the file and says what to do", err)
	}
	checkNotes(t, path, 3)
}

// TestUpgradeAtOnce opens an old file many times concurrently. One of the calls
// upgrades it.
func TestUpgradeAtOnce(t *testing.T) {
	path := stored(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			d, err := openWith(t.Context(), path, upgraded(statements(`CREATE TABLE once(n)`)))
			if err != nil {
				t.Errorf("Open() = %v", err)
				return
			}
			closeIt(t, d)
		})
	}
	group.Wait()
	checkNotes(t, path, 4)
}

// TestUpgradeFails checks that an upgrade that fails or is cancelled does not
// change the file.
func TestUpgradeFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tests := []struct {
		name string
		step Upgrade
		want error
	}{
		{"statement", statements(`CREATE TABLE more(n); INSERT INTO missing VALUES(1)`), nil},
		{"kind", func(context.Context, *sql.Tx) error { return errkind.Unavailable }, errkind.Unavailable},
		// the last
		{"cancelled", func(ctx context.Context, _ *sql.Tx) error { cancel(); return ctx.Err() }, context.Canceled},
	}
	for _, test := range tests {
		path := stored(t)
		d, err := openWith(ctx, path, upgraded(statements(`DELETE FROM notes`), test.step))
		if err == nil {
			closeIt(t, d)
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: Open() = %v, want an error (%v)", test.name, err, test.want)
		}
		checkNotes(t, path, 3)
	}
}

// upgradePath is an environment variable that makes the test binary a process that
// upgrades a file and does not commit.
const upgradePath = "KNOWHOW_TEST_UPGRADE"

func TestMain(m *testing.M) {
	if path := os.Getenv(upgradePath); path != "" {
		_, err := openWith(context.Background(), path, upgraded(statements(`DELETE FROM notes`),
			func(context.Context, *sql.Tx) error {
				fmt.Println("upgraded")
				time.Sleep(time.Hour)
				return nil
			}))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestUpgradeKilled kills a process during an upgrade while another call of Open
// waits for it.
func TestUpgradeKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	path := stored(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), upgradePath+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	later := upgraded(statements(`CREATE TABLE more(n)`))
	_, waited := openWith(short, path, later)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if line != "upgraded\n" {
		t.Fatalf("the process printed %q (%v), want \"upgraded\"", line, err)
	}
	if !errors.Is(waited, context.DeadlineExceeded) {
		t.Errorf("Open() during the upgrade = %v, want an error when the context ends", waited)
	}
	checkNotes(t, path, 3)
	d, err := openWith(t.Context(), path, later)
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, d)
	checkNotes(t, path, 4)
}

// TestVersionMeanwhile reads the version of a file while another process creates
// its tables.
func TestVersionMeanwhile(t *testing.T) {
	for range 20 {
		d := &DB{path: filepath.Join(t.TempDir(), "new.db"), schema: first}
		if err := d.checkHeader(); err != nil { // creates the file
			t.Fatal(err)
		}
		db, err := d.connect(1, true)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			for {
				_, err := d.fileVersion(t.Context(), db)
				if err != nil && !busy(err) {
					t.Errorf("fileVersion() = %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		other, err := openWith(t.Context(), d.path, first)
		if err != nil {
			t.Error(err)
		} else {
			closeIt(t, other)
		}
		close(stop)
		group.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestInspect opens files without changing anything.
func TestInspect(t *testing.T) {
	inspect := func(path string, s Schema) (*DB, error) {
		return Open(t.Context(), Options{Path: path, Schema: s, Log: slog.New(slog.DiscardHandler), Inspect: true})
	}
	path := stored(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := func(d *DB) (n int) {
		t.Helper()
		err := d.Read(t.Context(), "counting notes", func(tx *sql.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM notes`).Scan(&n)
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	d, err := inspect(path, first)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write(t.Context(), "writing a note", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes(text) VALUES('three')`)
		return err
	})
	if n := count(d); n != 2 || d.Writable() || !errors.Is(err, errkind.Denied) {
		t.Errorf("%d notes, Writable() = %t, Write() = %v; want 2, false and kind Denied", n, d.Writable(), err)
	}
	closeIt(t, d)
	if _, err := inspect(path, upgraded(statements(`SELECT 1`))); !errors.Is(err, ErrOlder) ||
		!errors.Is(err, errkind.Unsupported) {
		t.Errorf("Open() of an older version = %v, want ErrOlder of kind Unsupported", err)
	}
	missing := filepath.Join(t.TempDir(), "notes.db")
	if _, err := inspect(missing, first); err == nil {
		t.Error("Open() of a file that does not exist succeeded")
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("Open() made a file")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	after, readErr := os.ReadFile(path)
	if err := errors.Join(err, readErr); err != nil || len(entries) != 1 || string(before) != string(after) {
		t.Errorf("Open() changed the file or made others beside it: %v, %v", entries, err)
	}
	// Beside a process that writes.
	w, err := openWith(t.Context(), path, first)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Write(t.Context(), "writing a note", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes(text) VALUES('three')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = inspect(path, first); err != nil {
		t.Fatal(err)
	}
	if n := count(d); n != 3 {
		t.Errorf("%d notes, want the 3 that the other process wrote", n)
	}
	closeIt(t, d)
	closeIt(t, w)
}

// A panic ends its transaction: the connection can be closed, and others can write.
func TestPanic(t *testing.T) {
	d, err := openWith(t.Context(), filepath.Join(t.TempDir(), "notes.db"), first)
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, d)
	panics := func(name string, call func(f func(tx *sql.Tx) error) error) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic, want that of the function", name)
			}
		}()
		_ = call(func(*sql.Tx) error { panic("a defect") })
	}
	panics("Write", func(f func(*sql.Tx) error) error { return d.Write(t.Context(), "writing", f) })
	panics("Read", func(f func(*sql.Tx) error) error { return d.Read(t.Context(), "reading", f) })
	panics("ReadIn", func(f func(*sql.Tx) error) error {
		c, err := d.Conn(t.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return d.ReadIn(t.Context(), c, "reading", f)
	})
	err = d.Write(t.Context(), "writing", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes(text) VALUES('after')`)
		return err
	})
	if err != nil {
		t.Errorf("writing after panics: %v", err)
	}
}
