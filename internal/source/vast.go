package source

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Vast describes the folder at path if it contains many more files than one
// user's documents, otherwise it returns "". home is the user's home folder, or
// "" if it is not known.
func Vast(path, home string) string {
	if filepath.Dir(path) == path {
		return "a whole disk"
	}
	if home == "" {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(home); err == nil {
		home = resolved
	}
	switch {
	case path == filepath.Clean(home), sameFolder(path, home):
		return "your home folder"
	case Inside(home, path):
		return "a folder that contains your home folder"
	}
	return ""
}

// sameFolder reports whether two paths are of one folder, for example because the
// file system ignores case.
func sameFolder(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// CountFiles counts the files below a folder, except hidden ones. It stops at
// limit and when ctx ends; all reports whether it counted all files.
func CountFiles(ctx context.Context, dir string, limit int) (n int, all bool) {
	all = true
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case path == dir:
			return nil
		case err != nil, strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		case n == limit:
			all = false
			return fs.SkipAll
		}
		n++
		return nil
	})
	return n, all && err == nil
}
