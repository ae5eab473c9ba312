package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/skill"
)

// A disk is the folders of a sync and the lock file.
type disk struct {
	o        Options
	base     *folder
	out      *folder   // of the skills
	links    []*folder // of the links
	lock     *lock     // nil if there is none that can be read
	warnings []string
}

// locate determines the paths of the folders that the options name. It opens
// nothing.
func locate(o Options) (*disk, error) {
	base, err := filepath.Abs(o.Base)
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	if o.OutputDir == "" {
		o.OutputDir = "mcp-skills"
	}
	if !validPath(o.OutputDir) {
		return nil, &errkind.Argument{Name: "OutputDir", Value: o.OutputDir, Want: "the path of a folder"}
	}
	d := &disk{o: o, base: newFolder(base, base), out: newFolder(base, o.OutputDir)}
	for _, name := range o.LinkDirs {
		if !validPath(name) {
			return nil, &errkind.Argument{Name: "LinkDirs", Value: name, Want: "the path of a folder"}
		}
		if !d.addLinks(newFolder(base, name)) {
			return nil, &errkind.Argument{Name: "LinkDirs", Value: name,
				Want: "another folder than that of the skills themselves"}
		}
	}
	return d, nil
}

// addLinks adds a folder of links, unless it is already in the list. It returns
// false for the folder of the skills themselves.
func (d *disk) addLinks(f *folder) bool {
	if f.real == d.out.real {
		return false
	}
	if !slices.ContainsFunc(d.links, func(l *folder) bool { return l.real == f.real }) {
		d.links = append(d.links, f)
	}
	return true
}

// open opens the folders that exist and reads the lock.
func (d *disk) open() error {
	if err := d.base.open(); err != nil {
		return err
	}
	if d.base.root == nil {
		return fmt.Errorf("the folder %s does not exist: make it or start in another one: %w", d.base.path,
			errkind.NotFound)
	}
	if link, target := d.linkAbove(d.out); link != "" {
		return fmt.Errorf("the folder %s, which is written to, is a symbolic link to %s: remove it, or choose the "+
			"folder that it leads to: %w",
			link, shown(target), errkind.Conflict)
	}
	if err := d.out.open(); err != nil {
		return err
	}
	if err := d.readLock(); err != nil {
		return err
	}
	if d.o.LinkDirs == nil {
		d.rememberLinks()
	}
	for _, f := range d.links {
		if err := f.open(); err != nil {
			return err
		}
	}
	return nil
}

// linkAbove returns the first element of f's path below the base that is a
// symbolic link, and its target; "" if there is none. Outside of the base only
// the last element is examined, because the folders above it belong to the
// user.
func (d *disk) linkAbove(f *folder) (link, target string) {
	for p := f.path; p != d.base.path && p != d.base.real; p = filepath.Dir(p) {
		if p == filepath.Dir(p) { // f is outside of the base
			if to, err := os.Readlink(f.path); err == nil {
				return f.path, to
			}
			return "", ""
		}
		if to, err := os.Readlink(p); err == nil {
			link, target = p, to
		}
	}
	return link, target
}

// shown returns foreign text for messages.
func shown(target string) string { return sanitize.Escape(sanitize.Cut(target, 200, 800)) }

// readLock reads the lock file. A file that is not a lock of this version is
// ignored.
func (d *disk) readLock() error {
	name := filepath.Join(d.base.path, lockName)
	info, err := d.base.root.Stat(lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return explain("reading", name, err)
	case info.IsDir():
		return fmt.Errorf("reading %s: a folder is in the way of the lock file: move it: %w", name, errkind.Conflict)
	case info.Size() > maxLock:
		return fmt.Errorf("reading %s: the lock file has more than %d bytes: move it: %w", name, maxLock,
			errkind.TooLarge)
	}
	raw, err := d.base.root.ReadFile(lockName)
	if err != nil {
		return explain("reading", name, err)
	}
	if d.lock, err = parseLock(raw); err != nil {
		d.warnings = append(d.warnings,
			fmt.Sprintf("%s is not a lock file that can be read (%v): it is treated as if there was none", lockName,
				err))
	}
	return nil
}

// last returns the lock, or an empty one if there is none.
func (d *disk) last() *lock {
	if d.lock == nil {
		return &lock{}
	}
	return d.lock
}

// rememberLinks chooses the folders of links of the last sync, or else
// "skills". The lock file may be part of a repository, so a folder outside of
// the base is only used if it contains a link or copy made by a sync.
func (d *disk) rememberLinks() {
	for _, dir := range d.last().LinkDirs {
		f := newFolder(d.base.path, filepath.FromSlash(dir))
		if filepath.IsLocal(filepath.FromSlash(dir)) || d.holdsOurs(f) {
			d.addLinks(f)
		}
	}
	if len(d.links) == 0 {
		d.addLinks(newFolder(d.base.path, "skills"))
	}
}

// holdsOurs reports whether a folder contains a link or copy made by a sync.
func (d *disk) holdsOurs(f *folder) bool {
	defer f.close()
	if f.open() != nil || f.read(d.outs(), d.known(nil)) != nil {
		return false
	}
	for name, e := range d.last().Skills {
		if n := f.nodes[name]; n != nil && n.ours || n.isCopy(f.key, e, nil) {
			return true
		}
	}
	return false
}

// known returns the names of the skills of this sync and the last one, with the
// paths of their files.
func (d *disk) known(skills []skill.Skill) map[string][]string {
	known := map[string][]string{}
	for name, e := range d.last().Skills {
		known[name] = e.paths()
	}
	for _, sk := range skills {
		for _, f := range sk.Files {
			known[sk.Name] = append(known[sk.Name], f.Path)
		}
	}
	return known
}

// read reads the folders, as far as they concern skills with these names and
// those in the lock.
func (d *disk) read(skills []skill.Skill) error {
	known := d.known(skills)
	for _, f := range d.links {
		if err := f.read(d.outs(), known); err != nil {
			return err
		}
	}
	// Links may lead to skills that are not in the lock.
	for _, f := range d.links {
		for name, n := range f.nodes {
			if n.ours && validName(name) {
				known[name] = append(known[name], skillFile)
			}
		}
	}
	return d.out.read(d.outs(), known)
}

// outs returns the folder of skills and that of the last sync.
func (d *disk) outs() []*folder {
	return []*folder{d.out, newFolder(d.base.path, filepath.FromSlash(cmp.Or(d.last().OutputDir, d.out.key)))}
}

// linkKeys returns the folders of links in the form of the lock.
func (d *disk) linkKeys() []string {
	keys := []string{}
	for _, f := range d.links {
		keys = append(keys, f.key)
	}
	slices.Sort(keys)
	return keys
}

// folders returns all folders.
func (d *disk) folders() []*folder { return append([]*folder{d.base, d.out}, d.links...) }

// close closes the folders.
func (d *disk) close() {
	for _, f := range d.folders() {
		f.close()
	}
}
