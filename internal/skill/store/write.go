package store

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"knowhow/internal/sanitize"
	"knowhow/internal/skill"
)

// prepare makes sure, before the first change, that every folder that a sync
// will change exists and is writable.
func (s *syncer) prepare(context.Context) error {
	if s.o.DryRun {
		return nil
	}
	var change []*folder
	if len(s.pending()) > 0 {
		change = append(change, s.out)
	}
	if len(s.gone) > 0 && s.old == s.out && s.out.root != nil {
		change = append(change, s.out)
	}
	for _, f := range s.links {
		work, err := s.hasWork(f)
		if err != nil {
			return err
		}
		if work {
			change = append(change, f)
		}
	}
	if len(change) > 0 {
		change = append(change, s.base)
	}
	for _, f := range change {
		if err := f.make(); err != nil {
			return err
		}
		if err := s.probe(f, "."); err != nil {
			return err
		}
	}
	for _, it := range s.pending() {
		if err := s.probeItem(it); err != nil {
			return err
		}
	}
	return nil
}

// pending returns the items that differ from the disk.
func (s *syncer) pending() []*item {
	return slices.DeleteFunc(slices.Clone(s.items), func(it *item) bool { return !it.changes() })
}

// hasWork reports whether a link or copy in f may have to be made, changed or
// removed.
func (s *syncer) hasWork(f *folder) (bool, error) {
	for _, it := range s.items {
		if state, err := s.look(f, it.name, it.prev, it); err != nil || state != linked && state != foreign {
			return true, err
		}
	}
	for _, name := range s.gone {
		if state, err := s.look(f, name, s.prev.Skills[name], nil); err != nil || state != empty && state != foreign {
			return true, err
		}
	}
	return false, nil
}

// writeSkills writes the items that differ from the disk: first all of them to
// a hidden folder, then to their places.
func (s *syncer) writeSkills(ctx context.Context) error {
	todo := s.pending()
	if s.o.DryRun || len(todo) == 0 {
		return nil
	}
	if err := s.put(ctx, s.out, todo); err != nil {
		return err
	}
	for _, it := range todo {
		s.log.Debug("Generated skill: " + it.tool() + " (" + s.out.show(it.name) + ")")
	}
	return nil
}

// tool returns the tool of an item for messages, or the skill if it has several
// tools.
func (it *item) tool() string {
	if len(it.entry.Tools) == 1 {
		return sanitize.Escape(sanitize.Cut(it.entry.Tools[0], 200, 800))
	}
	return it.name
}

// probeItem checks that the existing folders of an item are writable.
func (s *syncer) probeItem(it *item) error {
	if it.fresh {
		return nil
	}
	dirs := map[string]bool{it.name: true}
	for _, list := range [][]string{it.put, it.drop} {
		for _, p := range list {
			dirs[path.Join(it.name, path.Dir(p))] = true
		}
	}
	for dir := range dirs {
		if info, err := s.out.lstat(dir); err != nil || info == nil {
			continue
		}
		if err := s.probe(s.out, dir); err != nil {
			return err
		}
	}
	return nil
}

// probe creates and removes a file in a folder. It also removes the remains of
// a sync that was killed.
func (s *syncer) probe(f *folder, dir string) error {
	temp := filepath.Join(filepath.FromSlash(dir), tempName())
	err := s.write(f.root, temp, nil, false)
	if gone := f.root.Remove(temp); err == nil {
		err = gone
	}
	if err != nil {
		return explain("writing to", filepath.Join(f.path, filepath.FromSlash(dir)), err)
	}
	return f.sweep(dir)
}

// put applies the changes of the items to f. Until the last file is written and
// read back, no existing file is changed.
func (s *syncer) put(ctx context.Context, f *folder, items []*item) error {
	temp := tempName()
	if err := f.root.Mkdir(temp, 0o755); err != nil {
		return explain("writing to", f.path, err)
	}
	// The rest is empty or useless: the next sync removes what cannot be
	// removed now.
	defer f.root.RemoveAll(temp)
	for _, it := range items {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("writing skills: %w", err)
		}
		for _, file := range it.pending() {
			if err := s.stage(f, temp, path.Join(it.name, file.Path), file.Content); err != nil {
				return err
			}
		}
	}
	for _, it := range items {
		if err := s.commit(f, temp, it); err != nil {
			return err
		}
	}
	return nil
}

// pending returns the files of an item that must be written.
func (it *item) pending() []skill.File {
	var files []skill.File
	next := 0
	for _, f := range it.files {
		if next < len(it.put) && it.put[next] == f.Path {
			files = append(files, f)
			next++
		}
	}
	return files
}

// stage writes one file into the temporary folder and reads it back.
func (s *syncer) stage(f *folder, temp, name string, content []byte) error {
	full := filepath.Join(f.path, filepath.FromSlash(name))
	name = filepath.Join(temp, filepath.FromSlash(name))
	if err := f.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return explain("writing", full, err)
	}
	if err := s.write(f.root, name, content, false); err != nil {
		return explain("writing", full, err)
	}
	back, err := f.root.ReadFile(name)
	if err != nil {
		return explain("reading back", full, err)
	}
	if sum(back) != sum(content) {
		return fmt.Errorf("reading back %s: the content is not what was written: check the disk", full)
	}
	return nil
}

// commit renames the files of an item to their places and removes those that
// are no longer part of it.
func (s *syncer) commit(f *folder, temp string, it *item) error {
	full := filepath.Join(f.path, it.name)
	if it.overLink {
		if err := f.root.Remove(it.name); err != nil {
			return explain("replacing the link", full, err)
		}
	}
	if it.fresh {
		if err := f.root.Rename(filepath.Join(temp, it.name), it.name); err != nil {
			return explain("writing", full, err)
		}
	} else {
		for _, p := range it.put {
			to := filepath.FromSlash(path.Join(it.name, p))
			if err := f.root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return explain("writing", filepath.Join(f.path, to), err)
			}
			if err := f.root.Rename(filepath.Join(temp, to), to); err != nil {
				return explain("writing", filepath.Join(f.path, to), err)
			}
		}
	}
	s.log.Debug("wrote a skill", "path", full, "files", len(it.put))
	if len(it.drop) == 0 {
		return nil
	}
	_, err := f.removeFiles(it.name, it.drop, func(p string, content []byte) bool {
		return it.prev != nil && sum(content) == it.prev.Files[p]
	})
	return err
}
