package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"

	"knowhow/internal/skill"
)

// An item is a skill that must exist after a sync.
type item struct {
	name  string
	files []skill.File // sorted by path
	entry entry        // for the next lock
	prev  *entry       // of the last lock; nil for a new one

	// Like prev, but for a renamed skill the entry with its former name.
	former     *entry
	formerName string

	held     bool     // of a failed server: files are those on disk
	blocked  bool     // a file of the user has its name
	fresh    bool     // its folder must be created
	overLink bool     // its folder replaces a link made by a sync
	put      []string // paths of files to write
	drop     []string // paths of generated files to remove
}

// want determines which skills must exist, and their contents.
func (s *syncer) want(c Content) error {
	former := s.formerNames(c)
	for _, sk := range c.Skills {
		it := s.wanted(sk, former[toolsOf(sk.Server, sk.Tools)])
		s.items = append(s.items, it)
		if p := it.former; p != nil && p.SourceHash != "" && p.SourceHash != sk.SourceHash {
			s.report.Changed = append(s.report.Changed, sk.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.prev.Skills)) {
		e := s.prev.Skills[name]
		switch {
		case slices.ContainsFunc(c.Skills, func(sk skill.Skill) bool { return sk.Name == name }):
		case slices.Contains(c.Failed, e.Server):
			if it := s.held(name, e); it != nil {
				s.items = append(s.items, it)
			}
		case s.old == s.out || slices.Contains(c.Disabled, e.Server):
			s.gone = append(s.gone, name)
		}
	}
	slices.SortFunc(s.items, func(a, b *item) int { return cmp.Compare(a.name, b.name) })
	s.next = &lock{
		ConfigHash: s.o.ConfigHash, Version: lockVersion, OutputDir: s.out.key, LinkDirs: s.linkKeys(),
		Failed: slices.Compact(slices.Sorted(slices.Values(c.Failed))), Skills: map[string]*entry{},
	}
	return s.findUnlisted(c.Disabled)
}

// formerNames returns the names of skills in the last lock that are no longer
// used, by their tools.
func (s *syncer) formerNames(c Content) map[string]string {
	used := map[string]bool{}
	for _, sk := range c.Skills {
		used[sk.Name] = true
	}
	former := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.prev.Skills)) {
		if e := s.prev.Skills[name]; !used[name] {
			former[toolsOf(e.Server, e.Tools)] = name
		}
	}
	return former
}

// toolsOf returns the same value for two skills if they have the same tools.
func toolsOf(server string, tools []string) string { return fmt.Sprintf("%q%q", server, tools) }

// wanted returns the item of a skill from a server, with the description that
// the user gave it. A skill that is not in the lock may have a former name; ""
// means none.
func (s *syncer) wanted(sk skill.Skill, formerName string) *item {
	it := &item{name: sk.Name, prev: s.prev.Skills[sk.Name], files: slices.Clone(sk.Files)}
	it.former, it.formerName = it.prev, sk.Name
	if it.prev == nil && formerName != "" {
		it.former, it.formerName = s.prev.Skills[formerName], formerName
		s.renamed[formerName] = true
	}
	slices.SortFunc(it.files, func(a, b skill.File) int { return cmp.Compare(a.Path, b.Path) })
	it.entry = entry{
		Server: sk.Server, Tools: append([]string{}, sk.Tools...), SourceHash: sk.SourceHash, Files: map[string]string{},
	}
	description := sk.Description
	for i, f := range it.files {
		if f.Path != skillFile {
			continue
		}
		if own, err := skill.FrontmatterDescription(f.Content); err == nil {
			description = own
		}
		if edited, ok := s.edited(it, f.Content, description); ok {
			content, err := skill.SetFrontmatterDescription(f.Content, edited)
			if err != nil {
				s.warn("the edited description of %s can't be kept: %v", s.out.show(path.Join(sk.Name, skillFile)), err)
				continue
			}
			it.files[i].Content = content
			it.entry.DescriptionEdited = true
			description = edited
		}
	}
	it.entry.WrittenDescription = sum([]byte(description))
	for _, f := range it.files {
		it.entry.Files[f.Path] = sum(f.Content)
	}
	return it
}

// edited returns the edited description of the skill on disk, in its folder or
// in a copy of it. The other two arguments are the description and the file
// that would be written.
func (s *syncer) edited(it *item, rendered []byte, description string) (string, bool) {
	if s.o.Force {
		return "", false
	}
	file, former := path.Join(it.formerName, skillFile), it.former
	texts := [][]byte{s.old.read(file)}
	if s.old != s.out {
		// An earlier sync that is not in the lock may have written this file.
		text := s.out.read(path.Join(it.name, skillFile))
		if found, err := skill.FrontmatterDescription(text); err == nil && found != description && isEdited(nil, text, found, rendered) {
			return found, true
		}
	}
	if former != nil && former.Copied {
		for _, f := range append(slices.Clone(s.links), s.left...) {
			if info, err := f.lstat(it.formerName); err == nil && info != nil && info.IsDir() && former.linked(f) {
				texts = append(texts, f.read(file))
			}
		}
	}
	for _, text := range texts {
		if text == nil {
			continue
		}
		found, err := skill.FrontmatterDescription(text)
		if err != nil && former != nil && sum(text) != former.Files[skillFile] {
			s.warn("%s was changed so that its description can't be read, and is written again: %v", s.out.show(file), err)
		}
		if err != nil || found == description {
			continue
		}
		if isEdited(former, text, found, rendered) {
			return found, true
		}
	}
	return "", false
}

