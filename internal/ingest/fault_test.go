package ingest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// faultyTree is a folder on disk some of whose names cannot be read.
type faultyTree struct {
	tree
	mu     sync.Mutex
	bad    map[string]error
	opened map[string]int          // how often a file was opened
	wrap   func(file, string) file // nil: files as they are
}

// fail makes a name fail with err from now on, nil ends it.
func (t *faultyTree) fail(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bad[name] = err
}

func (t *faultyTree) fault(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bad[name]
}

func (t *faultyTree) Folder() (openFolder, error) {
	f, err := t.tree.Folder()
	if err != nil {
		return nil, err
	}
	return faultyFolder{f, t, "."}, nil
}

// A faultyFolder is a folder of a faultyTree.
type faultyFolder struct {
	openFolder
	tree *faultyTree
	name string
}

func (f faultyFolder) Folder(name string) (openFolder, error) {
	sub, err := f.openFolder.Folder(name)
	if err != nil {
		return nil, err
	}
	return faultyFolder{sub, f.tree, path.Join(f.name, name)}, nil
}

func (f faultyFolder) ReadDir() ([]fs.DirEntry, error) {
	if err := f.tree.fault(f.name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/root/" + f.name, Err: err}
	}
	entries, err := f.openFolder.ReadDir()
	for i, e := range entries {
		if err := f.tree.fault("state of " + e.Name()); err != nil {
			entries[i] = stateless{e, err}
		}
	}
	return entries, err
}

// stateless is an entry of a folder that cannot be looked at.
type stateless struct {
	fs.DirEntry
	err error
}

func (e stateless) Info() (fs.FileInfo, error) { return nil, e.err }

func (t *faultyTree) Open(name string) (file, error) {
	t.mu.Lock()
	t.opened[name]++
	t.mu.Unlock()
	if err := t.fault(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/root/" + name, Err: err}
	}
	f, err := t.tree.Open(name)
	if err == nil && t.wrap != nil {
		f = t.wrap(f, name)
	}
	return f, err
}

// withFaults makes g read through a faultyTree. It reads at most two files at a time.
func withFaults(g *Ingester) *faultyTree {
	g.o.Pool = NewPool(1)
	ft := &faultyTree{bad: map[string]error{}, opened: map[string]int{}}
	g.openTree = func(path string) (tree, func() error, error) {
		t, closeTree, err := openTree(path)
		ft.tree = t
		return ft, closeTree, err
	}
	return ft
}

func TestSyncGoesOnAfterUnreadable(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "sub/b.txt": "b", "sub/deep/c.txt": "c", "subway.txt": "s",
		"z.txt": "z"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	ft := withFaults(g)
	ft.fail("a.txt", fs.ErrPermission)
	res := mustSync(t, g, docs(root), Result{Added: 4, SkippedTotal: 1, LeftOut: left(Unreadable, 1)})
	if s := res.Skipped[0]; s.Path != "a.txt" || s.Err.Error() != "opening: permission denied" ||
		s.Message() != "permission denied: change its permissions" {
		t.Errorf("Skipped = %v, want a.txt with a reason that names no path", s)
	}

	// What cannot be read is not gone.
	ft.fail("sub", fs.ErrPermission)
	if err := os.Remove(filepath.Join(root, "z.txt")); err != nil {
		t.Fatal(err)
	}
	res = mustSync(t, g, docs(root), Result{Removed: 1, Unchanged: 1, SkippedTotal: 2, LeftOut: left(Unreadable, 2)})
	if diff := cmp.Diff([]string{"sub/b.txt", "sub/deep/c.txt", "subway.txt"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if got := res.Skipped[1].Path; got != "sub/" {
		t.Errorf("Skipped[1] = %q, want sub/", got)
	}

	// Nor is anything if the source itself cannot be read.
	ft.fail(".", fs.ErrPermission)
	if _, err := g.Sync(t.Context(), docs(root)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Sync of an unreadable folder = %v, want permission denied", err)
	}
	if n := len(sink.paths()); n != 3 {
		t.Errorf("%d documents, want the 3 kept", n)
	}
}

func TestSyncKeepsWhatItCannotLookAt(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	ft := withFaults(g)
	mustSync(t, g, docs(root), Result{Added: 2})
	ft.fail("state of a.txt", errors.New("input/output error"))
	mustSync(t, g, docs(root), Result{Unchanged: 1, SkippedTotal: 1, LeftOut: left(Unreadable, 1)})
	ft.fail("state of a.txt", fs.ErrNotExist) // removed since the folder was listed
	mustSync(t, g, docs(root), Result{Unchanged: 1, Removed: 1})
}

func TestSyncTriesAnUnreadableFileOncePerState(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "blob": "\x00\x01\x02"})
	var log strings.Builder
	g := New(Options{Sink: &memorySink{}, Log: textLog(&log)})
	ft := withFaults(g)
	ft.fail("a.txt", fs.ErrPermission)
	for range 3 {
		mustSync(t, g, docs(root), Result{SkippedTotal: 1, LeftOut: map[Reason]int{Unreadable: 1, NoText: 1}})
	}
	if ft.opened["a.txt"] != 1 || ft.opened["blob"] != 1 {
		t.Errorf("opened %v, want each file once", ft.opened)
	}
	if log.Len() > 0 {
		t.Errorf("the log repeats what the result of the first sync says:\n%s", log.String())
	}
	// A file that fails later is logged, because no caller prints later results.
	write(t, root, "b.txt", "b", anHourAgo())
	ft.fail("b.txt", fs.ErrPermission)
	for range 3 {
		mustSync(t, g, docs(root), Result{SkippedTotal: 2, LeftOut: map[Reason]int{Unreadable: 2, NoText: 1}})
	}
	if n := strings.Count(log.String(), "b.txt"); n != 1 || strings.Contains(log.String(), "a.txt") {
		t.Errorf("the log names the new file %d times, want once and no other:\n%s", n, log.String())
	}
	if err := os.Remove(filepath.Join(root, "b.txt")); err != nil {
		t.Fatal(err)
	}
	write(t, root, "a.txt", "A", time.Unix(1e9, 0))
	ft.fail("a.txt", nil)
	mustSync(t, g, docs(root), Result{Added: 1, LeftOut: left(NoText, 1)})
}

