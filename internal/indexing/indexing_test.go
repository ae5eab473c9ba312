package indexing

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// lockedBuffer is written to by several goroutines.
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

// A process is a Run over a data folder, in a bubble of synctest.
type process struct {
	t      *testing.T
	x      *index.Index
	out    lockedBuffer // what it says, logs included
	cancel context.CancelFunc
	done   chan error
}

// start starts a process that serves the sources with some labels; none means all.
func start(t *testing.T, dir string, once bool, labels ...string) *process {
	t.Helper()
	return startWith(t, Options{Dir: dir, Once: once}, labels...)
}

// startWith is start with some options.
func startWith(t *testing.T, o Options, labels ...string) *process {
	t.Helper()
	dir := o.Dir
	p := &process{t: t, x: openIndex(t, dir), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	p.cancel = cancel
	lines := terminal.NewLines(&p.out, nil)
	o.Index, o.Lines, o.Log = p.x, lines, slog.New(terminal.NewHandler(lines, slog.LevelWarn))
	if len(labels) > 0 {
		o.Sources = func(ctx context.Context) ([]document.Source, error) {
			all, err := p.x.Sources(ctx)
			var mine []document.Source
			for _, src := range all {
				for _, l := range labels {
					if src.Label == l {
						mine = append(mine, src)
					}
				}
			}
			return mine, err
		}
	}
	go func() { p.done <- New(o).Run(ctx) }()
	return p
}

func openIndex(t *testing.T, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// stop ends a process in order.
func (p *process) stop() {
	p.t.Helper()
	p.cancel()
	p.wait()
}

// wait waits for the end of a process.
func (p *process) wait() {
	p.t.Helper()
	if err := <-p.done; err != nil {
		p.t.Errorf("Run = %v, want nil", err)
	}
	if err := p.x.Close(); err != nil {
		p.t.Error(err)
	}
}

// paths returns the documents of a label.
func (p *process) paths(label string) map[string]bool {
	p.t.Helper()
	stamps, err := p.x.Stamps(p.t.Context(), label)
	if err != nil {
		p.t.Fatal(err)
	}
	paths := map[string]bool{}
	for path := range stamps {
		paths[path] = true
	}
	return paths
}

// folders makes a data folder that remembers sources, one for each label, with
// one file each.
func folders(t *testing.T, labels ...string) (dir string, roots map[string]string) {
	t.Helper()
	dir, roots = t.TempDir(), map[string]string{}
	x := openIndex(t, dir)
	defer x.Close()
	for _, label := range labels {
		roots[label] = t.TempDir()
		writeFile(t, filepath.Join(roots[label], "a.txt"))
		if err := x.AddSource(t.Context(), document.Source{Label: label, Path: roots[label]}); err != nil {
			t.Fatal(err)
		}
	}
	return dir, roots
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1e9, 0)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func TestRunOnce(t *testing.T) {
	dir, roots := folders(t, "docs", "gone", "other")
	if err := os.RemoveAll(roots["gone"]); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, true, "docs", "gone")
		p.wait()
		out := p.out.String()
		for _, want := range []string{"docs: 1 document indexed in ",
			"gone: indexing is not complete: reading source \"gone\": ",
			"what is indexed of it can still be searched\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("printed %q, want it to contain %q", out, want)
			}
		}
		if n := strings.Count(out, "\n"); n != 2 {
			t.Errorf("printed %d lines, want one for each source:\n%s", n, out)
		}
		p = start(t, dir, true)
		p.wait()
		if out := p.out.String(); !strings.Contains(out, ": no changes\n") ||
			!strings.Contains(out, "other: 1 document indexed in ") {
			t.Errorf("printed %q, want all sources of the index", out)
		}
	})
}

