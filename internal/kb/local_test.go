package kb_test

import (
	"context"
	"sync"
	"testing"

	"knowhow/internal/index"
	"knowhow/internal/kb"
	"knowhow/internal/kb/kbtest"
)

// open opens the base in a data folder and works on its jobs.
func open(t *testing.T, dir string, sources ...string) (*kb.Local, *index.Index) {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
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
