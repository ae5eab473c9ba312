package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

// find searches and returns the ids of the hits.
func find(t testing.TB, r *Registry, text string, datasets ...string) []string {
	t.Helper()
	res, err := r.Search(t.Context(), Query{Datasets: datasets, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, h := range res.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// Changed files are read again, unchanged ones are not, and a dataset that
// vanishes is gone.
func TestReload(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	newSample("two").write(t, root, "two")
	var log bytes.Buffer
	r, err := New(Options{Dir: root, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	sets := func() map[string]*Set {
		m := map[string]*Set{}
		for _, e := range r.snapshot() {
			m[e.id()] = e.set
		}
		return m
	}
	before := sets()
	scan(t, r)
	if after := sets(); after["one"] != before["one"] || after["two"] != before["two"] {
		t.Error("a scan without changes read datasets again")
	}

	// A manifest that cannot be read is read again, and logged once.
	if err := os.MkdirAll(filepath.Join(root, "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "broken", "manifest.json"), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		scan(t, r)
	}
	if n := strings.Count(log.String(), "broken: manifest"); n != 1 {
		t.Errorf("three scans logged a broken manifest %d times, want once:\n%s", n, log.String())
	}
	if err := os.RemoveAll(filepath.Join(root, "broken")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	log.Reset()

	// New texts.
	writeJSON(t, filepath.Join(root, "one", "metadata.json"),
		[]map[string]any{{"id": "new", "content": "Unicorns are rare."}})
	scan(t, r)
	if got := find(t, r, "unicorns", "one"); !cmp.Equal(got, []string{"new"}) {
		t.Errorf("after the change: %v", got)
	}
	if sets()["two"] != before["two"] {
		t.Error("the change of one dataset read the other again")
	}

	// Damage is reported, and goes away with its cause.
	put(t, filepath.Join(root, "one", "metadata.json"), "[{")
	scan(t, r)
	if _, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: "x"}); !errors.Is(err,
		errkind.Corrupt) || !strings.Contains(fmt.Sprint(err), "metadata file") {
		t.Errorf("Search of a damaged dataset: %v", err)
	}
	failed := list(t, r)["one"].FailedAt
	scan(t, r)
	if got := list(t, r)["one"]; got.State != Error || !got.FailedAt.Equal(failed) {
		t.Errorf("a scan without changes: %+v, want the failure at %v", got, failed)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("the damage was logged %d times:\n%s", n, log.String())
	}
	newSample("one").write(t, root, "one")
	scan(t, r)
	if got := find(t, r, "leave", "one"); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("after the repair: %v", got)
	}

	// Another file of the same size and time takes the place of one.
	name := filepath.Join(root, "one", "metadata.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	put(t, name+".new", strings.Replace(string(text), "leave.", "ghost.", 1))
	if err := errors.Join(os.Chtimes(name+".new", info.ModTime(), info.ModTime()),
		os.Rename(name+".new", name)); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := find(t, r, "ghost", "one"); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("after a file was replaced: %v", got)
	}

	// A file that was missing appears.
	if err := os.Rename(filepath.Join(root, "one", "index"), filepath.Join(root, "one", "away")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r)["one"]; got.State != Error {
		t.Errorf("without index: %s", got.State)
	}
	if err := os.Rename(filepath.Join(root, "one", "away"), filepath.Join(root, "one", "index")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r)["one"]; got.State != Ready {
		t.Errorf("with the index again: %s", got.State)
	}

	// Another id, and no dataset.
	newSample("renamed").write(t, root, "one")
	if err := os.RemoveAll(filepath.Join(root, "two")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r); len(got) != 1 || got["renamed"].State != Ready {
		t.Errorf("after renaming: %v", got)
	}
	_, err = r.Search(t.Context(), Query{Datasets: []string{"two"}, Text: "x"})
	if unknown, ok := errors.AsType[*UnknownDataset](err); !ok || !cmp.Equal(unknown.Known, []string{"renamed"}) {
		t.Errorf("Search of a dataset that is gone: %v", err)
	}
}

// A search during a reload uses the old state, and one that began before the
// dataset vanished is not disturbed.
func TestSearchWhileReloading(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	r := open(t, root)
	s, err := r.get(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "one")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if res, err := search(t.Context(), []*Set{s}, Query{Text: "leave"}); err != nil || len(res.Hits) != 1 {
		t.Errorf("search in a dataset that vanished: %v, %v", res, err)
	}

	newSample("one").write(t, root, "one")
	scan(t, r)
	writeJSON(t, filepath.Join(root, "one", "metadata.json"), []map[string]any{{"id": "new", "content": "Unicorns"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Scan = %v", err)
	}
	if got := find(t, r, "leave", "one"); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("before the new state is loaded: %v", got)
	}
	scan(t, r)
	if got := find(t, r, "unicorns", "one"); !cmp.Equal(got, []string{"new"}) {
		t.Errorf("afterwards: %v", got)
	}
}

// Changes are served within 10 seconds (contract).
func TestWatch(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Options{Dir: root})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Watch(ctx)
		}()
		synctest.Wait()
		if got := list(t, r)["one"]; got.State != Ready {
			t.Errorf("after the first scan: %+v", got)
		}
		writeJSON(t, filepath.Join(root, "one", "metadata.json"),
			[]map[string]any{{"id": "new", "content": "Unicorns are rare."}})
		newSample("two").write(t, root, "two")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if got := find(t, r, "unicorns leave", "one", "two"); len(got) != 2 {
			t.Errorf("after 9 seconds: %v", got)
		}
		cancel()
		<-done
	})
}

// A folder that cannot be read is reported once, and again after it could be read.
func TestWatchReportsOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "datasets")
	put(t, root, "a file")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r, err := New(Options{Dir: root, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Watch(ctx)
		}()
		time.Sleep(time.Minute)
		if err := os.Remove(root); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		put(t, root, "a file")
		time.Sleep(time.Minute)
		cancel()
		<-done
		if got := strings.Count(log.String(), "reading the folder of the datasets failed"); got != 2 {
			t.Errorf("the folder is reported %d times, want 2:\n%s", got, &log)
		}
	})
}

// Before the first scan, calls wait until their time is over.
func TestWaitForScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, fmt.Errorf("too long: %w", errkind.Timeout))
		defer cancel()
		if _, err := r.Search(ctx, Query{Datasets: []string{"x"}, Text: "x"}); !errors.Is(err, errkind.Timeout) {
			t.Errorf("Search = %v", err)
		}
		if _, err := r.List(ctx); !errors.Is(err, errkind.Timeout) {
			t.Errorf("List = %v", err)
		}
	})
}
