package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/ignore"
)

// Names of ignore files, and of the folder (or file) at the top of a
// repository.
const (
	gitIgnore   = ".gitignore"
	plainIgnore = ".ignore"
	gitFolder   = ".git"
	gitExclude  = ".git/info/exclude"
)

const (
	maxIgnoreFile = 256 << 10 // bytes of an ignore file
	maxAbove      = 100       // folders above a source that are examined
)

// An ignores is the patterns of the ignore files of one folder, linked to those
// of the folders above it.
//
// The order of precedence is that of ripgrep: .ignore files before .gitignore
// files, the files of a folder before those of the folders above it, and
// .git/info/exclude last. The .gitignore files outside of a repository have no
// effect inside of it.
type ignores struct {
	above    *ignores // nil at the end
	dir      string   // name of the folder inside the source, with a slash at the end, or ""
	prefix   string   // name of the source inside the folder, with a slash at the end, if the folder is above it
	top      bool     // the folder is the top of a repository
	git      ignore.Patterns
	plain    ignore.Patterns
	excluded ignore.Patterns // of .git/info/exclude
}

// match reports whether the ignore files exclude a file or folder of the
// source.
func (g *ignores) match(name string, dir bool) bool {
	for i := g; i != nil; i = i.above {
		if v := i.plain.Match(i.prefix+name[len(i.dir):], dir); v != ignore.None {
			return v == ignore.Ignored
		}
	}
	for i := g; i != nil; i = i.above {
		if v := i.git.Match(i.prefix+name[len(i.dir):], dir); v != ignore.None {
			return v == ignore.Ignored
		}
		if i.top {
			return i.excluded.Match(i.prefix+name[len(i.dir):], dir) == ignore.Ignored
		}
	}
	return false
}

// ignores reads the ignore files of a folder with these entries and returns
// them with those above.
func (w *walker) ignores(dir string, entries []fs.DirEntry, above *ignores) *ignores {
	g := &ignores{above: above, dir: dir}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == gitFolder:
			g.top = true
			if e.IsDir() {
				g.excluded = w.patterns(dir + gitExclude)
			}
		case !e.Type().IsRegular(): // git does not follow links either
		case name == gitIgnore:
			g.git = w.patterns(dir + name)
		case name == plainIgnore:
			g.plain = w.patterns(dir + name)
		}
	}
	if !g.top && g.git.Empty() && g.plain.Empty() {
		return above
	}
	return g
}

// patterns reads an ignore file of the tree. It records a file that cannot be
// read.
func (w *walker) patterns(name string) ignore.Patterns {
	f, err := w.tree.Open(name)
	if err == nil {
		defer f.Close()
		var p ignore.Patterns
		if p, err = readPatterns(f); err == nil {
			return p
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		w.note(name, err)
	}
	return ignore.Patterns{}
}

// readPatterns reads an ignore file.
func readPatterns(f file) (ignore.Patterns, error) {
	info, err := f.Stat()
	if err != nil {
		return ignore.Patterns{}, err
	}
	if !info.Mode().IsRegular() {
		return ignore.Patterns{}, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if err == nil && len(data) > maxIgnoreFile {
		err = fmt.Errorf("it is larger than %s and has no effect: make it smaller", sizeText(maxIgnoreFile))
	}
	if err != nil {
		return ignore.Patterns{}, err
	}
	return ignore.Parse(string(data)), nil
}

// ignoresAbove returns the ignore files of the folders above a source that is
// inside a repository, up to its top. Without a repository, there are none.
// Files that cannot be read have no effect: they are not part of the source.
func ignoresAbove(source string) *ignores {
	if exists(filepath.Join(source, gitFolder)) {
		return nil
	}
	var list []*ignores // from the source upwards
	prefix := ""
	for dir := source; len(list) < maxAbove; {
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		prefix = filepath.Base(dir) + "/" + prefix
		dir = up
		g := &ignores{prefix: prefix, git: patternsOf(dir, gitIgnore), plain: patternsOf(dir, plainIgnore)}
		list = append(list, g)
		if !exists(filepath.Join(dir, gitFolder)) {
			continue
		}
		g.top, g.excluded = true, patternsOf(dir, filepath.FromSlash(gitExclude))
		for i := range len(list) - 1 {
			list[i].above = list[i+1]
		}
		return list[0]
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// patternsOf reads an ignore file above a source.
func patternsOf(dir, name string) ignore.Patterns {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return ignore.Patterns{}
	}
	defer f.Close()
	p, err := readPatterns(f)
	if err != nil {
		return ignore.Patterns{}
	}
	return p
}
