package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// slowText is a parser that takes a minute for documents whose name contains
// "slow", unless its context ends before, and notes which names it is given.
type slowText struct {
	deaf bool // does not look at its context

	mu     sync.Mutex
	names  []string
	atOnce int // documents that are being parsed
	most   map[string]int
}

// one returns a function that makes one document of a file.
func one(f func(context.Context, []byte, document.Document) (*document.Document, error)) func(context.Context,
	extract.Input, document.Document) ([]*document.Document, []Skipped, error) {
	return func(ctx context.Context, in extract.Input, known document.Document) ([]*document.Document, []Skipped,
		error) {
		d, err := f(ctx, in.Data, known)
		if err != nil {
			return nil, nil, err
		}
		return []*document.Document{d}, nil, nil
	}
}

func (s *slowText) makeDoc(ctx context.Context, data []byte, known document.Document) (*document.Document, error) {
	s.mu.Lock()
	s.names = append(s.names, known.Path)
	s.atOnce++
	if s.most == nil {
		s.most = map[string]int{}
	}
	s.most[known.Path] = s.atOnce
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atOnce--
	}()
	if strings.Contains(known.Path, "slow") {
		if s.deaf {
			ctx = context.Background()
		}
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return Make(ctx, data, known)
}

func (s *slowText) times(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, got := range s.names {
		if got == name {
			n++
		}
	}
	return n
}

// memoryJournal is a Journal in memory. Files whose extraction has begun and
// not ended have reading set.
type memoryJournal struct {
	mu      sync.Mutex
	past    map[document.Ref]Past
	reading map[document.Ref]bool
}

func newMemoryJournal() *memoryJournal {
	return &memoryJournal{past: map[document.Ref]Past{}, reading: map[document.Ref]bool{}}
}

func (j *memoryJournal) Past(f document.Ref, _ document.Stamp) Past {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.past[f]
}

func (j *memoryJournal) Begin(f document.Ref, _ document.Stamp) func(Past) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reading[f] = true
	return func(p Past) {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.reading, f)
		j.past[f] = p
	}
}

func TestSlowFileIsLeftOutUntilItChanges(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "slow.txt": "s"})
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sink, journal, text := &memorySink{}, newMemoryJournal(), &slowText{deaf: deaf}
			var g *Ingester
			newProcess := func(timeout time.Duration) {
				g = New(Options{Sink: sink, Journal: journal, FileTimeout: timeout})
				g.makeDocs = one(text.makeDoc)
			}
			newProcess(0)
			start := time.Now()
			res := mustSync(t, g, docs(root), Result{Added: 1, SkippedTotal: 1, LeftOut: left(TooSlow, 1)})
			if took := time.Since(start); took > defaultFileTimeout+time.Second {
				t.Errorf("the sync took %v, want it to give up after %v", took, defaultFileTimeout)
			}
			want := "extracting or indexing its text takes longer than 10 s; it is read again when it changes: split it, or convert it to another format"
			if s := res.Skipped[0]; s.Path != "slow.txt" || s.Reason != TooSlow || s.Err.Error() != want {
				t.Errorf("Skipped = %+v, want slow.txt and %q", s, want)
			}
			mustSync(t, g, docs(root), Result{Unchanged: 1, SkippedTotal: 1, LeftOut: left(TooSlow, 1)})
			newProcess(0)
			mustSync(t, g, docs(root), Result{Unchanged: 1, SkippedTotal: 1, LeftOut: left(TooSlow, 1)})
			if n := text.times("slow.txt"); n != 1 {
				t.Errorf("extracted %d times, want once", n)
			}
			newProcess(2 * time.Minute) // a new limit is a new chance
			mustSync(t, g, docs(root), Result{Added: 1, Unchanged: 1})
			time.Sleep(time.Minute) // for a parser that was left behind
		})
	}
}

