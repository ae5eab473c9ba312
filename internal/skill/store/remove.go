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

// maxNamed is the maximum number of skills in one warning.
const maxNamed = 10

// findUnlisted finds links that are not in the lock, but lead to a skill of the
// same name that was removed or belongs to a disabled server.
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

// removeLinks removes the links and copies of removed skills.
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

// unlink removes the link or copy with that name from f if it was made by a
// sync.
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
			s.keep(f, name, "contains files that are not ours or were changed, which were left alone")
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

// ours returns a function that reports which files of a removed skill may be
// removed: unchanged files of the last sync, or all files of the last sync if
// the skill continues to exist under another name, with the edited description.
func (s *syncer) ours(name string, prev *entry) func(path string, content []byte) bool {
	return func(p string, content []byte) bool {
		return s.renamed[name] || prev != nil && sum(content) == prev.Files[p]
	}
}

// removeCopy removes the files of a copy that ours accepts.
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

// removeSkills removes the folders of removed skills. If the folder of skills
// has changed, skills in the earlier folder are kept.
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

// warnOfRest warns of skills of the last sync in folders that this sync does
// not use, and of links to them, because later syncs do not know them.
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

// warnOf warns that f still contains the named skills or links to skills, and
// names the command that removes them, including the folder if it contains
// nothing else.
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
	s.warn("%s still contains %s of an earlier sync: if you do not need them, type: %s%s", f.key, count, command, more)
	return nil
}

// removeSkill removes the folder of a removed skill, unless its SKILL.md was
// changed.
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
		s.keep(s.out, name, "contains files that are not ours or were changed, which were left alone")
	}
	s.log.Debug("Removed skill: " + name)
	return nil
}
