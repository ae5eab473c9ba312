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

// tempPrefix returns how the names of temporary folders for a dataset begin.
// Hidden folders are not datasets.
func tempPrefix(id string) string { return "." + id + tempInfix }

const (
	tempInfix = ".new-"
	oldSuffix = ".old" // of a temporary folder with the dataset that is being replaced
)

// makeTemp creates a temporary folder for a dataset and locks it until release is
// called.
func makeTemp(dir, id string) (path string, release func(), err error) {
	for range 10 {
		path, err = os.MkdirTemp(dir, tempPrefix(id)+"*")
		if err != nil {
			return "", nil, fmt.Errorf("creating a temporary folder: %w", err)
		}
		release, ok, err := lockFolder(path)
		if _, gone := os.Lstat(path); gone == nil && (ok || err != nil) {
			return path, release, nil
		}
		release() // another process took it for a leftover before it was locked
	}
	return "", nil, fmt.Errorf("creating a temporary folder in %s: other processes remove it at once", dir)
}

// unlockedAge is the age of a temporary folder from which on it is a leftover if
// the file system has no locks.
const unlockedAge = 24 * time.Hour

// removeLeftovers removes the temporary folders in dir of processes that were
// killed, and completes what they had begun: a dataset that was moved away is
// moved back if no new one took its place, and files that are not part of a
// dataset are moved to the one in its place. Errors are ignored: the next call
// tries again.
func removeLeftovers(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		hidden, _ := strings.CutPrefix(e.Name(), ".")
		id, _, ok := strings.Cut(hidden, tempInfix)
		if !ok || !e.IsDir() || e.Name() == hidden || CheckID(id) != nil {
			continue
		}
		path := filepath.Join(dir, e.Name())
		release, locked, err := lockFolder(path)
		if info, infoErr := e.Info(); locked || err != nil && infoErr == nil &&
			time.Since(info.ModTime()) > unlockedAge {
			removeLeftover(dir, id, path)
		}
		release()
	}
}

// removeLeftover removes a temporary folder of the dataset with an id.
func removeLeftover(dir, id, path string) {
	target, err := findFolder(dir, id, false)
	if err != nil && strings.HasSuffix(path, oldSuffix) {
		target = filepath.Join(dir, id)
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			_ = rename(path, target)
			return
		}
	}
	own := append(ownFiles(path), metadataName, filepath.Join(indexFolder, indexName))
	_, _ = moveOthers(path, target, own)
}
