package store

import (
	"bytes"
	"context"
	"io/fs"
	"knowhow/internal/sanitize"
	"knowhow/internal/skill"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// A place is the kind of file at the place of a link.
type place int

const (
	empty   place = iota
	linked        // the correct link
	astray        // a link with another target; for a removed skill, one of ours
	copied        // a copy made by a sync
	foreign       // a file of the user
)

// target returns the target of the link with that name in f. It is relative,
// except between volumes.
func (s *syncer) target(f *folder, name string) (to string, relative bool) {
	if rel, err := filepath.Rel(f.real, s.out.real); err == nil {
		return filepath.Join(rel, name), true
	}
	return filepath.Join(s.out.real, name), false
}

// leadsTo returns the folder of skills, the current or the earlier one, that
// contains the target of a link in f, and the path of the target in it. It
// examines only the path: the target need not exist.
func (s *syncer) leadsTo(f *folder, target string) (*folder, string) {
	ways := []string{target}
	if !filepath.IsAbs(target) {
		ways = []string{filepath.Join(f.real, target), filepath.Join(f.path, target)}
	}
	for _, out := range []*folder{s.out, s.old} {
		for _, dir := range []string{out.path, out.real} {
			for _, way := range ways {
				rel, err := filepath.Rel(dir, way)
				if err == nil && filepath.IsLocal(rel) && rel != "." {
					return out, filepath.ToSlash(rel)
				}
			}
		}
	}
	return nil, ""
}

// look determines the kind of file in f with the name of a skill. The last
// sync's entry and the item, if not nil, help to recognize generated files.
func (s *syncer) look(f *folder, name string, prev *entry, it *item) (place, error) {
	info, err := f.lstat(name)
	switch {
	case err != nil:
		return foreign, err
	case info == nil:
		return empty, nil
	case info.IsDir():
		return s.lookAtFolder(f, name, prev, it), nil
	case info.Mode()&fs.ModeSymlink == 0:
		return foreign, nil
	}
	target, err := f.root.Readlink(name)
	if err != nil {
		return foreign, explain("reading the link", filepath.Join(f.path, name), err)
	}
	if it != nil {
		if want, _ := s.target(f, name); filepath.Clean(target) == want {
			return linked, nil
		}
		return astray, nil // FR-5.1
	}
	if out, rel := s.leadsTo(f, target); out != nil && rel == name {
		return astray, nil
	}
	return foreign, nil
}

// lookAtFolder distinguishes a copy from a folder of the user. A folder is a
// copy if the lock says so, or if its content is that of the last sync or of
// this one.
func (s *syncer) lookAtFolder(f *folder, name string, prev *entry, it *item) place {
	md := f.read(path.Join(name, skillFile))
	if prev.linked(f) && prev.Copied && (md == nil || skill.FrontmatterServer(md) == prev.Server) {
		return copied
	}
	if md == nil {
		return foreign
	}
	for _, e := range []*entry{prev, it.record()} {
		if e != nil && skill.FrontmatterServer(md) == e.Server && sum(md) == e.Files[skillFile] {
			return copied
		}
	}
	return foreign
}

func (it *item) record() *entry {
	if it == nil {
		return nil
	}
	return &it.entry
}

// linkSkills makes the links of all items, or copies if links cannot be made.
func (s *syncer) linkSkills(ctx context.Context) error {
	for _, f := range s.links {
		if _, relative := s.target(f, ""); !relative && len(s.items) > 0 {
			s.warn("%s and %s are on different volumes: links between them are absolute", f.path, s.out.path)
		}
		for _, it := range s.items {
			state, err := s.look(f, it.name, it.prev, it)
			if err != nil {
				return err
			}
			switch {
			case state == foreign:
				s.keep(f, it.name, "is in the way of a link and was left alone, because it is not ours: move it")
				continue
			case state == astray:
				s.warnOfTarget(f, it.name)
			}
			switch {
			case state == linked || state == copied && s.o.DryRun && !s.outdated(f, it):
				it.entry.Copied = it.entry.Copied || state == copied
			case s.o.DryRun:
				s.foresee(f, it, state)
			default:
				if err := s.connect(ctx, f, it, state); err != nil {
					return err
				}
			}
			it.entry.Links = append(it.entry.Links, f.key)
		}
	}
	for _, it := range s.items {
		slices.Sort(it.entry.Links)
	}
	return nil
}

// warnOfTarget warns of a link that is about to be replaced, unless its target
// is that of an earlier link to this skill.
func (s *syncer) warnOfTarget(f *folder, name string) {
	target, err := f.root.Readlink(name)
	if err != nil {
		return // replacing it will fail
	}
	if out, rel := s.leadsTo(f, target); out == nil || rel != name {
		s.warn("the link %s to %s is replaced by one to the skill of that name", f.show(name), sanitize.Escape(sanitize.Cut(target, 200, 800)))
	}
}

// foresee records what a sync would do about a link. It cannot determine
// whether links can be made, so it assumes what the last sync found.
func (s *syncer) foresee(f *folder, it *item, state place) {
	if state == copied {
		it.entry.Copied = true
		s.report.Copied = append(s.report.Copied, f.show(it.name))
		return
	}
	s.report.Linked = append(s.report.Linked, f.show(it.name))
}

// outdated reports whether a copy differs from its item.
func (s *syncer) outdated(f *folder, it *item) bool {
	return slices.ContainsFunc(it.entry.paths(), func(p string) bool {
		content := f.read(path.Join(it.name, p))
		return content == nil || sum(content) != it.sum(p)
	})
}

// sum returns the hash of one of the item's files.
func (it *item) sum(p string) string {
	for _, f := range it.files {
		if f.Path == p {
			return sum(f.Content)
		}
	}
	return ""
}

// connect makes the link or the copy of the item in f.
func (s *syncer) connect(ctx context.Context, f *folder, it *item, state place) error {
	temp := s.tryLink(f, it)
	if temp == "" {
		return s.copySkill(ctx, f, it, state)
	}
	defer f.root.Remove(temp) // already removed after success
	switch state {
	case astray:
		// Not every system can rename a file over a link to a folder.
		if err := f.root.Remove(it.name); err != nil {
			return explain("replacing the link", filepath.Join(f.path, it.name), err)
		}
	case copied:
		gone, err := s.removeCopy(f, it.name, it.prev, it, func(string, []byte) bool { return true })
		if err != nil {
			return err
		}
		if !gone {
			s.keep(f, it.name, "contains files that are not ours, so it can't become a link")
			return s.copySkill(ctx, f, it, copied)
		}
	}
	if err := f.root.Rename(temp, it.name); err != nil {
		return explain("making the link", filepath.Join(f.path, it.name), err)
	}
	s.report.Linked = append(s.report.Linked, f.show(it.name))
	s.log.Debug("Created symlink: " + it.tool() + " (" + f.show(it.name) + ")")
	return nil
}

// tryLink makes the item's link under a temporary name and returns that name,
// or "" if links cannot be made. The folder itself is known to be writable.
func (s *syncer) tryLink(f *folder, it *item) string {
	if s.refused[f] != nil {
		return ""
	}
	link := s.o.Link
	if link == nil {
		// Root.Symlink cannot be used: on Windows it makes a link to a file if
		// the target is outside of the root.
		link = os.Symlink
	}
	target, _ := s.target(f, it.name)
	temp := tempName()
	err := link(target, filepath.Join(f.path, temp))
	if err == nil {
		return temp
	}
	s.refused[f] = err
	s.warn("links can't be made in %s (%v): the skills are copied there instead, and again by each sync that changes them", f.path, cause(err))
	return ""
}

// copySkill makes or updates the item's copy in f.
func (s *syncer) copySkill(ctx context.Context, f *folder, it *item, state place) error {
	it.entry.Copied = true
	if state == copied && !s.outdated(f, it) {
		return nil
	}
	c := *it
	c.fresh, c.put, c.drop = state != copied, nil, nil
	for _, file := range it.files {
		if c.fresh || !bytes.Equal(f.read(path.Join(it.name, file.Path)), file.Content) {
			c.put = append(c.put, file.Path)
		}
	}
	if it.prev != nil && !c.fresh {
		c.drop = slices.DeleteFunc(it.prev.paths(), func(p string) bool { return it.sum(p) != "" })
	}
	c.overLink = state == astray
	if state == copied && !f.plain(it.name, append(it.entry.paths(), c.drop...)) {
		s.keep(f, it.name, "contains links in place of folders and was left alone: move it")
		return nil
	}
	if err := s.put(ctx, f, []*item{&c}); err != nil {
		return err
	}
	s.report.Copied = append(s.report.Copied, f.show(it.name))
	s.log.Debug("Copied skill: " + it.name)
	return nil
}
