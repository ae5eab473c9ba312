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

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// A countedTree is a tree in memory that counts how often a folder is opened.
// Its folders have subfolders by name and a number of files each.
type countedTree struct {
	top *countedFolder

	opened int // in all
	open   int // now
}

type countedFolder struct {
	subs  []string
	down  *countedFolder // what the first of subs is; the others are empty
	files int
}

func (t *countedTree) folder(f *countedFolder) openFolder {
	t.opened++
	t.open++
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

// A walk opens each folder once.
func TestWalkOpensFoldersOnce(t *testing.T) {
	for _, tt := range []struct {
		name           string
		tree           *countedTree
		folders, files int
	}{
		{"flat", nested(0, 10_000), 1, 10_000},
		{"ten levels", nested(10, 900, "a"), 11, 9_900},
		{"as many levels as possible", nested(maxFolderDepth, 1, "a"), maxFolderDepth + 1, maxFolderDepth + 1},
		{"two folders on each level", nested(maxFolderDepth, 1, "a", "b"), 2*maxFolderDepth + 1, maxFolderDepth + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := walk(t.Context(), tt.tree, document.Rules{}, nil)
			if err != nil || len(w.unread) > 0 || len(w.files) != tt.files {
				t.Fatalf("walk = %d files, unread %v, error %v, want %d files", len(w.files), w.unread, err, tt.files)
			}
			if n := tt.tree.opened; n != tt.folders {
				t.Errorf("opened %d folders, want %d", n, tt.folders)
			}
			if tt.tree.open != 0 {
				t.Errorf("%d folders are open after the walk", tt.tree.open)
			}
		})
	}
}

// Folders below too many others are named, not read.
func TestWalkNamesFoldersThatLieTooDeep(t *testing.T) {
	tree := nested(maxFolderDepth+3, 1, "a")
	w, err := walk(t.Context(), tree, document.Rules{}, nil)
	want := strings.Repeat("a/", maxFolderDepth+1)
	if err != nil || len(w.files) != maxFolderDepth+1 || len(w.unread) != 1 || w.unread[0].Path != want {
		t.Errorf("walk = %d files, unread %v, error %v, want %d files and one folder", len(w.files), w.unread, err,
			maxFolderDepth+1)
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
	res := mustSync(t, New(Options{Sink: &memorySink{}}), docs(root),
		Result{Added: 1, SkippedTotal: 1, LeftOut: map[Reason]int{Unreadable: 1, Hidden: 2}})
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
