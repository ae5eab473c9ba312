package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/errkind"
	"knowhow/internal/sanitize"
	"knowhow/internal/skill"
)

// place determines the paths of all folders. It opens nothing.
func (s *syncer) place() error {
	base, err := filepath.Abs(s.o.Base)
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	s.base = &folder{key: ".", path: base, real: realPath(base)}
	if s.o.OutputDir == "" {
		s.o.OutputDir = "mcp-skills"
	}
	if !validPath(s.o.OutputDir) {
		return &errkind.Argument{Name: "OutputDir", Value: s.o.OutputDir, Want: "the path of a folder"}
	}
	s.out = newFolder(base, s.o.OutputDir)
	for _, name := range s.o.LinkDirs {
		if !validPath(name) {
			return &errkind.Argument{Name: "LinkDirs", Value: name, Want: "the path of a folder"}
		}
		if !s.addLinks(newFolder(base, name)) {
			return &errkind.Argument{Name: "LinkDirs", Value: name, Want: "another folder than that of the skills themselves"}
		}
	}
	return nil
}

// addLinks adds a folder of links, unless it is already in the list. It returns
// false for the folder of the skills themselves.
func (s *syncer) addLinks(f *folder) bool {
	if f.real == s.out.real {
		return false
	}
	if !slices.ContainsFunc(s.links, func(l *folder) bool { return l.real == f.real }) {
		s.links = append(s.links, f)
	}
	return true
}

// validPath reports whether p can be the path of a folder.
func validPath(p string) bool {
	return p != "" && len(p) <= 4096 && !strings.ContainsRune(p, 0) && utf8.ValidString(p)
}

// open opens the folders that exist and reads the lock.
func (s *syncer) open() error {
	if err := s.base.open(); err != nil {
		return err
	}
	if s.base.root == nil {
		return fmt.Errorf("the folder %s does not exist: make it or start in another one: %w", s.base.path, errkind.NotFound)
	}
	if link, target := s.linkTo(s.out); link != "" {
		return fmt.Errorf("the folder %s, which is written to, is a symbolic link to %s: remove it, or choose the folder that it leads to: %w",
			link, sanitize.Escape(sanitize.Cut(target, 200, 800)), errkind.Conflict)
	}
	if err := s.out.open(); err != nil {
		return err
	}
	if err := s.readLock(); err != nil {
		return err
	}
	s.openFormer()
	s.chooseLinks()
	for _, f := range s.links {
		if err := f.open(); err != nil {
			return err
		}
	}
	s.openLeft()
	return nil
}

// linkTo returns the first element of f's path below the base that is a
// symbolic link, and its target; "" if there is none. Outside of the base only
// the last element is examined, because the folders above it belong to the
// user.
func (s *syncer) linkTo(f *folder) (link, target string) {
	for p := f.path; p != s.base.path && p != s.base.real; p = filepath.Dir(p) {
		if to, err := os.Readlink(p); err == nil {
			link, target = p, to
		}
		if p == filepath.Dir(p) { // f is outside of the base
			if to, err := os.Readlink(f.path); err == nil {
				return f.path, to
			}
			return "", ""
		}
	}
	return link, target
}

// openFormer opens the folder of skills that is only in the lock. It is foreign
// input, so a folder that cannot be opened is ignored.
func (s *syncer) openFormer() {
	s.old = s.out
	if dir := s.prev.OutputDir; dir != "" && dir != s.out.key {
		f := newFolder(s.base.path, filepath.FromSlash(dir))
		link, _ := s.linkTo(f)
		if f.real == s.out.real && link == "" {
			return
		}
		if link != "" || f.open() != nil {
			s.warn("the earlier folder of skills, %s, can't be opened or is a link: its contents are kept", f.path)
		}
		s.old = f
	}
}