// What was indexed of a file is removed when its new state cannot be indexed.
func TestSlowFileIsRemoved(t *testing.T) {
	root := folder(t, map[string]string{"slow.txt": "s"})
	synctest.Test(t, func(t *testing.T) {
		sink := &memorySink{}
		g := New(Options{Sink: sink})
		mustSync(t, g, docs(root), Result{Added: 1})
		g.makeDocs = one((&slowText{}).makeDoc)
		write(t, root, "slow.txt", "changed", anHourAgo())
		mustSync(t, g, docs(root), Result{Removed: 1, SkippedTotal: 1, LeftOut: left(TooSlow, 1)})
	})
}

// slowFile takes a while to be read.
type slowFile struct{ file }

func (f slowFile) Read(b []byte) (int, error) {
	time.Sleep(8 * time.Second)
	return f.file.Read(b)
}

func TestSlowFileDoesNotDelayOthers(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b", "c.txt": "c", "d.txt": "d"})
	synctest.Test(t, func(t *testing.T) {
		sink := &memorySink{}
		g := New(Options{Sink: sink})
		withFaults(g).wrap = func(f file, name string) file {
			if name == "a.txt" {
				return slowFile{f}
			}
			return f
		}
		var done sync.WaitGroup
		done.Go(func() { mustSync(t, g, docs(root), Result{Added: 4}) })
		time.Sleep(4 * time.Second)
		if diff := cmp.Diff([]string{"b.txt", "c.txt", "d.txt"}, sink.paths()); diff != "" {
			t.Errorf("documents while a.txt is being read (-want +got):\n%s", diff)
		}
		done.Wait()
	})
}

func TestSlowSourceDoesNotDelayOthers(t *testing.T) {
	slow := map[string]string{}
	for _, name := range "abcdefghij" {
		slow["slow-"+string(name)+".txt"] = "s"
	}
	slowRoot, root := folder(t, slow), folder(t, map[string]string{"a.txt": "a", "b.txt": "b", "c.txt": "c"})
	synctest.Test(t, func(t *testing.T) {
		sink, pool, text := &memorySink{}, NewPool(2), &slowText{}
		newIngester := func() *Ingester {
			g := New(Options{Sink: sink, Pool: pool})
			g.makeDocs = one(text.makeDoc)
			return g
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			if _, err := newIngester().Sync(ctx, document.Source{Label: "slow", Path: slowRoot}); !errors.Is(err,
				context.Canceled) {
				t.Errorf("Sync of the slow source = %v, want context.Canceled", err)
			}
		})
		synctest.Wait() // it occupies all workers
		start := time.Now()
		mustSync(t, newIngester(), docs(root), Result{Added: 3})
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("the other source took %v, want few seconds", took)
		}
		if n := len(text.names); n > 3+pool.readers() {
			t.Errorf("%d files of the slow source are read at once, want at most %d", n-3, pool.readers())
		}
		cancel()
		done.Wait()
	})
}

// A Sync that is cancelled ends at once, whatever is being extracted.
func TestSyncStopsInTheMiddleOfAFile(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "slow-1.txt": "s", "slow-2.txt": "s", "slow-3.txt": "s"})
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			pool, journal := NewPool(1), newMemoryJournal()
			g := New(Options{Sink: &memorySink{}, Pool: pool, Journal: journal})
			g.makeDocs = one((&slowText{deaf: deaf}).makeDoc)
			ctx, cancel := context.WithCancel(t.Context())
			var canceled time.Time
			time.AfterFunc(5*time.Second, func() {
				canceled = time.Now()
				cancel()
			})
			_, err := g.Sync(ctx, docs(root))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Sync = %v, want context.Canceled", err)
			}
			if took := time.Since(canceled); took > abandonIn {
				t.Errorf("Sync took %v to stop, want at most %v", took, abandonIn)
			}
			if len(journal.reading) > 0 {
				t.Errorf("the journal says that %v are being read", journal.reading)
			}
			time.Sleep(time.Minute) // for a parser that was left behind
			if !pool.space.TryAcquire(pool.size) {
				t.Error("the pool has lost space")
			}
		})
	}
}

