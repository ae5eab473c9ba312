package store

import (
	"context"
	"fmt"
	"io/fs"
	"knowhow/internal/skill"
	"path"
	"path/filepath"
	"slices"
)

// findUnlisted finds the links that the lock does not know, but that lead to a
// skill of their own name which is gone or belongs to a disabled server.
func (s *syncer) findUnlisted(disabled []string) error {
	for _, f := range append(slices.Clone(s.links), s.left...) {
		entries, err := f.names(".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			known := s.prev.Skills[name] != nil || slices.Contains(s.gone, name) ||
				slices.ContainsFunc(s.items, func(it *item) bool { return it.name == name })
			if known || e.Type()&fs.ModeSymlink == 0 || !validName(name) {
				continue
			}
			target, err := f.root.Readlink(name)
			if err != nil {
				return explain("reading the link", filepath.Join(f.path, name), err)
			}
			out, rel := s.leadsTo(f, target)
			if out == nil || rel != name {
				continue
			}
			info, err := out.lstat(name)
			if err != nil {
				return err
			}
			if info == nil || slices.Contains(disabled, skill.FrontmatterServer(out.read(path.Join(name, skillFile)))) {
				s.gone = append(s.gone, name)
			}
		}
	}
	return nil
}

// removeLinks removes the links and copies of skills that are gone, and all of
// ours from folders where links go no more.
func (s *syncer) removeLinks(context.Context) error {
	for _, f := range s.links {
		for _, name := range s.gone {
			if err := s.unlink(f, name); err != nil {
				return err
			}
		}
	}
	for _, f := range s.left {
		names := slices.Clone(s.gone)
		for name := range s.prev.Skills {
			names = append(names, name)
		}
		slices.Sort(names)
		before := len(s.report.Unlinked)
		for _, name := range slices.Compact(names) {
			if err := s.unlink(f, name); err != nil {
				return err
			}
		}
		if n := len(s.report.Unlinked) - before; n == 1 && !s.o.DryRun {
			s.log.Info("Removed 1 link from " + f.key + ", where no links go any more")
		} else if n > 1 && !s.o.DryRun {
			s.log.Info(fmt.Sprintf("Removed %d links from %s, where no links go any more", n, f.key))
		}
	}
	return nil
}

// unlink removes the link or copy of that name from f if it is ours.
func (s *syncer) unlink(f *folder, name string) error {
	prev := s.prev.Skills[name]
	state, err := s.look(f, name, prev, nil)
	switch {
	case err != nil:
		return err
	case state == astray && !s.o.DryRun:
		if err := f.root.Remove(name); err != nil {
			return explain("removing the link", filepath.Join(f.path, name), err)
		}
	case state == copied && !s.o.DryRun:
		gone, err := s.removeCopy(f, name, prev, nil, s.ours(name, prev))
		if err != nil {
			return err
		}
		if !gone {
			s.keep(f, name, "holds files that are not ours or were changed, which were left alone")
			return nil
		}
	case state == foreign && prev.linked(f):
		s.keep(f, name, "is no longer ours and was left alone")
	}
	if state == astray || state == copied {
		s.report.Unlinked = append(s.report.Unlinked, f.show(name))
	}
	if !s.o.DryRun && (state == astray || state == copied) {
		s.log.Debug("Removed symlink: " + name)
	}
	return nil
}

// ours returns the function that says which files of a skill that is gone may be
// removed: those that are as the last sync wrote them, and all that it wrote
// where the skill lives on under another name, with the edited description.
func (s *syncer) ours(name string, prev *entry) func(path string, content []byte) bool {
	return func(p string, content []byte) bool {
		return s.renamed[name] || prev != nil && sum(content) == prev.Files[p]
	}
}

// removeCopy removes the files of a copy that ours allows.
func (s *syncer) removeCopy(f *folder, name string, prev *entry, it *item, ours func(string, []byte) bool) (bool, error) {
	var paths []string
	for _, e := range []*entry{prev, it.record()} {
		if e != nil {
			paths = append(paths, e.paths()...)
		}
	}
	slices.Sort(paths)
	return f.removeFiles(name, slices.Compact(paths), ours)
}

// removeSkills removes the folders of skills that are gone, and those at the
// place from which the skills have moved.
func (s *syncer) removeSkills(context.Context) error {
	for _, name := range s.gone {
		if prev := s.prev.Skills[name]; prev != nil {
			if err := s.removeSkill(name, prev); err != nil {
				return err
			}
		}
	}
	if s.old == s.out || s.o.DryRun {
		return nil
	}
	for _, it := range s.items {
		if it.prev == nil {
			continue
		}
		// What was edited there has been taken along.
		if md := s.old.read(path.Join(it.name, skillFile)); md == nil || skill.FrontmatterServer(md) != it.prev.Server {
			continue
		}
		gone, err := s.old.removeFiles(it.name, it.prev.paths(), func(string, []byte) bool { return true })
		if err != nil {
			return err
		}
		if !gone {
			s.keep(s.old, it.name, "holds files that are not ours, which were left alone")
		}
	}
	return nil
}

// removeSkill removes the folder of a skill that is gone, unless somebody has
// changed its SKILL.md.
func (s *syncer) removeSkill(name string, prev *entry) error {
	info, err := s.old.lstat(name)
	if err != nil {
		return err
	}
	s.report.Removed = append(s.report.Removed, name)
	if info == nil {
		return nil
	}
	md := s.old.read(path.Join(name, skillFile))
	if s.old != s.out && skill.FrontmatterServer(md) != prev.Server {
		// Where the folder is not the one that the user names now, the lock
		// alone is not enough.
		s.keep(s.old, name, "does not look like ours any more and was left alone")
		return nil
	}
	edited := md != nil && !s.renamed[name] && (prev.DescriptionEdited || sum(md) != prev.Files[skillFile])
	if edited || !s.old.plain(name, prev.paths()) {
		s.keep(s.old, name, "is no longer generated but was changed, so it was left alone: remove it if you don't need it")
		return nil
	}
	if s.o.DryRun {
		return nil
	}
	gone, err := s.old.removeFiles(name, prev.paths(), s.ours(name, prev))
	if err != nil {
		return err
	}
	if !gone {
		s.keep(s.old, name, "holds files that are not ours or were changed, which were left alone")
	}
	s.log.Debug("Removed skill: " + name)
	return nil
}