// growing is a file that is written while it is being read.
type growing struct {
	file
	path string
}

func (f growing) Read(b []byte) (int, error) {
	n, err := f.file.Read(b)
	if werr := os.WriteFile(f.path, []byte("longer than before"), 0o644); werr != nil {
		return 0, werr
	}
	return n, err
}

func TestSyncReadsAgainWhatChangedWhileRead(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "before"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	ft := withFaults(g)
	ft.wrap = func(f file, name string) file { return growing{f, filepath.Join(root, name)} }
	mustSync(t, g, docs(root), Result{Added: 1})
	if got := sink.doc("a.txt").Stamp; got != (document.Stamp{}) {
		t.Errorf("stamp = %v, want the zero one", got)
	}
	ft.wrap = nil
	mustSync(t, g, docs(root), Result{Changed: 1})
	if got := sink.doc("a.txt").Text; got != "longer than before" {
		t.Errorf("text = %q, want the new one", got)
	}
}

type panicking struct{ file }

func (panicking) Read([]byte) (int, error) { panic("a defect") }

func TestSyncWaitsForRoom(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "aa", "b.txt": "bb", "c.txt": "cc", "d.txt": "dd"})
	g := New(Options{Sink: &memorySink{}, Pool: newPool(3, 3)}) // one file at a time
	mustSync(t, g, docs(root), Result{Added: 4})
}

func TestSyncSurvivesPanic(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b"})
	g := New(Options{Sink: &memorySink{}})
	withFaults(g).wrap = func(f file, name string) file {
		if name == "a.txt" {
			return panicking{f}
		}
		return f
	}
	mustSync(t, g, docs(root), Result{Added: 1, SkippedTotal: 1, LeftOut: left(Unreadable, 1)})
}

func TestSyncReadsFreshFilesAgainOnceTheyRest(t *testing.T) {
	root := folder(t, nil)
	synctest.Test(t, func(t *testing.T) {
		sink := &memorySink{}
		g := New(Options{Sink: sink})
		ft := withFaults(g)
		mtime := time.Now()
		write(t, root, "a.txt", "one", mtime)
		mustSync(t, g, docs(root), Result{Added: 1})
		mustSync(t, g, docs(root), Result{Unchanged: 1})
		if n := ft.opened["a.txt"]; n != 1 {
			t.Errorf("opened %d times, want 1 as long as it is fresh", n)
		}
		// A change that shows is read at once.
		write(t, root, "a.txt", "other", mtime)
		mustSync(t, g, docs(root), Result{Changed: 1})
		// One that does not show is found when the file rests.
		write(t, root, "a.txt", "third", mtime)
		time.Sleep(settleTime)
		mustSync(t, g, docs(root), Result{Changed: 1})
		if got := sink.doc("a.txt"); got.Text != "third" || !got.Stamp.ModTime.Equal(mtime) {
			t.Errorf("text %q, stamp %v, want third and %v", got.Text, got.Stamp, mtime)
		}
		mustSync(t, g, docs(root), Result{Unchanged: 1})
		if n := ft.opened["a.txt"]; n != 3 {
			t.Errorf("opened %d times, want 3", n)
		}
	})
}

func TestSyncDoesNotReadFilesFromTheFutureForever(t *testing.T) {
	root := folder(t, nil)
	write(t, root, "a.txt", "a", time.Now().Add(24*time.Hour))
	g := New(Options{Sink: &memorySink{}})
	mustSync(t, g, docs(root), Result{Added: 1})
	ft := withFaults(g)
	mustSync(t, g, docs(root), Result{Unchanged: 1})
	if len(ft.opened) != 0 {
		t.Errorf("opened %v, want nothing", ft.opened)
	}
}