func TestSuspectsAreReadLastAndAlone(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b", "c.txt": "c", "d.txt": "d", "banned.txt": "x"})
	sink, journal, text := &memorySink{}, newMemoryJournal(), &slowText{}
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 5})
	ref := func(path string) document.Ref { return document.Ref{Label: "docs", Path: path} }
	journal.past[ref("a.txt")] = Past{Deaths: 1}
	journal.past[ref("b.txt")] = Past{Deaths: 1}
	journal.past[ref("banned.txt")] = Past{Deaths: 2}
	for _, name := range []string{"a.txt", "b.txt", "c.txt", "d.txt", "banned.txt"} {
		write(t, root, name, "changed", anHourAgo())
	}
	var log bytes.Buffer
	g := New(Options{Sink: sink, Journal: journal, Log: slog.New(slog.NewTextHandler(&log, nil))})
	g.makeDocs = one(func(ctx context.Context, data []byte, known document.Document) (*document.Document, error) {
		if known.Path == "a.txt" && len(sink.paths()) == 5 {
			t.Error("a suspect is read before everything else is applied")
		}
		return text.makeDoc(ctx, data, known)
	})
	res := mustSync(t, g, docs(root), Result{Changed: 4, Removed: 1, SkippedTotal: 1, LeftOut: left(Crashed, 1)})
	want := "knowhow ended 2 times while it extracted its text; it is read again when it changes: repair it, or convert it to another format"
	if s := res.Skipped[0]; s.Path != "banned.txt" || s.Err.Error() != want {
		t.Errorf("Skipped = %+v, want banned.txt and %q", s, want)
	}
	if order := text.names; len(order) != 4 || !slices.Equal(order[2:], []string{"a.txt", "b.txt"}) {
		t.Errorf("read in the order %v, want the suspects a.txt and b.txt last", order)
	}
	if n := strings.Count(log.String(), "knowhow ended while it was reading this file"); n != 2 {
		t.Errorf("%d suspects are named in the log, want 2:\n%s", n, &log)
	}
	if text.most["a.txt"] != 1 || text.most["b.txt"] != 1 {
		t.Errorf("files being read beside each one: %v, want the suspects alone", text.most)
	}
	for _, path := range []string{"a.txt", "b.txt"} {
		if p := journal.past[ref(path)]; p != (Past{}) {
			t.Errorf("the past of %s is %+v, want it cleared", path, p)
		}
	}
}

// Suspects of one source wait until no file of another is being read.
func TestSuspectsAreAloneInThePool(t *testing.T) {
	root, other := folder(t, map[string]string{"a.txt": "a"}), folder(t, map[string]string{"slow.txt": "s"})
	synctest.Test(t, func(t *testing.T) {
		pool, journal, text := NewPool(2), newMemoryJournal(), &slowText{}
		journal.past[document.Ref{Label: "docs", Path: "a.txt"}] = Past{Deaths: 1}
		newIngester := func() *Ingester {
			g := New(Options{Sink: &memorySink{}, Pool: pool, Journal: journal})
			g.makeDocs = one(text.makeDoc)
			return g
		}
		var done sync.WaitGroup
		done.Go(func() {
			src := document.Source{Label: "other", Path: other}
			mustSync(t, newIngester(), src, Result{SkippedTotal: 1, LeftOut: left(TooSlow, 1)})
		})
		synctest.Wait()
		mustSync(t, newIngester(), docs(root), Result{Added: 1})
		if text.most["a.txt"] != 1 {
			t.Error("the suspect was read beside another file")
		}
		done.Wait()
	})
}