// isEdited reports whether a description in a file was edited. Without a lock,
// that is so only if nothing else differs from what would be written, because
// otherwise the server may have changed it.
func isEdited(former *entry, text []byte, found string, rendered []byte) bool {
	switch {
	case former == nil || former.WrittenDescription == "":
		return skill.SameButDescription(text, rendered)
	case former.DescriptionEdited:
		return true
	}
	return sum(text) != former.Files[skillFile] && sum([]byte(found)) != former.WrittenDescription
}

// held returns the item of a skill whose server did not answer, or nil if it
// does not exist any more.
func (s *syncer) held(name string, e *entry) *item {
	it := &item{name: name, prev: e, entry: *e, held: true}
	for _, p := range e.paths() {
		content := s.old.read(path.Join(name, p))
		if content == nil {
			s.warn("%s is missing and its server %q did not answer: it is written again when the server answers",
				s.old.show(path.Join(name, p)), e.Server)
			if p == skillFile {
				return nil
			}
			continue
		}
		it.files = append(it.files, skill.File{Path: p, Content: content})
	}
	return it
}

// decide compares the items with the disk and determines which files must be
// written. It drops items whose place is taken.
func (s *syncer) decide() error {
	for _, it := range s.items {
		if err := s.compare(it); err != nil {
			return err
		}
	}
	s.items = slices.DeleteFunc(s.items, func(it *item) bool { return it.blocked })
	for _, it := range s.items {
		s.next.Skills[it.name] = &it.entry
		it.entry.Links, it.entry.Copied = nil, false
		switch {
		case it.changes():
			s.report.Written = append(s.report.Written, it.name)
		case !it.held:
			s.report.Unchanged = append(s.report.Unchanged, it.name)
		}
	}
	s.next.Hash = hashOf(s.items)
	s.log.Debug("computed the hash of all skills", "files", len(s.items), "hash", s.next.Hash, "before", s.prev.Hash)
	s.report.Hash = s.next.Hash
	return nil
}

// changes reports whether an item's folder must be changed.
func (it *item) changes() bool { return it.fresh || len(it.put)+len(it.drop) > 0 }

// compare compares an item with its folder. Without a lock nothing is up to
// date (FR-6.2).
func (s *syncer) compare(it *item) error {
	info, err := s.out.lstat(it.name)
	if err != nil {
		return err
	}
	paths := it.entry.paths()
	switch {
	case info == nil:
		it.fresh = true
	case !info.IsDir():
		it.blocked = true
		s.keep(s.out, it.name, "is in the way of a skill's folder and was left alone: move it")
		return nil
	default:
		ours, err := s.owns(it)
		if err != nil {
			return err
		}
		if !ours || !s.out.plain(it.name, paths) {
			it.blocked = true
			s.keep(s.out, it.name, "is in the way of a skill of that name and was left alone, because it is not ours: move it")
			return nil
		}
	}
	for _, f := range it.files {
		if it.fresh || (s.o.Force || s.raw == nil) && !it.held || !bytes.Equal(s.out.read(path.Join(it.name, f.Path)), f.Content) {
			it.put = append(it.put, f.Path)
		}
	}
	if it.prev != nil && s.old == s.out && !it.held {
		s.findDropped(it)
	}
	return nil
}

// findDropped finds the files of the last sync that are no longer part of the
// skill.
func (s *syncer) findDropped(it *item) {
	for _, p := range it.prev.paths() {
		if _, still := it.entry.Files[p]; still {
			continue
		}
		content := s.out.read(path.Join(it.name, p))
		switch {
		case content == nil:
		case sum(content) == it.prev.Files[p]:
			it.drop = append(it.drop, p)
		default:
			s.keep(s.out, path.Join(it.name, p), "is no longer part of the skill but was changed, so it was left alone")
		}
	}
}

// owns reports whether the folder with an item's name was made by a sync:
// according to the lock or to its SKILL.md, or because it is empty.
func (s *syncer) owns(it *item) (bool, error) {
	if it.prev != nil && s.old == s.out {
		return true, nil
	}
	if md := s.out.read(path.Join(it.name, skillFile)); md != nil {
		return skill.FrontmatterServer(md) == it.entry.Server, nil
	}
	entries, err := s.out.names(it.name)
	return len(entries) == 0, err
}

// hashOf returns the hash of the SKILL.md files of items, which must be sorted
// by name.
func hashOf(items []*item) string {
	texts := map[string][]byte{}
	for _, it := range items {
		for _, f := range it.files {
			if f.Path == skillFile {
				texts[it.name] = f.Content
			}
		}
	}
	return hashTexts(texts)
}

// hashTexts returns the SHA-256 of the concatenated texts, in the order of name
// + "/SKILL.md".
func hashTexts(texts map[string][]byte) string {
	names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Compare(a+"/"+skillFile, b+"/"+skillFile)
	})
	h := sha256.New()
	for _, name := range names {
		h.Write(texts[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
