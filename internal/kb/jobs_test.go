package kb_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/filelock"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
)

// TestMain runs the test program as an engine that is killed; see TestKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_KB_KILL"); dir != "" {
		if err := addForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// addForever adds notes and files to the base in dir, and prints the job of each
// with its text.
func addForever(dir string) error {
	ctx := context.Background()
	x, err := index.Open(ctx, index.Options{Dir: dir})
	if err != nil {
		return err
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	go b.Run(ctx)
	for i := range 100_000 {
		text := fmt.Sprintf("Text number %d of process %d.", i, os.Getpid())
		var job int64
		if i%2 == 0 {
			job, err = b.AddNote(ctx, kb.Note{Text: text})
		} else {
			job, err = b.AddFile(ctx, kb.File{Filename: fmt.Sprintf("%d-%d.txt", os.Getpid(), i)},
				strings.NewReader(text))
		}
		if err != nil {
			return err
		}
		fmt.Println(job, text)
	}
	return nil
}

// TestKill kills an engine that adds documents, three times or as often as
// KNOWHOW_TEST_KILLS says. Every job that it accepted must be done by the next
// one, exactly once.
func TestKill(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("KNOWHOW_TEST_KILLS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	accepted := map[int64]string{}
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEST_KB_KILL="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			id, text, _ := strings.Cut(lines.Text(), " ")
			var job int64
			if _, err := fmt.Sscan(id, &job); err != nil {
				t.Fatalf("line %q", lines.Text())
			}
			accepted[job] = text
			if n == 10+round*7%50 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
	}
	if len(accepted) < 10*rounds {
		t.Fatalf("only %d jobs were accepted", len(accepted))
	}
	b, _ := open(t, dir) // waits until the claims of the last process have ended
	documents := map[int64]bool{}
	for job, text := range accepted {
		d := kbtest.Stored(t, b, job)
		if got := d.Chunks[0].Text; got != text || documents[d.ID] {
			t.Errorf("job %d stored %q in document %d, want %q", job, got, d.ID, text)
		}
		documents[d.ID] = true
	}
	t.Logf("%d kills, %d accepted jobs, %d documents", rounds, len(accepted), len(documents))
	// A job may have been accepted without its line, never more than one each.
	list, err := b.Documents(t.Context(), kb.DocumentFilter{Limit: 1})
	if err != nil || list.Total < len(accepted) || list.Total > len(accepted)+rounds {
		t.Errorf("%d documents, want %d; %v", list.Total, len(accepted), err)
	}
	if left := staged(t, dir); len(left) > rounds { // files without a job
		t.Errorf("files left: %q", left)
	}
}

// staged returns the files that are not indexed yet.
func staged(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(kb.Incoming(dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// enqueueFile adds a job for a file in the staging folder of a base that does
// not run.
func enqueueFile(t *testing.T, x *index.Index, dir, name, text string) int64 {
	t.Helper()
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	job, err := b.AddFile(t.Context(), kb.File{Filename: name}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// TestCrashingFile checks that a file during which the program ended three times
// fails with that reason, and that the next job is done.
func TestCrashingFile(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	bad := enqueueFile(t, x, dir, "bad.pdf", "x")
	good := enqueueFile(t, x, dir, "good.txt", "fine")
	for i := range 3 { // processes that end without a word
		j, err := x.Queue().Claim(t.Context(), kb.TypeFile, fmt.Sprint("process ", i), time.Nanosecond, 1)
		if err != nil || len(j) != 1 || j[0].ID != bad {
			t.Fatalf("ClaimJobs() = %+v, %v", j, err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when the base has ended: a job is done before its file is removed
		if left := staged(t, dir); left != nil {
			t.Errorf("files left: %q", left)
		}
	})
	b, _ := open(t, dir)
	kbtest.Stored(t, b, good)
	j, err := b.Job(t.Context(), bad)
	if err != nil || j.Status != kb.Failed || !strings.Contains(j.Error, "ended 3 times") {
		t.Errorf("job = %+v, %v", j, err)
	}
}

// TestNotesTogether checks that of several notes that wait, those that can be
// stored are, and that the others have their own errors.
func TestNotesTogether(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	waiting := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	add := func(tag string) (jobs []int64) {
		t.Helper()
		for i := range 5 {
			n := kb.Note{Text: fmt.Sprintf("Note %d of %s.", i, tag)}
			if i == 2 {
				n.Tags = []string{tag}
			}
			job, err := waiting.AddNote(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, job)
		}
		return jobs
	}
	all := append(add("collection:mine"), add("collection:later")...)
	refused := all[7]
	if err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: document.IDOf("",
		pathOf(t, x, refused)),
		Label: "other", Path: "a.md", FromSource: true, Text: "x"}}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := open(t, dir)
	last := int64(0)
	for _, job := range all {
		if job == refused {
			if j := kbtest.Await(t, b, job); j.Status != kb.Failed || j.Error == "" {
				t.Errorf("job = %+v", j)
			}
			continue
		}
		d := kbtest.Stored(t, b, job)
		if d.ID <= last {
			t.Errorf("document %d follows %d: the notes are not stored in their order", d.ID, last)
		}
		last = d.ID
	}
}

// pathOf returns the path of the note of a job.
func pathOf(t *testing.T, x *index.Index, job int64) string {
	t.Helper()
	claimed, err := x.Queue().Claim(t.Context(), kb.TypeNote, "test", time.Minute, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	path := ""
	for _, j := range claimed {
		ids = append(ids, j.ID)
		var payload struct{ Key string }
		if err := json.Unmarshal(j.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		if j.ID == job {
			path = ".notes/" + payload.Key + ".md"
		}
	}
	if err := x.Queue().Release(t.Context(), "test", ids...); err != nil {
		t.Fatal(err)
	}
	return path
}

// A refusing is a store that makes the first change and refuses it nevertheless,
// as a cluster does whose first answer was lost.
type refusing struct {
	*index.Index
	refused atomic.Bool
}

func (s *refusing) Apply(ctx context.Context, changes []document.Change) error {
	err := s.Index.Apply(ctx, changes)
	if err == nil && s.refused.CompareAndSwap(false, true) {
		err = fmt.Errorf("another process has changed the document: %w", errkind.Conflict)
	}
	return err
}

// TestRefusedNote checks that a note is done if the store has it and reported a
// conflict.
func TestRefusedNote(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s := &refusing{Index: x}
	b := kb.NewLocal(kb.Options{Index: x, Store: s, Dir: dir})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	defer running.Wait()
	defer cancel()
	kbtest.Note(t, b, "Walruses like clams.")
	if r := kbtest.Find(t, b, kb.SearchQuery{Query: "clams"}); r.Total != 1 || !s.refused.Load() {
		t.Errorf("%d documents are found, want 1; refused: %v", r.Total, s.refused.Load())
	}
}

// TestLostBytes checks a job whose file is no longer there.
func TestLostBytes(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	job := enqueueFile(t, x, dir, "a.txt", "text")
	for _, name := range staged(t, dir) {
		if err := os.Remove(filepath.Join(kb.Incoming(dir), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := open(t, dir)
	j := kbtest.Await(t, b, job)
	if j.Status != kb.Failed || !strings.Contains(j.Error, "add the file again") {
		t.Errorf("job = %+v", j)
	}
}

// TestSweep checks which files of the staging folder are removed at the start: those
// of processes that have ended, which are not locked, and old ones.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(kb.Incoming(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Minute, "s-ended": 0,
		"s-live": time.Minute} {
		path := filepath.Join(kb.Incoming(dir), name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	live, err := os.Open(filepath.Join(kb.Incoming(dir), "s-live"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if filelock.Lock(live) != nil {
		t.Skip("this system has no locks of files")
	}
	open(t, dir)
	await(t, func() bool { return cmp.Equal([]string{"new", "s-live"}, staged(t, dir)) })
}

// await waits until a condition is true.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the condition is not true after a minute")
		}
	}
}

// TestSweepDuringUpload checks that a file that is being uploaded is kept while
// another base on the same data folder starts, and that it gets its job.
func TestSweepDuringUpload(t *testing.T) {
	dir := t.TempDir()
	b, _ := open(t, dir)
	begun, more := make(chan struct{}), make(chan struct{})
	first := true
	job := make(chan int64)
	go func() {
		id, err := b.AddFile(t.Context(), kb.File{Filename: "a.txt"}, readerFunc(func(p []byte) (int, error) {
			if first {
				first = false
				return copy(p, "walrus"), nil
			}
			close(begun)
			<-more
			return 0, io.EOF
		}))
		if err != nil {
			t.Error(err)
		}
		job <- id
	}()
	<-begun
	if err := os.WriteFile(filepath.Join(kb.Incoming(dir), "s-ended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	await(t, func() bool { return len(staged(t, dir)) == 1 })
	close(more)
	if d := kbtest.Stored(t, b, <-job); d.Chunks[0].Text != "walrus" {
		t.Errorf("document = %+v", d)
	}
}

// TestSweepsKeepNewFiles sweeps all the time while files are added: none is taken for
// one without a job.
func TestSweepsKeepNewFiles(t *testing.T) {
	b, _ := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			if err := b.Sweep(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	var jobs []int64
	for n := range 100 {
		job, err := b.AddFile(ctx, kb.File{Filename: fmt.Sprintf("%d.txt", n)}, strings.NewReader("walrus"))
		if err != nil {
			t.Error(err)
			break
		}
		jobs = append(jobs, job)
	}
	cancel()
	sweeping.Wait()
	for _, job := range jobs {
		kbtest.Stored(t, b, job)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestSlowIndexing checks that a file whose text takes too long to be indexed fails,
// and that the next one does not wait for it.
func TestSlowIndexing(t *testing.T) {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir})
	b.SetIndexTime(-time.Hour)
	job, err := b.AddFile(t.Context(), kb.File{Filename: "a.txt"}, strings.NewReader("walrus"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	if j := kbtest.Await(t, b, job); j.Status != kb.Failed ||
		!strings.Contains(j.Error, "took too long: split the file") {
		t.Errorf("job = %+v", j)
	}
	kbtest.Note(t, b, "The base runs.")
}

// TestSources checks documents of folders: those that are served can be read and
// tagged, others do not exist. What users wrote does, whatever its collection.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	b, x := open(t, dir, "docs")
	for label, n := range map[string]int{"docs": 1, "private": 2} {
		if err := x.AddSource(t.Context(), document.Source{Label: label, Path: "/" + label}); err != nil {
			t.Fatal(err)
		}
		err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{
			ID: fmt.Sprint("id", n), Label: label, Path: "a.md", SourcePath: "a.md", FromSource: true, Type: "markdown",
			Title: "About walruses", Text: "Walruses of " + label,
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	own := kbtest.File(t, b, kb.File{Filename: "a.md"}, "Walruses of mine.")
	list, err := b.Documents(t.Context(), kb.DocumentFilter{SourcePath: "a.md", Limit: 10})
	if err != nil || list.Total != 2 {
		t.Fatalf("Documents() = %+v, %v, want the served and the uploaded one", list, err)
	}
	served := list.Documents[1]
	if served.ID == own.ID || served.Tags[0] != "collection:docs" {
		t.Errorf("served document = %+v", served)
	}
	if r := kbtest.Find(t, b, kb.SearchQuery{Query: "walruses"}); r.Total != 2 {
		t.Errorf("%d documents are found, want 2", r.Total)
	}
	hidden, err := x.RecordOf(t.Context(), "id2")
	if err != nil {
		t.Fatal(err)
	}
	text := "new"
	refused := func(what string, err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s: error %v, want one of kind %v", what, err, kind)
		}
	}
	_, err = b.Document(t.Context(), hidden.Number, 0, kb.AllChunks)
	refused("hidden document", err, errkind.NotFound)
	_, err = b.AddTags(t.Context(), hidden.Number, []string{"x"})
	refused("tag of a hidden document", err, errkind.NotFound)
	refused("deleting a hidden document", b.Delete(t.Context(), hidden.Number), errkind.NotFound)
	note := kbtest.Note(t, b, "Walruses of a note.", "collection:private")
	if _, err := b.AddTags(t.Context(), own.ID, []string{"collection:private"}); err != nil {
		t.Errorf("AddTags() = %v", err)
	}
	for _, q := range []kb.SearchQuery{{Query: "walruses"}, {Query: "walruses", FTSOnly: true},
		{Query: "walruses NOT sheep"}, {Query: "about walruses of everything"}} {
		r := kbtest.Find(t, b, q)
		if r.Total != 3 || len(r.Results) != 3 || slices.ContainsFunc(r.Results,
			func(r kb.Result) bool { return r.DocumentID == hidden.Number }) {
			t.Errorf("Search(%+v) = %+v, want the served, the uploaded and the written document", q, r)
		}
	}
	if r := kbtest.Find(t, b, kb.SearchQuery{Query: "walruses", Tags: []string{"collection:private"}}); r.Total != 2 {
		t.Errorf("%d documents of the collection are found, want 2", r.Total)
	}
	for filter, want := range map[kb.DocumentFilter]int{{}: 3, {Tag: "collection:private"}: 2,
		{SourcePath: "a.md"}: 2} {
		filter.Limit = 10
		if list, err := b.Documents(t.Context(), filter); err != nil || list.Total != want ||
			len(list.Documents) != want {
			t.Errorf("Documents(%+v) = %+v, %v, want %d", filter, list, err, want)
		}
	}
	if d, err := b.Document(t.Context(), note.ID, 0, kb.AllChunks); err != nil || len(d.Chunks) != 1 {
		t.Errorf("Document() = %+v, %v, want the note", d, err)
	}
	changed := "Walruses of a changed note."
	if _, err := b.UpdateNote(t.Context(), note.ID, kb.NoteChange{Text: &changed}); err != nil {
		t.Errorf("UpdateNote() = %v", err)
	}
	if s, err := b.Status(t.Context()); err != nil || s.Documents.Total != 3 {
		t.Errorf("Status() = %+v, %v, want 3 documents", s, err)
	}
	if tags, err := b.RemoveTag(t.Context(), own.ID, "collection:private"); err != nil ||
		!cmp.Equal(tags, []string{"collection:documents"}) {
		t.Errorf("RemoveTag() = %q, %v", tags, err)
	}
	refused("deleting a file of a folder", b.Delete(t.Context(), served.ID), errkind.Conflict)
	_, err = b.AddTags(t.Context(), served.ID, []string{"collection:memory"})
	refused("moving a file of a folder", err, errkind.Conflict)
	_, err = b.UpdateNote(t.Context(), served.ID, kb.NoteChange{Text: &text})
	refused("changing a file of a folder", err, errkind.Conflict)
	if tags, err := b.AddTags(t.Context(), served.ID, []string{"read"}); err != nil ||
		!cmp.Equal(tags, []string{"collection:docs", "read"}) {
		t.Errorf("AddTags() = %q, %v", tags, err)
	}
	if tags := kbtest.Note(t, b, "In a served collection.", "collection:docs").Tags; !cmp.Equal(tags,
		[]string{"collection:docs"}) {
		t.Errorf("tags = %q", tags)
	}
}

// TestBackup checks that a backup contains what was stored, and can be used immediately.
func TestBackup(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	b, x := open(t, dir)
	note := kbtest.Note(t, b, "Walruses like clams.", "food")
	file := filepath.Join(other, index.FileName)
	if err := x.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if err := x.Backup(t.Context(), file); !errors.Is(err, errkind.Conflict) {
		t.Errorf("second backup to the same file: %v", err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode of the backup: %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(other)
	if err != nil || len(entries) != 1 {
		t.Errorf("files beside the backup: %v, %v", entries, err)
	}
	kbtest.Note(t, b, "Not in the backup: walruses.")
	restored, y := open(t, other)
	got, err := restored.Document(t.Context(), note.ID, 0, kb.AllChunks)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(note)
	have, _ := json.Marshal(got)
	if string(want) != string(have) {
		t.Errorf("restored document = %s, want %s", have, want)
	}
	if r := kbtest.Find(t, restored, kb.SearchQuery{Query: "walruses"}); r.Total != 1 {
		t.Errorf("search in the restored base: %+v", r)
	}
	if problems, err := y.Examine(t.Context()); err != nil || problems != nil {
		t.Errorf("Examine() = %v, %v", problems, err)
	}
}
