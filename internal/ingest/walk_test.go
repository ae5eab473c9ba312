package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
)

// A countedTree is a tree in memory that counts how often a folder is opened.
// Its folders have subfolders by name and a number of files each.
type countedTree struct {
	top *countedFolder

	opened    int // in all
	open, max int // now, and the most at once
}

type countedFolder struct {
	subs  []string
	down  *countedFolder // what the first of subs is; the others are empty
	files int
}

func (t *countedTree) folder(f *countedFolder) openFolder {
	t.opened++
	t.open++
	t.max = max(t.max, t.open)
	return &countedOpen{t, f}
}

func (t *countedTree) Folder() (openFolder, error)                { return t.folder(t.top), nil }
func (t *countedTree) Open(string) (file, error)                  { return nil, fs.ErrInvalid }
func (t *countedTree) Target(string) (string, fs.FileInfo, error) { return "", nil, fs.ErrInvalid }

type countedOpen struct {
	tree *countedTree
	*countedFolder
}

func (f *countedOpen) Folder(name string) (openFolder, error) {
	if f.down != nil && name == f.subs[0] {
		return f.tree.folder(f.down), nil
	}
	return f.tree.folder(&countedFolder{}), nil
}

func (f *countedOpen) ReadDir() ([]fs.DirEntry, error) {
	all := fstest.MapFS{".": {Mode: fs.ModeDir}}
	for _, s := range f.subs {
		all[s] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	for i := range f.files {
		all[fmt.Sprintf("f%05d.txt", i)] = &fstest.MapFile{}
	}
	return all.ReadDir(".")
}

func (f *countedOpen) Close() error { f.tree.open--; return nil }

// nested returns a tree of folders one inside the other.
func nested(depth, files int, subs ...string) *countedTree {
	f := &countedFolder{files: files}
	for range depth {
		f = &countedFolder{files: files, subs: subs, down: f}
	}
	return &countedTree{top: f}
}

// A walk opens each folder about once, however deep it is, and keeps few of
// them open.
func TestWalkOpensFoldersOnce(t *testing.T) {
	for _, tt := range []struct {
		name           string
		tree           *countedTree
		folders, files int
		opened         int // at most
	}{
		{"flat", nested(0, 10_000), 1, 10_000, 1},
		{"ten levels", nested(10, 900, "a"), 11, 9_900, 11},
		{"3,000 levels", nested(3_000, 1, "a"), 3_001, 3_001, 3_001},
		// The walk comes back to every folder for the second one in it.
		{"3,000 levels with two folders each", nested(3_000, 1, "a", "b"), 6_001, 3_001, 2 * 6_001},
		{"5,000 levels with two folders each", nested(5_000, 0, "a", "b"), 10_001, 0, 4 * 10_001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := walk(t.Context(), tt.tree, document.Rules{}, nil)
			if err != nil || len(w.unread) > 0 || len(w.files) != tt.files {
				t.Fatalf("walk = %d files, unread %v, error %v, want %d files", len(w.files), w.unread, err, tt.files)
			}
			if n := tt.tree.opened; n < tt.folders || n > tt.opened {
				t.Errorf("opened %d folders, want %d, and no more than %d with those opened again", n, tt.folders, tt.opened)
			}
			if n := tt.tree.max; n > 2*openFolders+2 {
				t.Errorf("%d folders were open at once, want at most %d", n, 2*openFolders+2)
			}
			if tt.tree.open != 0 {
				t.Errorf("%d folders are open after the walk", tt.tree.open)
			}
		})
	}
}

// paths returns the paths of the files that a walk found, sorted.
func paths(w *walker) []string {
	var paths []string
	for _, e := range w.files {
		paths = append(paths, e.path)
	}
	slices.Sort(paths)
	return paths
}

// Folders on disk that the walk closed are opened again where it left off.
func TestWalkComesBackToClosedFolders(t *testing.T) {
	const depth = 3 * openFolders
	files := map[string]string{}
	var want []string
	for i := range depth {
		dir := strings.Repeat("a/", i)
		files[dir+"b/x.txt"] = "x"
		want = append(want, dir+"b/x.txt")
	}
	root := folder(t, files)
	tree, closeTree, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer closeTree()
	w, err := walk(t.Context(), tree, document.Rules{}, nil)
	if err != nil || len(w.unread) > 0 {
		t.Fatalf("walk: unread %v, error %v", w.unread, err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, paths(w)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// exchangingTree does something right before a folder is opened.
type exchangingTree struct {
	tree
	before func(name string)
}

func (t exchangingTree) Folder() (openFolder, error) {
	f, err := t.tree.Folder()
	return exchangingFolder{f, t.before}, err
}

type exchangingFolder struct {
	openFolder
	before func(name string)
}

func (f exchangingFolder) Folder(name string) (openFolder, error) {
	f.before(name)
	return f.openFolder.Folder(name)
}

func TestWalkDoesNotFollowLinksPutInPlaceOfFolders(t *testing.T) {
	outside := folder(t, map[string]string{"secret.txt": "s"})
	for _, tt := range []struct {
		name, target string // of the link
	}{
		{"to another folder of the source", "other"},
		{"out of the source", outside},
		{"to the folder itself", "moved"},
		{"to nothing", "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := folder(t, map[string]string{"other/a.txt": "a", "sub/b.txt": "b"})
			tree, closeTree, err := openTree(root)
			if err != nil {
				t.Fatal(err)
			}
			defer closeTree()
			before := func(name string) {
				if name != "sub" {
					return
				}
				if err := os.Rename(filepath.Join(root, "sub"), filepath.Join(root, "moved")); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(tt.target, filepath.Join(root, "sub")); err != nil {
					t.Skipf("no symbolic links here: %v", err)
				}
			}
			w, err := walk(t.Context(), exchangingTree{tree, before}, document.Rules{}, nil)
			if err != nil || len(w.unread) > 0 {
				t.Fatalf("walk: unread %v, error %v", w.unread, err)
			}
			if diff := cmp.Diff([]string{"other/a.txt"}, paths(w)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWalkNamesLinksThatLieTooDeep(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are too short")
	}
	deep, deeper := strings.Repeat("a/", maxLinkDepth), strings.Repeat("a/", maxLinkDepth+1)
	root := folder(t, map[string]string{deeper + ".hidden.txt": "h", deep + ".hidden.txt": "h"})
	for _, dir := range []string{deep, deeper} {
		if err := os.Symlink(".hidden.txt", filepath.Join(root, dir, "link.txt")); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	res := mustSync(t, New(Options{Sink: &memorySink{}}), docs(root), Result{Added: 1, SkippedTotal: 1, LeftOut: map[Reason]int{Unreadable: 1, Hidden: 2}})
	if got := res.Skipped[0].Path; got != deeper+"link.txt" {
		t.Errorf("skipped %q, want the link that lies deeper", got)
	}
}

func TestWalkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tree := nested(100, 0, "a", "b")
	cancel()
	if _, err := walk(ctx, tree, document.Rules{}, nil); !errors.Is(err, context.Canceled) || tree.open != 0 {
		t.Errorf("walk = %v with %d open folders, want context.Canceled and none", err, tree.open)
	}
}
