package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
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
	if diff := gocmp.Diff(want, slices.Sorted(slices.Values(sink.puts()))); diff != "" {
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
	if diff := gocmp.Diff(wantLast, last); diff != "" {
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
			Make: func(ctx context.Context, in extract.Input, known document.Document) ([]*document.Document, []Skipped,
				error) {
				if n.Add(1) == enough {
					close(read)
				}
				return MakeAll(ctx, in, known)
			}})
		mustSync(t, g, docs(folder(t, files)), Result{Added: 20})
	})
}

// A preparingSink is a memorySink that prepares changes.
type preparingSink struct {
	*memorySink
	prepare func([]document.Change) error
}

func (s preparingSink) Prepare(ctx context.Context, changes []document.Change) (func(context.Context) error, error) {
	err := s.prepare(changes)
	return func(ctx context.Context) error { return s.Apply(ctx, changes) }, err
}

// TestBatchesArePreparedWhileOthersAreApplied blocks the first batch until the
// second one is prepared. The batches are applied in their order, up to the first
// one that cannot be prepared.
func TestBatchesArePreparedWhileOthersAreApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := make(chan struct{})
		bad := errors.New("bad document")
		sink := preparingSink{&memorySink{}, func(changes []document.Change) error {
			switch changes[0].Put.Path {
			case "2":
				close(second)
			case "3":
				return bad
			}
			return nil
		}}
		sink.applying = func([]document.Change) error {
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("the second batch was not prepared while the first one was applied")
			}
			return nil
		}
		released := int64(0)
		b := &batch{s: &syncing{g: New(Options{Sink: sink, BatchBytes: 1}), res: &Result{}},
			release: func(n int64) { released += n }}
		var err error
		for _, path := range []string{"1", "2", "3", "4", "5"} {
			d := &document.Document{ID: path, Label: "docs", Path: path, Text: "text"}
			err = b.add(t.Context(), applied{document.Change{Put: d}, Result{Added: 1}, nil})
			if err != nil {
				break
			}
			b.running[len(b.running)-1].space = 1
		}
		if err = cmp.Or(err, b.wait()); !errors.Is(err, bad) {
			t.Errorf("error %v, want that of the third batch", err)
		}
		b.wait()
		if diff := gocmp.Diff([]string{"1", "2"}, sink.puts()); diff != "" || b.s.res.Added != 2 {
			t.Errorf("%d added; applied (-want +got):\n%s", b.s.res.Added, diff)
		}
		if released < 3 || len(b.running) > 0 {
			t.Errorf("space of %d batches is released, and %d batches run", released, len(b.running))
		}
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
