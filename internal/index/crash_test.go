package index_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/index"
	"knowhow/internal/search"
)

// Environment variables that make the test binary a writer: the data folder and
// the label to write under. Without a label it starts a migration and does not
// commit it.
const writerDir, writerLabel = "KNOWHOW_TEST_WRITER_DIR", "KNOWHOW_TEST_WRITER_LABEL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		run := func() error { return writeForever(dir, os.Getenv(writerLabel)) }
		if os.Getenv(writerLabel) == "" {
			run = func() error { return index.MigrateForever(dir) }
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForever stores documents and prints the number of each stored one on
// stdout, until it is killed.
func writeForever(dir, label string) error {
	ctx := context.Background()
	x, err := index.Open(ctx, index.Options{Dir: dir})
	if err != nil {
		return err
	}
	stats, err := x.Stats(ctx)
	if err != nil {
		return err
	}
	for n := stats.ByLabel[label].Documents; ; n++ {
		// Every second batch also replaces a document.
		d, old := writerDoc(label, n), writerDoc(label, n/2)
		if err := x.Apply(ctx, puts(d, old)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func writerDoc(label string, n int) document.Document {
	return doc(label, strconv.Itoa(n), "Document", writerText(n))
}

func writerText(n int) string {
	return strings.Repeat(fmt.Sprintf("unique%d and some words.\n\n", n), 5)
}

// start starts a writer and waits until it has stored a few documents. stop
// kills it and returns the number of the last document that it reported as
// stored, -1 if there is none.
func start(t *testing.T, dir, label string) (stop func() int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test binary: %v", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), writerDir+"="+dir, writerLabel+"="+label)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("starting a writer: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting a writer: %v", err)
	}
	acked := make(chan int)
	last := make(chan int, 1)
	go func() {
		defer close(acked)
		n := -1
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if i, err := strconv.Atoi(lines.Text()); err == nil {
				n = i
			}
			select {
			case acked <- n:
			default:
			}
		}
		last <- n
	}()
	first := -1
	for n := range acked {
		if first < 0 {
			first = n
		}
		if n >= first+15 {
			break
		}
	}
	return func() int {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("killing a writer: %v", err)
		}
		for range acked {
		}
		_ = cmd.Wait() // it was killed
		return <-last
	}
}

// TestKilledWriters kills processes that write, two at a time into one index,
// and checks that all documents that they reported as stored exist.
func TestKilledWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	for round := range 3 {
		stopA, stopB := start(t, dir, "a"), start(t, dir, "b")
		acked := map[string]int{"a": stopA(), "b": stopB()}
		begin := time.Now()
		x, err := index.Open(t.Context(), index.Options{Dir: dir})
		if err != nil {
			t.Fatalf("round %d: Open() = %v", round, err)
		}
		t.Logf("round %d: acknowledged %v, opened in %v", round, acked, time.Since(begin))
		for label, last := range acked {
			stats, err := x.Stats(t.Context())
			if err != nil {
				t.Fatalf("Stats() = %v", err)
			}
			// One more batch may have been stored and not yet reported.
			if n := stats.ByLabel[label].Documents; last < 0 || n < last+1 || n > last+2 {
				t.Errorf("round %d: %d documents of %s, want %d or one more", round, n, label, last+1)
			}
			for n := 0; n <= last; n++ {
				d := writerDoc(label, n)
				text, err := x.ReadText(t.Context(), d.ID, nil, 0, 1<<20)
				if err != nil || text.Window != d.Text {
					t.Errorf("round %d: document %d of %s = %v, %v", round, n, label, text, err)
				}
				if p := page(t, x, search.Query{Text: "unique" + strconv.Itoa(n), Labels: []string{label}}); p.Total != 1 {
					t.Errorf("round %d: Search(unique%d) in %s finds %d, want 1", round, n, label, p.Total)
				}
			}
		}
		if h, err := x.Health(t.Context()); err != nil || h.Status != "green" {
			t.Errorf("round %d: Health() = %v, %v", round, h, err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
}
