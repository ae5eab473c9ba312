package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// install makes temp the folder target. If target exists, it is replaced, and
// its files that are not part of the dataset are moved to the new folder; their
// names are returned. If temp cannot take the place of target, target is as
// before and temp is removed.
func install(temp, target string, exists bool) (kept []string, err error) {
	if !exists {
		if err := rename(temp, target); err != nil {
			return nil, fmt.Errorf("moving the dataset to its place: %w", errors.Join(err, os.RemoveAll(temp)))
		}
		return nil, nil
	}
	release, ok, err := lockFolder(target) // it becomes a temporary folder
	defer release()
	if !ok && err == nil {
		err = fmt.Errorf("another process is replacing the dataset in %s, try again: %w", target, errkind.Conflict)
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	own := ownFiles(target)
	old, err := swap(temp, target)
	if err != nil {
		return nil, fmt.Errorf("replacing the dataset: %w", errors.Join(err, os.RemoveAll(temp)))
	}
	if kept, err = moveOthers(old, target, own); err != nil {
		return kept, fmt.Errorf("the new dataset is in its place, but the old one could not be removed: %w", err)
	}
	return kept, nil
}

// moveOthers removes the files of a dataset, by name, from the folder old, and
// moves its other files to the folder target, except those that are there
// already. "" is no folder: the other files stay. It returns the names of the
// files that it moved.
func moveOthers(old, target string, own []string) (kept []string, err error) {
	for _, name := range own {
		if err := os.Remove(filepath.Join(old, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, name := range remaining(old) {
		to := filepath.Join(target, name)
		if _, err := os.Lstat(to); err == nil || target == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return kept, err
		}
		if err := os.Rename(filepath.Join(old, name), to); err != nil {
			return kept, err
		}
		kept = append(kept, name)
	}
	removeEmpty(old)
	return kept, nil
}

// swap makes temp the folder target, and returns where the folder is that was
// there before. Where two folders cannot be exchanged in one step, there is no
// target for a moment.
func swap(temp, target string) (old string, err error) {
	if exchange(temp, target) == nil {
		return temp, nil
	}
	old = temp + oldSuffix
	if err := rename(target, old); err != nil {
		return "", err
	}
	if err := rename(temp, target); err != nil {
		return "", errors.Join(err, rename(old, target))
	}
	return old, nil
}

// Delete deletes a dataset. Files in its folder that are not part of it are
// kept; their paths are returned. The error is an [*UnknownDataset] if there is
// no dataset with that id.
func Delete(dir, id string) (kept []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	removeLeftovers(dir)
	folder, err := findFolder(dir, id, true)
	if err != nil {
		return nil, err
	}
	// The manifest is the first of the own files: without it the rest is no
	// dataset.
	for _, name := range ownFiles(folder) {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("deleting dataset %s: %w", id, err)
		}
	}
	for _, name := range remaining(folder) {
		kept = append(kept, filepath.Join(folder, name))
	}
	removeEmpty(folder)
	return kept, nil
}

// ownFiles returns the names of the files that make up the dataset of a folder,
// and that are inside it. The manifest is the first.
func ownFiles(folder string) []string {
	own := []string{manifestName}
	m, _ := readManifest(filepath.Join(folder, manifestName))
	add := func(path string) {
		if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) && rel != "." &&
			!slices.Contains(own, rel) {
			own = append(own, rel)
		}
	}
	p, _ := locate(m, folder, folder)
	if p.metadata != "" && m.Metadata != "" {
		add(p.metadata)
	}
	if p.index != "" && m.Index != "" {
		add(p.index)
	}
	return own
}

// remaining returns the names of the files in a folder and below it.
func remaining(folder string) (names []string) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if rel, err := filepath.Rel(folder, path); err == nil {
				names = append(names, rel)
			}
		}
		return nil
	})
	return names
}

// removeEmpty removes a folder and the folders below it that are empty.
func removeEmpty(folder string) {
	var folders []string
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, path := range slices.Backward(folders) {
		_ = os.Remove(path) // fails if it is not empty
	}
}