// Files that another version of the program has read are read again, once.
func TestRunReadsAgain(t *testing.T) {
	dir, _ := folders(t, "docs")
	db, err := sql.Open("sqlite", filepath.Join(dir, index.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, true)
		p.wait()
		if _, err := db.Exec(`UPDATE sources SET left_out='{"Counts":{},"Paths":null}'`); err != nil { // as an older version stored it
			t.Fatal(err)
		}
		for _, want := range []string{": 1 changed\n", ": no changes\n"} {
			p := start(t, dir, true)
			p.wait()
			if out := p.out.String(); !strings.Contains(out, want) {
				t.Errorf("printed %q, want %q", out, want)
			}
		}
	})
}

// Each source is indexed by one process that was asked for it, and taken over
// by another one.
func TestRunSharesSources(t *testing.T) {
	dir, roots := folders(t, "a", "b", "c")
	synctest.Test(t, func(t *testing.T) {
		one := start(t, dir, false, "a", "b")
		synctest.Wait()
		two := start(t, dir, false, "b", "c")
		time.Sleep(time.Second)
		synctest.Wait()
		for _, label := range []string{"a", "b", "c"} {
			if diff := cmp.Diff(map[string]bool{"a.txt": true}, two.paths(label)); diff != "" {
				t.Errorf("documents of %s (-want +got):\n%s", label, diff)
			}
		}
		if out := one.out.String(); strings.Contains(out, "another process") {
			t.Errorf("the first process says %q", out)
		}
		time.Sleep(time.Minute)
		want := "another process is indexing b: this one searches, and takes over when that one ends\n"
		if out := two.out.String(); strings.Count(out, "another process") != 1 || !strings.Contains(out, want) {
			t.Errorf("the second process says %q, want %q once", out, want)
		}

		// The first process ends; another one takes over b and dies.
		held, err := one.x.Lease(t.Context(), "the dead", leaseTTL, sourceLease+"b")
		if err != nil || len(held) > 0 {
			t.Errorf("the lease of b is free while the first process runs: %v, %v", held, err)
		}
		one.stop()
		if held, err := two.x.Lease(t.Context(), "the dead", leaseTTL, sourceLease+"b"); err != nil || len(held) != 1 {
			t.Errorf("the lease of b is not free after the first process ended: %v, %v", held, err)
		}
		for _, label := range []string{"a", "b", "c"} {
			writeFile(t, filepath.Join(roots[label], "new.txt"))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for label, want := range map[string]bool{"a": false, "b": true, "c": true} {
			if got := two.paths(label)["new.txt"]; got != want {
				t.Errorf("the second process indexed the new file of %s: %v, want %v", label, got, want)
			}
		}
		two.stop()
	})
}

// Sources come and go while a process runs.
func TestRunFollowsSources(t *testing.T) {
	dir, _ := folders(t, "a", "b")
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "other.txt"))
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, false)
		synctest.Wait()
		if err := p.x.RemoveSource(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if err := p.x.AddSource(t.Context(), document.Source{Label: "b", Path: root}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(map[string]bool{"other.txt": true}, p.paths("b")); diff != "" {
			t.Errorf("documents of b (-want +got):\n%s", diff)
		}
		if err := p.x.RemoveSource(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if got := p.paths("a"); len(got) > 0 {
			t.Errorf("documents of a removed source: %v", got)
		}
		p.stop()
		if out := p.out.String(); strings.Contains(out, "WARN") {
			t.Errorf("logged a warning:\n%s", out)
		}
	})
}

// After Prepare searches report that documents will be indexed. Close takes that
// back, and another process may index them.
func TestPrepare(t *testing.T) {
	dir, _ := folders(t, "a")
	synctest.Test(t, func(t *testing.T) {
		x := openIndex(t, dir)
		defer x.Close()
		if err := x.SetProgress(t.Context(), index.Progress{Label: "a", Done: 1, Total: 3, Stopped: search.DiskFull,
			Message: "why"}); err != nil {
			t.Fatal(err)
		}
		want, err := x.Unfinished(t.Context(), nil)
		if err != nil || len(want) != 1 {
			t.Fatalf("Unfinished() = %+v, %v, want one source", want, err)
		}
		o := Options{Index: x, Lines: terminal.NewLines(&lockedBuffer{}, nil), Log: discard}
		for range 2 { // the second is another process
			w := New(o)
			w.Prepare(t.Context())
			if done, total, busy := x.Indexing(t.Context(), nil); !busy || done != 0 || total != 1 {
				t.Errorf("after Prepare, Indexing() = %d, %d, %v, want 0, 1, true", done, total, busy)
			}
			w.Close(t.Context())
			if _, _, busy := x.Indexing(t.Context(), nil); busy {
				t.Error("after Close, Indexing() reports that documents are being indexed")
			}
			if got, err := x.Unfinished(t.Context(), nil); err != nil || !cmp.Equal(want, got) {
				t.Errorf("after Close, Unfinished() = %+v, %v, want %+v as before", got, err, want)
			}
		}
	})
}

