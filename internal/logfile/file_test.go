package logfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// The test binary logs lines into a folder when this variable names one, so
// that tests can have other processes write to the same file.
const writerDir = "LOGFILE_TEST_DIR"

const (
	linesAWriter = 400
	rotateBytes  = 8 << 10
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		writeLines(dir, os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// writeLines logs numbered lines under a name into dir.
func writeLines(dir, name string) {
	l := Open(Options{Dir: dir, MaxBytes: rotateBytes, Fallback: os.Stderr})
	for i := range linesAWriter {
		l.Info("line", "writer", name, "n", i)
	}
	l.Close()
}

// TestRotation has several processes and goroutines write to one file that
// rotates often: every line must be in exactly one of the files, whole, and
// each writer's lines in order within a file.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	names := []string{"p1", "p2", "p3"}
	for _, name := range names {
		cmd := exec.Command(exe, name)
		cmd.Env = append(os.Environ(), writerDir+"="+dir)
		cmd.Stderr = os.Stderr
		writers.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("writer %s: %v", name, err)
			}
		})
	}
	shared := Open(Options{Dir: dir, MaxBytes: rotateBytes, Fallback: os.Stderr})
	for _, name := range []string{"g1", "g2"} {
		names = append(names, name)
		writers.Go(func() {
			for i := range linesAWriter {
				shared.Info("line", "writer", name, "n", i)
			}
		})
	}
	writers.Wait()
	shared.Close()

	seen := map[string]int{}
	files := logs(t, dir)
	for _, name := range files {
		last := map[string]int{}
		for _, line := range readLines(t, filepath.Join(dir, name)) {
			m, err := parseLine(line)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			writer := m["writer"].(string)
			n, err := strconv.Atoi(m["n"].(string))
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := last[writer]; ok && n <= before {
				t.Errorf("%s: line %d of %s after line %d", name, n, writer, before)
			}
			last[writer] = n
			seen[fmt.Sprintf("%s/%d", writer, n)]++
		}
		if !ours.MatchString(name) && name != fileName {
			t.Errorf("unexpected file %s", name)
		}
	}
	if want := len(names) * linesAWriter; len(seen) != want {
		t.Errorf("%d different lines in %d files, want %d", len(seen), len(files), want)
	}
	for line, n := range seen {
		if n != 1 {
			t.Errorf("line %s stands %d times", line, n)
		}
	}
	if len(files) < 5 {
		t.Errorf("only %d files, want several rotations: %v", len(files), files)
	}
}

// TestDay checks that a new day begins a new file, named after the last line
// of the old one.
func TestDay(t *testing.T) {
	dir := t.TempDir()
	l := Open(Options{Dir: dir})
	l.Info("yesterday")
	l.Close()
	last := time.Now().AddDate(0, 0, -1)
	if err := os.Chtimes(l.path, last, last); err != nil {
		t.Fatal(err)
	}
	l = Open(Options{Dir: dir})
	l.Info("today")
	l.Close()
	old := "server-" + last.Format(stampLayout) + ".log"
	for name, want := range map[string]string{fileName: "today", old: "yesterday"} {
		if got := messages(readLines(t, filepath.Join(dir, name))); !slices.Equal(got, []string{want}) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// A file whose last line was cut, for example when the machine lost power, is continued
// on a new line. Only one File may have an exclusive file open.
func TestExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := os.WriteFile(path, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(FileOptions{Path: path, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(FileOptions{Path: path, Exclusive: true}); !errors.Is(err, errkind.Conflict) {
		t.Errorf("a second OpenFile() = %v, want a Conflict", err)
	}
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, err := f.Write([]byte("late\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write() after Close() = %v", err)
	}
	if got := readLines(t, path); !slices.Equal(got, []string{"cut", "one", "two"}) {
		t.Errorf("file has %q", got)
	}
	f, err = OpenFile(FileOptions{Path: path, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
