package kb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/kb"
	"knowhow/internal/kb/kbtest"
)

// open opens the base in a data folder and works on its jobs.
func open(t testing.TB, dir string, sources ...string) (*kb.Local, *index.Index) {
	t.Helper()
	return openWith(t, dir, nil, sources...)
}

// openWith is open for a base with an embedder. It does not compute vectors.
func openWith(t testing.TB, dir string, e embed.Embedder, sources ...string) (*kb.Local, *index.Index) {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: e, EmbedTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir, Sources: sources, MaxUpload: kbtest.MaxUpload, Version: "test"})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, x
}

func TestLocal(t *testing.T) {
	kbtest.Run(t, func(t *testing.T) kb.Base {
		b, _ := open(t, t.TempDir())
		return b
	})
}

func TestLocalMeaning(t *testing.T) {
	kbtest.RunMeaning(t, func(t *testing.T, e embed.Embedder) kb.Base {
		b, x := openWith(t, t.TempDir(), e)
		embedding(t, x, b, e)
		return b
	})
}

// embedding computes vectors in the background until the test ends.
func embedding(t *testing.T, x *index.Index, b *kb.Local, e embed.Embedder) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			labels, err := b.Labels(ctx)
			if err == nil {
				_, err = x.EmbedNext(ctx, e, labels, 10)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
}

// TestVectorOnly checks the error of a base without a model.
func TestVectorOnly(t *testing.T) {
	b, _ := open(t, t.TempDir())
	_, err := b.Search(t.Context(), kb.SearchQuery{Query: "car", VectorOnly: true, Top: 1})
	if want := "vector_only: without a model, nothing can be found by meaning"; !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), want) {
		t.Errorf("Search() = %v, want Unsupported with %q", err, want)
	}
}