// A process that is stopped before it has begun to index leaves no lease.
func TestStoppedBeforeRun(t *testing.T) {
	dir, _ := folders(t, "a")
	x := openIndex(t, dir)
	defer x.Close()
	w := New(Options{Index: x, Lines: terminal.NewLines(&lockedBuffer{}, nil), Log: discard})
	w.Prepare(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	w.Close(t.Context())
	leases, err := x.Leases(t.Context())
	if diff := cmp.Diff(map[string]string{}, leases); err != nil || diff != "" {
		t.Errorf("leases after Run (-want +got), error %v:\n%s", err, diff)
	}
}

// Run returns within a second, even if something does not look at its context.
func TestRunStopsInTime(t *testing.T) {
	dir, _ := folders(t, "a")
	synctest.Test(t, func(t *testing.T) {
		x := openIndex(t, dir)
		defer x.Close()
		w := &Indexer{
			Options: Options{Index: x, Lines: terminal.NewLines(&lockedBuffer{}, nil), Log: discard},
			owner:   "me", tasks: map[string]*task{}, ended: make(chan *task), quit: make(chan struct{}),
			view: &progressView{store: x, lines: terminal.NewLines(&lockedBuffer{}, nil)},
		}
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		w.start(ctx, &task{lease: "hung", run: func(context.Context) error { <-release; return nil }})
		cancel()
		began := time.Now()
		w.stop(ctx)
		if took := time.Since(began); took > time.Second {
			t.Errorf("stop took %v, want at most a second", took)
		}
		close(w.quit)
		close(release)
	})
}

// A file that ended two processes is left out by name, and the others that were
// read beside it are indexed.
func TestRunAfterDeaths(t *testing.T) {
	dir, roots := folders(t, "a")
	for i := range 5 {
		writeFile(t, filepath.Join(roots["a"], fmt.Sprintf("good%d.txt", i)))
	}
	writeFile(t, filepath.Join(roots["a"], "evil.txt"))
	stamp := document.Stamp{Size: 4, ModTime: time.Unix(1e9, 0)}
	die := func(paths ...string) {
		j := openJournal(dir, "a", discard)
		defer j.close()
		for _, path := range paths {
			j.Begin(document.Ref{Label: "a", Path: path}, stamp)
		}
	}
	die("good1.txt", "evil.txt")
	die("evil.txt")
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			p := start(t, dir, true)
			p.wait()
			want := "a: left out: 1 after a crash\n" +
				`a: left out "evil.txt": knowhow ended 2 times while it extracted its text; it is read again when it changes: ` +
				"repair it, or convert it to another format\n"
			if out := p.out.String(); !strings.HasSuffix(out, want) {
				t.Errorf("printed %q, want %q at the end", out, want)
			}
		}
		p := start(t, dir, true)
		p.wait()
		p.x = openIndex(t, dir)
		if paths := p.paths("a"); len(paths) != 6 || paths["evil.txt"] {
			t.Errorf("documents %v, want all but evil.txt", paths)
		}
		p.x.Close()
	})
	if err := os.WriteFile(filepath.Join(roots["a"], "evil.txt"), []byte("repaired"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, true)
		p.wait()
		if out := p.out.String(); !strings.HasPrefix(out, "a: 7 documents indexed in ") ||
			!strings.HasSuffix(out, ": 1 new\n") {
			t.Errorf("printed %q, want the changed file indexed", out)
		}
	})
}

