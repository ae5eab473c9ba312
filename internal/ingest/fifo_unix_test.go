//go:build unix

package ingest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

func TestSyncNeverOpensPipes(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a"})
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.txt"), 0o644); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	g := New(Options{Sink: &memorySink{}})
	ft := withFaults(g)
	mustSync(t, g, docs(root), Result{Added: 1, LeftOut: left(NoText, 1)})
	if ft.opened["pipe.txt"] != 0 {
		t.Error("the pipe was opened")
	}
	// Even if a file is exchanged for a pipe after the walk, nothing hangs.
	dt, closeTree, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer closeTree()
	s := &syncing{g: g, src: docs(root), base: root}
	r := s.read(t.Context(), dt, task{entry: entry{path: "pipe.txt", name: "pipe.txt", open: "pipe.txt"}})
	if r.err != errNoText {
		t.Errorf("reading a pipe = %v, want errNoText", r.err)
	}
}

func TestWalkDoesNotWaitForPipesPutInPlaceOfFolders(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "sub/b.txt": "b"})
	tree, closeTree, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer closeTree()
	before := func(name string) {
		sub := filepath.Join(root, name)
		if err := os.RemoveAll(sub); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(sub, 0o644); err != nil {
			t.Skipf("no pipes here: %v", err)
		}
	}
	w, err := walk(t.Context(), exchangingTree{tree, before}, document.Rules{}, nil)
	if err != nil || len(w.unread) > 0 || len(w.files) != 1 {
		t.Errorf("walk: %d files, unread %v, error %v, want only a.txt", len(w.files), w.unread, err)
	}
}
