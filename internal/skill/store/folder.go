package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	skillFile  = "SKILL.md"
	maxFile    = 16 << 20         // bytes of one file of a skill
	tempPrefix = ".mcp-sync.tmp-" // prefix of all temporary files of a sync
)

// A folder contains skills, links or the lock. All access uses an [os.Root], so
// that a link inside cannot lead out of it. A folder of links may itself be a
// link.
type folder struct {
	key  string   // as in the lock: relative to the base, with slashes, or absolute
	path string   // absolute, in the spelling of the user
	real string   // path with its links resolved
	root *os.Root // nil if the folder does not exist
}

// newFolder returns a folder that is not open.
func newFolder(base, name string) *folder {
	p := filepath.Clean(name)
	if !filepath.IsAbs(p) {
		p = filepath.Join(base, p)
	}
	key := p
	if rel, err := filepath.Rel(base, p); err == nil && (filepath.IsLocal(rel) || !filepath.IsAbs(name)) {
		key = rel
	}
	return &folder{key: filepath.ToSlash(key), path: p, real: realPath(p)}
}

// open opens the folder if it exists.
func (f *folder) open() error {
	root, err := os.OpenRoot(f.path)
	switch {
	case err == nil:
		f.root = root
		return nil
	case errors.Is(err, fs.ErrNotExist) && inTheWay(f.path) == "":
		return nil
	}
	return explainFolder("opening", f.path, err)
}

// close closes the folder if it is open.
func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close() // it was only used as a handle
		f.root = nil
	}
}

// make makes and opens the folder if it does not exist.
func (f *folder) make() error {
	if f.root != nil {
		return nil
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return explainFolder("making", f.path, err)
	}
	if err := f.open(); err != nil {
		return err
	}
	if f.root == nil {
		return fmt.Errorf("opening %s: %w", f.path, fs.ErrNotExist)
	}
	f.real = realPath(f.path)
	return nil
}

// show returns a path in the folder for messages.
func (f *folder) show(name string) string { return path.Join(f.key, name) }

// lstat returns nil if there is no such file.
func (f *folder) lstat(name string) (fs.FileInfo, error) {
	if f.root == nil {
		return nil, nil
	}
	info, err := f.root.Lstat(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("looking at", filepath.Join(f.path, name), err)
	}
	return info, nil
}

// read returns the content of a regular file, or nil if there is none, it
// cannot be read, or it is larger than a generated file.
func (f *folder) read(name string) []byte {
	info, err := f.lstat(name)
	if err != nil || info == nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	data, err := f.root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return nil
	}
	return data
}

// names returns the names in the subfolder in of f, sorted.
func (f *folder) names(dir string) ([]fs.DirEntry, error) {
	if f.root == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		return nil, explain("reading", filepath.Join(f.path, dir), err)
	}
	return entries, nil
}

// plain reports whether a skill's folder and its subfolders with files are real
// folders or missing, and no folder has the name of a file. Then nothing is
// written through a link.
func (f *folder) plain(name string, paths []string) bool {
	dirs := map[string]bool{}
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			dirs[path.Join(name, d)] = true
		}
	}
	dirs[name] = true
	for d := range dirs {
		if info, err := f.lstat(d); err != nil || info != nil && !info.IsDir() {
			return false
		}
	}
	return !slices.ContainsFunc(paths, func(p string) bool {
		info, err := f.lstat(path.Join(name, p))
		return err != nil || info != nil && info.IsDir()
	})
}

// removeFiles removes the files of a skill that ours accepts, and then the
// folders that have become empty. It reports whether the skill's folder is
// gone.
func (f *folder) removeFiles(name string, paths []string, ours func(path string, content []byte) bool) (bool, error) {
	if !f.plain(name, paths) {
		return false, nil
	}
	for _, p := range paths {
		full := path.Join(name, p)
		content := f.read(full)
		if content == nil || !ours(p, content) {
			continue
		}
		if err := f.root.Remove(filepath.FromSlash(full)); err != nil {
			return false, explain("removing", filepath.Join(f.path, filepath.FromSlash(full)), err)
		}
		for d := path.Dir(full); d != name && d != "."; d = path.Dir(d) {
			if err := f.removeEmpty(d); err != nil {
				return false, err
			}
		}
	}
	if err := f.removeEmpty(name); err != nil {
		return false, err
	}
	info, err := f.lstat(name)
	return info == nil, err
}

// removeEmpty removes a folder if it is empty.
func (f *folder) removeEmpty(dir string) error {
	info, err := f.lstat(dir)
	if err != nil || info == nil || !info.IsDir() {
		return err
	}
	entries, err := f.names(dir)
	if err != nil || len(entries) > 0 {
		return err
	}
	if err := f.root.Remove(filepath.FromSlash(dir)); err != nil {
		return explain("removing", filepath.Join(f.path, dir), err)
	}
	return nil
}

// sweep removes the remains of a sync that was killed. It may only be called by
// the owner of the exclusive lock.
func (f *folder) sweep(dir string) error {
	entries, err := f.names(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		name := filepath.Join(filepath.FromSlash(dir), e.Name())
		if err := f.root.RemoveAll(name); err != nil {
			return explain("removing", filepath.Join(f.path, name), err)
		}
	}
	return nil
}

// tempName returns a name that is not in use.
func tempName() string { return fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()) }

// sum returns the SHA-256 of content in hex.
func sum(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}
