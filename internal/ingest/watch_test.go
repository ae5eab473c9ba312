package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// watching starts Watch over one folder in a bubble and stops it at the end.
func watching(t *testing.T, g *Ingester, src document.Source, o WatchOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- g.Watch(ctx, func(context.Context) ([]document.Source, error) { return []document.Source{src}, nil }, o)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v, want context.Canceled", err)
		}
	})
}

func TestWatchSeesChanges(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a"})
	synctest.Test(t, func(t *testing.T) {
		sink := &memorySink{}
		rounds := 0
		watching(t, New(Options{Sink: sink}), docs(root), WatchOptions{
			Synced: func(document.Source, *Result, error) bool { rounds++; return false },
		})
		synctest.Wait()
		if sink.doc("a.txt") == nil {
			t.Fatal("the first round did not index a.txt")
		}
		write(t, root, "b.txt", "b", anHourAgo())
		time.Sleep(defaultMinInterval + time.Millisecond)
		synctest.Wait()
		if sink.doc("b.txt") == nil {
			t.Error("b.txt is not seen after the least interval")
		}
		if rounds != 2 {
			t.Errorf("%d rounds, want 2", rounds)
		}
	})
}

func TestWatchLogsAFailureOnceAndRecovers(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a"})
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		sink := &memorySink{}
		g := New(Options{Sink: sink, Log: textLog(&log)})
		ft := withFaults(g)
		ft.fail(".", fs.ErrPermission)
		fails := 0
		watching(t, g, docs(root), WatchOptions{Synced: func(_ document.Source, _ *Result, err error) bool {
			if err != nil {
				fails++
			}
			return false
		}})
		time.Sleep(3*defaultMaxInterval + time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "permission denied"); n != 1 || fails != 4 {
			t.Errorf("%d rounds failed and %d were logged, want 4 and 1:\n%s", fails, n, log.String())
		}
		ft.fail(".", nil)
		time.Sleep(defaultMaxInterval)
		synctest.Wait()
		if sink.doc("a.txt") == nil || !strings.Contains(log.String(), "works again") {
			t.Errorf("it did not recover:\n%s", log.String())
		}
	})
}

func TestWatchSurvivesAFailingListOfSources(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a"})
	synctest.Test(t, func(t *testing.T) {
		sink := &memorySink{}
		calls := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := New(Options{Sink: sink}).Watch(ctx, func(context.Context) ([]document.Source, error) {
			if calls++; calls == 1 {
				return nil, errors.New("busy")
			}
			return []document.Source{docs(root)}, nil
		}, WatchOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || sink.doc("a.txt") == nil {
			t.Errorf("Watch = %v with documents %v, want the deadline and a.txt", err, sink.paths())
		}
	})
}

// As long as nothing changes, a look at a source does not read the state of
// every document from the index.
func TestSyncComparesWithTheIndexOnlyAfterChanges(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b", "blob": "\x00"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	mustSync(t, g, docs(root), Result{Added: 2, LeftOut: left(NoText, 1)})
	for range 5 {
		mustSync(t, g, docs(root), Result{Unchanged: 2, LeftOut: left(NoText, 1)})
	}
	if sink.asked != 2 {
		t.Errorf("compared with the index %d times, want 2: for the files, and to see that nothing is left to do",
			sink.asked)
	}
	write(t, root, "b.txt", "B", time.Unix(1e9, 0))
	mustSync(t, g, docs(root), Result{Unchanged: 1, Changed: 1, LeftOut: left(NoText, 1)})
	mustSync(t, g, docs(root), Result{Unchanged: 2, LeftOut: left(NoText, 1)})
	mustSync(t, g, docs(root), Result{Unchanged: 2, LeftOut: left(NoText, 1)})

	// Another process removes a document.
	if err := sink.Apply(t.Context(), []document.Change{{Delete: &document.Ref{Label: "docs",
		Path: "a.txt"}}}); err != nil {
		t.Fatal(err)
	}
	mustSync(t, g, docs(root), Result{Added: 1, Unchanged: 1, LeftOut: left(NoText, 1)})
	if sink.doc("a.txt") == nil {
		t.Error("the document that another process removed is still missing")
	}
}

// slowFolder takes half a second to be listed.
type slowFolder struct{ openFolder }

func (f slowFolder) ReadDir() ([]fs.DirEntry, error) {
	time.Sleep(500 * time.Millisecond)
	return f.openFolder.ReadDir()
}

// slowTree is a tree whose folder takes half a second to be listed.
type slowTree struct{ tree }

func (t slowTree) Folder() (openFolder, error) {
	f, err := t.tree.Folder()
	return slowFolder{f}, err
}

// Watches of one pool rest as long as one watch of all their sources would.
func TestWatchesRestTogether(t *testing.T) {
	roots := []string{folder(t, map[string]string{"a.txt": "a"}), folder(t, map[string]string{"b.txt": "b"})}
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(0)
		rounds := make([]int, len(roots))
		for i, root := range roots {
			g := New(Options{Sink: &memorySink{}, Pool: pool})
			g.openTree = func(path string) (tree, func() error, error) {
				disk, closeTree, err := openTree(path)
				return slowTree{disk}, closeTree, err
			}
			watching(t, g, document.Source{Label: fmt.Sprint(i), Path: root}, WatchOptions{
				MaxInterval: time.Hour,
				Synced:      func(document.Source, *Result, error) bool { rounds[i]++; return false },
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, n := range rounds {
			if n < 6 || n > 7 { // one rests 10 s and looks half a second
				t.Errorf("%d rounds of source %d in a minute, want 6 or 7", n, i)
			}
		}
	})
}
