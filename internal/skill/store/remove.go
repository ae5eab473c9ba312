package store

import (
	"context"
	"fmt"
	"io/fs"
	"knowhow/internal/skill"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxNamed is how many skills one warning names.
const maxNamed = 10

// findUnlisted finds the links that the lock does not know, but that lead to a
// skill of their own name which is gone or belongs to a disabled server.
func (s *syncer) findUnlisted(disabled []string) error {
	for _, f := range s.links {
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

// removeLinks removes the links and copies of skills that are gone.
func (s *syncer) removeLinks(context.Context) error {
	for _, f := range s.links {
		for _, name := range s.gone {
			if err := s.unlink(f, name); err != nil {
				return err
			}
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

// removeSkills removes the folders of skills that are gone. Where the skills go
// to another folder than before, those in the earlier one stay.
func (s *syncer) removeSkills(context.Context) error {
	if s.old != s.out {
		return nil
	}
	for _, name := range s.gone {
		if prev := s.prev.Skills[name]; prev != nil {
			if err := s.removeSkill(name, prev); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnOfRest warns of what the last sync left in folders that this one does not
// use, and of links to it, since no later sync knows of them.
func (s *syncer) warnOfRest(context.Context) error {
	known := slices.Sorted(maps.Keys(s.prev.Skills))
	if s.old != s.out {
		rest := slices.DeleteFunc(slices.Clone(known), func(name string) bool {
			md := s.old.read(path.Join(name, skillFile))
			return md == nil || skill.FrontmatterServer(md) != s.prev.Skills[name].Server
		})
		if err := s.warnOf(s.old, "skill", rest); err != nil {
			return err
		}
	}
	folders := s.left
	if s.old != s.out {
		folders = append(slices.Clone(s.links), s.left...)
	}
	for _, f := range folders {
		var rest []string
		for _, name := range known {
			used := s.next.Skills[name] != nil || slices.Contains(s.gone, name)
			if used && slices.Contains(s.links, f) {
				continue
			}
			state, err := s.look(f, name, s.prev.Skills[name], nil)
			if err != nil {
				return err
			}
			if state == astray || state == copied {
				rest = append(rest, name)
			}
		}
		if err := s.warnOf(f, "link", rest); err != nil {
			return err
		}
	}
	return nil
}

// warnOf warns that f still holds the named skills or links to skills, and says
// which command removes them: with the folder, if it holds nothing else.
func (s *syncer) warnOf(f *folder, what string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	entries, err := f.names(".")
	if err != nil {
		return err
	}
	count, more := fmt.Sprintf("%d %ss", len(names), what), ""
	if len(names) == 1 {
		count = "1 " + what
	}
	command := "rm -r"
	if len(entries) == len(names) {
		names = []string{""}
	}
	if len(names) > maxNamed {
		names, more = names[:maxNamed], fmt.Sprintf(" (and %d others)", len(names)-maxNamed)
	}
	for _, name := range names {
		p := f.show(name)
		if strings.HasPrefix(p, "-") {
			p = "./" + p
		}
		command += " " + skill.QuoteShell(p)
	}
	s.warn("%s still holds %s of an earlier sync: if you do not need them, type: %s%s", f.key, count, command, more)
	return nil
}

// removeSkill removes the folder of a skill that is gone, unless somebody has
// changed its SKILL.md.
func (s *syncer) removeSkill(name string, prev *entry) error {
	info, err := s.out.lstat(name)
	if err != nil {
		return err
	}
	s.report.Removed = append(s.report.Removed, name)
	if info == nil {
		return nil
	}
	md := s.out.read(path.Join(name, skillFile))
	edited := md != nil && !s.renamed[name] && (prev.DescriptionEdited || sum(md) != prev.Files[skillFile])
	if edited || !s.out.plain(name, prev.paths()) {
		s.keep(s.out, name, "is no longer generated but was changed, so it was left alone: remove it if you don't need it")
		return nil
	}
	if s.o.DryRun {
		return nil
	}
	gone, err := s.out.removeFiles(name, prev.paths(), s.ours(name, prev))
	if err != nil {
		return err
	}
	if !gone {
		s.keep(s.out, name, "holds files that are not ours or were changed, which were left alone")
	}
	s.log.Debug("Removed skill: " + name)
	return nil
}
