package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
)

func TestSyncAppliesInSmallBatches(t *testing.T) {
	root := folder(t, nil)
	var want []string
	for _, d := range "abcdefghij" {
		for _, f := range "0123456789" {
			name := string(d) + "/" + string(f) + ".txt"
			size := 10_000
			if f == '5' {
				size = 1000
			}
			write(t, root, name, strings.Repeat("word ", size/5), anHourAgo())
			want = append(want, name)
		}
	}
	sink := &memorySink{}
	var last Progress
	g := New(Options{Sink: sink, Pool: NewPool(8), BatchBytes: 50_000, Report: func(p Progress) {
		if p.Done < last.Done {
			t.Errorf("progress goes back from %d to %d", last.Done, p.Done)
		}
		last = p
	}})
	mustSync(t, g, docs(root), Result{Added: 100})
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(sink.puts()))); diff != "" {
		t.Errorf("put (-want +got):\n%s", diff)
	}
	for _, b := range sink.batches {
		bytes := 0
		for _, c := range b {
			bytes += len(c.Put.Text)
		}
		if bytes >= 60_000 {
			t.Errorf("batch of %d bytes, want less than 60,000", bytes)
		}
	}
	wantLast := Progress{Label: "docs", Done: 100, Total: 100, Bytes: 910_000, TotalBytes: 910_000, Path: last.Path}
	if diff := cmp.Diff(wantLast, last); diff != "" {
		t.Errorf("last progress (-want +got):\n%s", diff)
	}
}

func TestSyncLimitsChunksOfABatch(t *testing.T) {
	root := folder(t, nil)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		write(t, root, name, strings.Repeat("word ", 128_000), anHourAgo()) // some 540 chunks
	}
	sink := &memorySink{}
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 3})
	if len(sink.batches) != 2 {
		t.Errorf("%d batches, want 2", len(sink.batches))
	}
}

// TestSyncReadsWhileItApplies blocks the first batch until enough files for a
// second one are read.
func TestSyncReadsWhileItApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{}
		for i := range 20 {
			files[fmt.Sprintf("%02d.txt", i)] = strings.Repeat("word ", 2000)
		}
		const enough = 10
		read := make(chan struct{})
		var n atomic.Int64
		var waited bool
		sink := &memorySink{applying: func([]document.Change) error {
			if waited {
				return nil
			}
			waited = true
			select {
			case <-read:
				return nil
			case <-time.After(time.Minute):
				return fmt.Errorf("only %d files were read while a batch was applied", n.Load())
			}
		}}
		g := New(Options{Sink: sink, Pool: NewPool(1), BatchBytes: 50_000,
			Make: func(ctx context.Context, data []byte, known document.Document) ([]*document.Document, []Skipped, error) {
				if n.Add(1) == enough {
					close(read)
				}
				return makeAll(ctx, data, known)
			}})
		mustSync(t, g, docs(folder(t, files)), Result{Added: 20})
	})
}

func TestSyncStops(t *testing.T) {
	root := folder(t, nil)
	for _, d := range "abcdefghij" {
		write(t, root, string(d)+".txt", strings.Repeat("word ", 100), anHourAgo())
	}
	ctx, cancel := context.WithCancel(t.Context())
	sink := &memorySink{}
	sink.applying = func([]document.Change) error {
		if len(sink.batches) == 1 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	g := New(Options{Sink: sink, BatchBytes: 1})
	res, err := g.Sync(ctx, docs(root))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Sync = %v, want context.Canceled", err)
	}
	if paths := sink.paths(); len(paths) != 1 || res.Added != 1 {
		t.Errorf("Added = %d with documents %v, want 1", res.Added, paths)
	}
	sink.applying = nil
	mustSync(t, g, docs(root), Result{Added: 9, Unchanged: 1})
}

func TestSyncReportsFailureOfTheSink(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b"})
	full := errors.New("disk full")
	sink := &memorySink{applying: func([]document.Change) error { return full }}
	res, err := New(Options{Sink: sink}).Sync(t.Context(), docs(root))
	if !errors.Is(err, full) || res.Added != 0 {
		t.Errorf("Sync = %+v, %v, want nothing added and the sink's error", res, err)
	}
}
