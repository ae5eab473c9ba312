package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of the search for manifests.
const (
	maxFolders = 10_000 // folders that are read
	maxNesting = 64     // of folders
)

// foundFolders is the result of [findFolders].
type foundFolders struct {
	manifests []string // paths of the folders with a manifest, relative to the folder, in the order of a walk
	links     []string // paths of links to folders with a manifest
	skipped   []error  // what was not read
}

func (f *foundFolders) skip(format string, args ...any) {
	f.skipped = append(f.skipped, fmt.Errorf(format, args...))
}

// findFolders returns the folders with a manifest below dir. Hidden folders and
// links are not followed. The error is that of reading dir itself.
func findFolders(dir string) (*foundFolders, error) {
	found, folders := &foundFolders{}, 0
	root, err := filepath.EvalSymlinks(dir) // the user named it
	if err != nil {
		return found, err
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, p)
		switch {
		case p == root && err == nil && !d.IsDir():
			return &fs.PathError{Op: "open", Path: p, Err: errors.New("it is not a folder")}
		case p == root:
			return err
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			found.skip("%s cannot be searched for datasets: %w", shown(name), plainError(err))
		case d.Name() == manifestName: // also if it cannot be read
			if in := filepath.Dir(name); in != "." {
				found.manifests = append(found.manifests, in)
			}
			return skipFolder(d)
		case strings.HasPrefix(d.Name(), "."):
			return skipFolder(d)
		case d.Type()&fs.ModeSymlink != 0:
			if stampOf(p+string(filepath.Separator)+manifestName) != (stamp{}) {
				found.links = append(found.links, name)
			}
		case d.IsDir() && len(elements(name)) > maxNesting:
			found.skip("%s is below %d folders and is not searched for datasets: move it up", shown(name), maxNesting)
			return fs.SkipDir
		case d.IsDir():
			if folders++; folders > maxFolders {
				found.skip("there are more than %d folders, the others are not searched for datasets: "+
					"move what is no dataset to another folder", maxFolders)
				return fs.SkipAll
			}
		}
		return nil
	})
	// A folder comes before those in it, unlike its manifest.
	slices.SortFunc(found.manifests, func(a, b string) int { return slices.Compare(elements(a), elements(b)) })
	return found, err
}

// elements returns the names in a relative path.
func elements(path string) []string { return strings.Split(path, string(filepath.Separator)) }

// skipFolder makes a walk leave out a folder.
func skipFolder(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// findFolder returns the path of the folder of a dataset below dir: the first one
// with a manifest that is valid and has the id, as for searches, or else the
// first one whose manifest has the id, or else, with bad, one whose manifest has
// no valid id and whose path or listed id is the given one. The error is an
// [*UnknownDataset] if there is none. A folder that does not exist has none.
func findFolder(dir, id string, bad bool) (string, error) {
	found, err := findFolders(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the folder of the datasets: %w", err)
	}
	var ids []string
	var invalid, nameless string
	for _, folder := range found.manifests {
		m, f := readManifest(filepath.Join(dir, folder, manifestName))
		e := entry{folder: folder, manifest: m}
		path := filepath.Join(dir, folder)
		switch {
		case m.ID == id && !f.failed():
			return path, nil
		case m.ID == id:
			invalid = cmp.Or(invalid, path)
		case bad && m.ID == "" && (e.id() == id || folder == id):
			nameless = cmp.Or(nameless, path)
		}
		ids = append(ids, e.id())
	}
	if path := cmp.Or(invalid, nameless); path != "" {
		return path, nil
	}
	return "", unknown(id, ids)
}