// A PDF file without text is counted among the files without text, and named,
// because people expect to find it.
func TestSyncNamesPDFWithoutText(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "scan.pdf": "%PDF-1.4"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	g.makeDocs = one(func(ctx context.Context, data []byte, known document.Document) (*document.Document, error) {
		if known.Path == "scan.pdf" {
			return nil, fmt.Errorf("it was scanned: %w", errkind.Unsupported)
		}
		return Make(ctx, data, known)
	})
	for range 2 {
		res, err := g.Sync(t.Context(), docs(root))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(left(NoText, 1), res.LeftOut); diff != "" || len(res.Skipped) != 1 ||
			res.Skipped[0].Path != "scan.pdf" {
			t.Errorf("skipped %v, want scan.pdf; left out (-want +got):\n%s", res.Skipped, diff)
		}
	}
}

// Office documents that are not read are named, because people expect to find
// them. The files by which Word locks a document are not.
func TestSyncNamesDocuments(t *testing.T) {
	root := folder(t, map[string]string{
		"a.txt": "a", "cut.docx": "PK\x03\x04", "old.doc": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "data.bin": "\x00\x01",
		"~$cut.docx": "\x05Ann\x00\x00\x00",
	})
	g := New(Options{Sink: &memorySink{}})
	for range 2 {
		res, err := g.Sync(t.Context(), docs(root))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range res.Skipped {
			got = append(got, s.Path+": "+s.Message())
		}
		want := []string{
			"cut.docx: damaged Word document: save or download it again",
			"old.doc: office document in an old format: save it in a current one",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("skipped (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[Reason]int{NoText: 3, Damaged: 1}, res.LeftOut); diff != "" {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
	}
}

// stuckSink is a memorySink that does not end preparing documents whose text
// contains "stuck" until its context ends, and counts them.
type stuckSink struct {
	*memorySink
	n atomic.Int32
}

func (s *stuckSink) Prepare(ctx context.Context, changes []document.Change) (func(context.Context) error, error) {
	for _, c := range changes {
		if c.Put != nil && strings.Contains(c.Put.Text, "stuck") {
			s.n.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return func(ctx context.Context) error { return s.Apply(ctx, changes) }, nil
}

// TestSlowIndexing checks that a file whose words take too long is left out with
// all of its documents, also those that are stored already, and that this does
// not delay others.
func TestSlowIndexing(t *testing.T) {
	large := strings.Repeat("a word ", 100)
	files := map[string]string{"a.txt": "a", "b.txt": large,
		"c.zip": zipOf(t, "1.txt", "one", "2.txt", "stuck "+large, "3.txt", "three"), "d.txt": "d", "e.txt": "e"}
	root := folder(t, map[string]string{"e.txt": "e"})
	synctest.Test(t, func(t *testing.T) {
		sink, journal := &stuckSink{memorySink: &memorySink{}}, newMemoryJournal()
		o := Options{Sink: sink, Journal: journal, BatchBytes: 100}
		g := New(o)
		mustSync(t, g, docs(root), Result{Added: 1})
		files["e.txt"] = "stuck " + large
		for name, text := range files {
			write(t, root, name, text, anHourAgo())
		}
		start := time.Now()
		res, err := g.Sync(t.Context(), docs(root))
		if err != nil || res.SkippedTotal != 2 || res.LeftOut[TooSlow] != 2 {
			t.Fatalf("Sync() = %+v, %v; want two files that are too slow", res, err)
		}
		for _, s := range res.Skipped {
			if want := "extracting or indexing its text takes longer than 10"; s.Path != "c.zip" && s.Path != "e.txt" ||
				!strings.HasPrefix(s.Err.Error(), want) {
				t.Errorf("Skipped %s: %v, want c.zip and e.txt, and %q", s.Path, s.Err, want)
			}
		}
		if diff := cmp.Diff([]string{"a.txt", "b.txt", "d.txt"}, sink.paths()); diff != "" {
			t.Errorf("documents (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the sync took %v", took)
		}
		for _, g := range []*Ingester{g, New(o)} { // this process and the next one
			mustSync(t, g, docs(root), Result{Unchanged: 3, SkippedTotal: 2, LeftOut: left(TooSlow, 2)})
		}
		if n := sink.n.Load(); n != 2 {
			t.Errorf("%d files were too slow, want 2 once", n)
		}
	})
}
