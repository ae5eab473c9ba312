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

	"github.com/knowhow-mcp/knowhow/internal/skill"
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
	key   string           // as in the lock: relative to the base, with slashes, or absolute
	path  string           // absolute, in the spelling of the user
	real  string           // path with its links resolved
	root  *os.Root         // nil if the folder does not exist
	nodes map[string]*node // what it contains, by name, as far as a sync is concerned
}

// show returns a path in the folder for messages.
func (f *folder) show(name string) string { return path.Join(f.key, name) }

// A node is a file, link or folder in a folder of skills or links. A nil *node
// is one that does not exist.
type node struct {
	dir    bool
	target string // of a symbolic link
	exact  bool   // the target is that of a link made by a sync
	ours   bool   // the link leads to the skill of its name, here or in the folder of the last sync

	// files are the contents of a folder by path: files, links, and with a
	// slash at the end folders that are empty or cannot be read. Only regular
	// files that may be generated ones have a content.
	files map[string][]byte
}

// content returns the content of a regular file of a folder, or nil.
func (n *node) content(p string) []byte {
	if n == nil {
		return nil
	}
	return n.files[p]
}

// takes reports whether files can be written to and removed from a folder: no
// folder has the name of a file, and no file or link that of a folder. So
// nothing is written through a link.
func (n *node) takes(paths []string) bool {
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if _, ok := n.files[d]; ok {
				return false
			}
		}
		for q := range n.files {
			if strings.HasPrefix(q, p+"/") {
				return false
			}
		}
	}
	return true
}

// isCopy reports whether a node in the folder of links with that key is a copy
// made by a sync: the lock says so, or its content is that of one of the
// entries, of the last sync and of this one, which may be nil.
func (n *node) isCopy(key string, prev, next *entry) bool {
	if n == nil || !n.dir {
		return false
	}
	md := n.content(skillFile)
	if prev.linked(key) && prev.Copied && (md == nil || skill.FrontmatterServer(md) == prev.Server) {
		return true
	}
	return md != nil && slices.ContainsFunc([]*entry{prev, next}, func(e *entry) bool {
		return e != nil && sum(md) == e.Files[skillFile] && skill.FrontmatterServer(md) == e.Server
	})
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, _ := os.Stat(f.path); err != nil && info != nil && !info.IsDir() {
		err = fs.ErrExist // OpenRoot's own error cannot be recognized
	}
	f.root = root
	return explain("opening", f.path, err)
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
		return explain("making", f.path, err)
	}
	if err := f.open(); err != nil {
		return err
	}
	if f.root == nil {
		return fmt.Errorf("opening %s: %w", f.path, fs.ErrNotExist)
	}
	return nil
}

// read reads the nodes of the folder: the links, some of which lead into the
// folders outs, and those with the names of known, whose values are the paths
// of the files that may be generated ones.
func (f *folder) read(outs []*folder, known map[string][]string) error {
	f.nodes = map[string]*node{}
	if f.root == nil {
		return nil
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return explain("reading", f.path, err)
	}
	for _, e := range entries {
		name := e.Name()
		paths, ok := known[name]
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			if f.nodes[name], err = f.readLink(outs, name); err != nil {
				return err
			}
		case ok && e.IsDir():
			f.nodes[name] = &node{dir: true, files: f.readFiles(name, paths)}
		case ok:
			f.nodes[name] = &node{}
		}
	}
	return nil
}

// readLink returns the node of a link. A sync makes links into the first of outs.
func (f *folder) readLink(outs []*folder, name string) (*node, error) {
	target, err := f.root.Readlink(name)
	if err != nil {
		return nil, explain("reading the link", filepath.Join(f.path, name), err)
	}
	n := &node{target: target, exact: filepath.Clean(target) == f.linkTo(outs[0], name)}
	if !filepath.IsAbs(target) {
		target = filepath.Join(f.real, target)
	}
	for _, out := range outs {
		for _, dir := range []string{out.path, out.real} {
			n.ours = n.ours || filepath.Clean(target) == filepath.Join(dir, name)
		}
	}
	return n, nil
}

// linkTo returns the target of the link in f to a skill in out. It is relative,
// except between volumes.
func (f *folder) linkTo(out *folder, name string) string {
	rel, err := filepath.Rel(f.real, out.real)
	if err != nil {
		rel = out.real
	}
	return filepath.Join(rel, name)
}

// readFiles returns the files of a folder in f, with the contents of paths.
func (f *folder) readFiles(name string, paths []string) map[string][]byte {
	files := map[string][]byte{}
	dir, err := fs.Sub(f.root.FS(), name)
	if err != nil {
		return files
	}
	_ = fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		delete(files, path.Dir(p)+"/") // not empty
		switch {
		case p == ".":
			return nil
		case d.IsDir():
			files[p+"/"] = nil
			return nil
		}
		files[p] = nil
		if !d.Type().IsRegular() || !slices.Contains(paths, p) {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Size() <= maxFile {
			// A file that cannot be read counts as one without a content.
			files[p], _ = fs.ReadFile(dir, p)
		}
		return nil
	})
	return files
}

// realPath resolves the links in an absolute path, as far as the path exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPath(dir), filepath.Base(path))
}

// tempName returns a name that is not in use.
func tempName() string { return fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()) }

// sum returns the SHA-256 of content in hex.
func sum(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}