// chooseLinks chooses the folders of links if the options do not contain any:
// those of the last sync, or else "skills". The lock file may be part of a
// repository, so a folder outside of the base is only used if it contains a
// link or copy made by a sync.
func (s *syncer) chooseLinks() {
	if s.o.LinkDirs != nil {
		return
	}
	for _, dir := range s.prev.LinkDirs {
		if f := newFolder(s.base.path, filepath.FromSlash(dir)); filepath.IsLocal(filepath.FromSlash(dir)) || s.holdsOurs(f) {
			s.addLinks(f)
		}
	}
	if len(s.links) == 0 {
		s.addLinks(newFolder(s.base.path, "skills"))
	}
}

// holdsOurs reports whether a folder contains a link or copy made by a sync.
func (s *syncer) holdsOurs(f *folder) bool {
	if f.open() != nil || f.root == nil {
		return false
	}
	defer f.close()
	for name, e := range s.prev.Skills {
		if state, err := s.look(f, name, e, nil); err == nil && (state == astray || state == copied) {
			return true
		}
	}
	return false
}

// openLeft opens the folders of links that are only in the lock, like
// openFormer.
func (s *syncer) openLeft() {
	for _, dir := range s.prev.LinkDirs {
		f := newFolder(s.base.path, filepath.FromSlash(dir))
		same := func(l *folder) bool { return l.real == f.real }
		if slices.ContainsFunc(s.links, same) || slices.ContainsFunc(s.left, same) || same(s.out) || same(s.old) {
			continue
		}
		if err := f.open(); err != nil {
			s.warn("the earlier folder of links, %s, can't be opened: its contents are kept", f.path)
		}
		s.left = append(s.left, f)
	}
}

// close closes the folders.
func (s *syncer) close() {
	all := append([]*folder{s.base, s.out, s.old}, append(slices.Clone(s.links), s.left...)...)
	for _, f := range all {
		if f != nil {
			f.close()
		}
	}
}

// linkKeys returns the folders of links in the form of the lock.
func (s *syncer) linkKeys() []string {
	keys := []string{}
	for _, f := range s.links {
		keys = append(keys, f.key)
	}
	slices.Sort(keys)
	return keys
}

var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// validName reports whether name is the name of a skill, and so a safe folder
// name.
func validName(name string) bool { return len(name) <= 64 && slug.MatchString(name) }

// validFile reports whether p is a path inside of a skill's folder on every
// system.
func validFile(p string) bool {
	return len(p) <= 255 && utf8.ValidString(p) && fs.ValidPath(p) && p != "." && !strings.ContainsAny(p, "\\:\x00") &&
		filepath.IsLocal(filepath.FromSlash(p)) && !strings.HasPrefix(p, tempPrefix)
}

// check refuses skills that cannot be written as folders.
func check(c Content) error {
	seen := map[string]bool{}
	for _, sk := range c.Skills {
		switch {
		case !validName(sk.Name):
			return fmt.Errorf("a skill of server %q has the name %q, which can't be a folder's: %w", sk.Server, sk.Name, errkind.Invalid)
		case seen[sk.Name]:
			return fmt.Errorf("two skills have the name %q: %w", sk.Name, errkind.Invalid)
		case !slices.ContainsFunc(sk.Files, func(f skill.File) bool { return f.Path == skillFile }):
			return fmt.Errorf("the skill %q has no %s: %w", sk.Name, skillFile, errkind.Invalid)
		}
		seen[sk.Name] = true
		paths := map[string]bool{}
		for _, f := range sk.Files {
			if !validFile(f.Path) || paths[f.Path] || len(f.Content) > maxFile {
				return fmt.Errorf("the skill %q has a file %q, which can't be written: %w", sk.Name, f.Path, errkind.Invalid)
			}
			paths[f.Path] = true
		}
	}
	return nil
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

// inTheWay returns the first part of an absolute path that exists and is not a
// folder, or "".
func inTheWay(path string) string {
	if dir := filepath.Dir(path); dir != path {
		if way := inTheWay(dir); way != "" {
			return way
		}
	}
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return ""
	}
	return path
}
