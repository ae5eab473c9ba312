package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Limits of the search for manifests.
const (
	maxFolders = 10_000 // folders that are read
	maxNesting = 64     // of folders
)

// A finder finds the folders with a manifest below a folder. It reads a folder
// again only if that has changed, because it is used every two seconds. Hidden
// folders and links are not followed.
type finder struct {
	dir   string
	known map[string]folderState // by path relative to dir
}

// A folderState is what a folder contained when it was read.
type folderState struct {
	modTime  time.Time // of the folder
	read     time.Time
	manifest bool
	folders  []string // names, sorted
	links    []string // names of links
}

// settled is the age of a change from which on a file system that counts time in
// steps would show another one.
const settled = 3 * time.Second

// foundFolders is what a finder has found.
type foundFolders struct {
	manifests []string // paths of the folders with a manifest, relative to the folder, in the order of a walk
	links     []string // paths of links to folders with a manifest
	skipped   []error  // what was not read
}

// find returns the folders with a manifest. The error is that of reading the
// folder itself.
func (f *finder) find() (*foundFolders, error) {
	w := &walk{finder: f, next: map[string]folderState{}, found: &foundFolders{}, left: maxFolders}
	err := w.visit("", 0)
	f.known = w.next
	return w.found, err
}

// A walk is one call of find.
type walk struct {
	*finder
	next  map[string]folderState
	found *foundFolders
	left  int
}

// visit visits a folder and those below it.
func (w *walk) visit(rel string, depth int) error {
	s, err := w.state(rel)
	if err != nil {
		return err
	}
	w.next[rel] = s
	if s.manifest && rel != "" {
		w.found.manifests = append(w.found.manifests, rel)
	}
	for _, name := range s.links {
		if link := filepath.Join(rel, name); stampOf(filepath.Join(w.dir, link)+string(filepath.Separator)+manifestName) != (stamp{}) {
			w.found.links = append(w.found.links, link)
		}
	}
	for _, name := range s.folders {
		sub := filepath.Join(rel, name)
		switch w.left--; {
		case w.left < 0:
			if w.left == -1 {
				w.skip("there are more than %d folders, the others are not searched for datasets: move what is no dataset to another folder", maxFolders)
			}
			return nil
		case depth == maxNesting:
			w.skip("%s is below %d folders and is not searched for datasets: move it up", shown(sub), maxNesting)
		default:
			if err := w.visit(sub, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				w.skip("%s cannot be searched for datasets: %w", shown(sub), plainError(err))
			}
		}
	}
	return nil
}

func (w *walk) skip(format string, args ...any) {
	w.found.skipped = append(w.found.skipped, fmt.Errorf(format, args...))
}

// state returns the state of a folder, which it reads if it is not known.
func (w *walk) state(rel string) (folderState, error) {
	path := filepath.Join(w.dir, rel)
	stat := os.Lstat
	if rel == "" {
		stat = os.Stat // the user named it
	}
	info, err := stat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = fs.ErrNotExist // it has replaced a folder meanwhile
	}
	if err != nil {
		return folderState{}, err
	}
	if old, ok := w.known[rel]; ok && old.modTime.Equal(info.ModTime()) && old.read.Sub(old.modTime) > settled {
		return old, nil
	}
	s := folderState{modTime: info.ModTime(), read: time.Now()}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return folderState{}, err
	}
	for _, e := range entries {
		switch {
		case e.Name() == manifestName:
			s.manifest = true // also if it cannot be read
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			s.folders = append(s.folders, e.Name())
		case e.Type()&fs.ModeSymlink != 0:
			s.links = append(s.links, e.Name())
		}
	}
	return s, nil
}

// datasetFolders returns the paths of the folders with a manifest below dir. A
// folder that does not exist has none.
func datasetFolders(dir string) ([]string, error) {
	found, err := (&finder{dir: dir}).find()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the folder of the datasets: %w", err)
	}
	return found.manifests, nil
}