// The progress of a later sync that fails is removed from the index.
func TestRunFailingSync(t *testing.T) {
	dir, roots := folders(t, "a")
	db, err := sql.Open("sqlite", filepath.Join(dir, index.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, false)
		defer p.stop()
		synctest.Wait()
		if _, err := db.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON docs BEGIN SELECT RAISE(ABORT, 'refused'); END`); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(roots["a"], "b.txt"))
		writeFile(t, filepath.Join(roots["a"], "c.txt"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if out := p.out.String(); !strings.Contains(out, "refused") {
			t.Fatalf("printed %q, want the failure", out)
		}
		if done, total, busy := p.x.Indexing(t.Context(), nil); busy {
			t.Errorf("Indexing() = %d of %d while nothing is indexed", done, total)
		}
		got, err := p.x.Unfinished(t.Context(), nil)
		if err != nil || len(got) != 1 || got[0].Stop != search.Failed || got[0].Done != 1 || got[0].Total != 3 ||
			!strings.Contains(got[0].Message, "refused") {
			t.Errorf("Unfinished() = %+v, %v, want 1 of 3 documents and the failure", got, err)
		}
		if _, err := db.Exec(`DROP TRIGGER refuse`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, err := p.x.Unfinished(t.Context(), nil); err != nil || len(got) > 0 {
			t.Errorf("Unfinished() = %+v, %v after the next attempt, want none", got, err)
		}
	})
}

// A source that cannot be read is unfinished until it can be.
func TestRunUnreadableSource(t *testing.T) {
	dir, roots := folders(t, "a")
	away := roots["a"] + "-away"
	if err := os.Rename(roots["a"], away); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, false)
		synctest.Wait()
		got, err := p.x.Unfinished(t.Context(), nil)
		if err != nil || len(got) != 1 || got[0].Stop != search.Failed || got[0].Total != 0 {
			t.Errorf("Unfinished() = %+v, %v, want a failure", got, err)
		}
		p.stop()
		x := openIndex(t, dir)
		if again, err := x.Unfinished(t.Context(), nil); err != nil || !cmp.Equal(got, again) {
			t.Errorf("Unfinished() = %+v, %v after the end of the process, want %+v", again, err, got)
		}
		x.Close()
		if err := os.Rename(away, roots["a"]); err != nil {
			t.Fatal(err)
		}
		p = start(t, dir, false)
		defer p.stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, err := p.x.Unfinished(t.Context(), nil); err != nil || len(got) > 0 {
			t.Errorf("Unfinished() = %+v, %v after the folder came back, want none", got, err)
		}
	})
}

// TestProcesses looks up the process that indexes a source.
func TestProcesses(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	in := New(Options{Index: x, Lines: terminal.NewLines(io.Discard, nil), Log: slog.New(slog.DiscardHandler)})
	in.Prepare(t.Context())
	got, err := Processes(t.Context(), x)
	if err != nil || len(got) != 1 || got["docs"].PID != os.Getpid() {
		t.Errorf("Processes() = %v, %v, want this process", got, err)
	}
	in.Close(t.Context())
	if got, err := Processes(t.Context(), x); err != nil || len(got) != 0 {
		t.Errorf("Processes() = %v, %v after Close, want none", got, err)
	}
}

// All sources count as being indexed from the first step on, so that the index is
// never without work between the end of one and the beginning of the next.
func TestSourcesBeginTogether(t *testing.T) {
	dir, _ := folders(t, "a", "b")
	x := openIndex(t, dir)
	defer x.Close()
	w := New(Options{Index: x, Dir: dir, Lines: terminal.NewLines(&lockedBuffer{}, nil), Log: discard})
	defer close(w.quit)
	defer w.stop(t.Context())
	w.maintaining.Lock() // no task gets as far as its files
	defer w.maintaining.Unlock()
	if err := w.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"a", "b"} {
		if _, _, busy := x.Indexing(t.Context(), []string{label}); !busy {
			t.Errorf("source %s is not being indexed, want that all sources are", label)
		}
	}
}
