package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An applier makes the changes of a plan.
type applier struct {
	*disk
	*plan
	log     *slog.Logger
	write   writeFunc
	refused map[*folder]bool // folders in which links cannot be made
}

// apply makes the changes and then writes the lock. Until all new files are
// written and read back, no existing file is changed.
func (a *applier) apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("writing skills: %w", err)
	}
	if err := a.prepare(); err != nil {
		return err
	}
	temp := tempName()
	defer func() {
		for _, f := range a.folders() {
			if f.root != nil {
				// The rest is empty or useless: the next sync removes what
				// cannot be removed now.
				_ = f.root.RemoveAll(temp)
			}
		}
	}()
	for _, c := range a.changes {
		if !c.link {
			if err := a.stage(ctx, temp, c); err != nil {
				return err
			}
		}
	}
	for _, c := range a.changes {
		if err := a.commit(ctx, temp, c); err != nil {
			return err
		}
	}
	return a.writeLock()
}

// prepare makes sure, before the first change, that every folder that is about
// to be changed exists and is writable. It also removes the remains of a sync
// that was killed.
func (a *applier) prepare() error {
	type place struct {
		f   *folder
		dir string
	}
	places := map[place]bool{}
	for _, c := range a.changes {
		f := c.in
		places[place{a.base, "."}], places[place{f, "."}] = true, true
		if c.link || c.unlink || c.fresh {
			continue
		}
		for _, file := range c.put {
			places[place{f, path.Join(c.name, path.Dir(file.Path))}] = true
		}
		for _, p := range c.drop {
			places[place{f, path.Join(c.name, path.Dir(p))}] = true
		}
	}
	outer := func(a, b place) int { return strings.Compare(a.dir, b.dir) }
	for _, p := range slices.SortedFunc(maps.Keys(places), outer) {
		if err := p.f.make(); err != nil {
			return err
		}
		if err := a.probe(p.f, p.dir); err != nil {
			return err
		}
	}
	return nil
}

// probe creates and removes a file in a folder, unless it does not exist.
func (a *applier) probe(f *folder, dir string) error {
	full := filepath.Join(f.path, filepath.FromSlash(dir))
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("reading", full, err)
	}
	temp := filepath.Join(filepath.FromSlash(dir), tempName())
	err = a.write(f.root, temp, nil, false)
	if gone := f.root.Remove(temp); err == nil {
		err = gone
	}
	for _, e := range entries {
		if err == nil && strings.HasPrefix(e.Name(), tempPrefix) {
			err = f.root.RemoveAll(filepath.Join(filepath.FromSlash(dir), e.Name()))
		}
	}
	return explain("writing to", full, err)
}

// stage writes the files of a change into a temporary folder and reads them
// back.
func (a *applier) stage(ctx context.Context, temp string, c change) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("writing skills: %w", err)
	}
	for _, file := range c.put {
		name := filepath.FromSlash(path.Join(c.name, file.Path))
		full := filepath.Join(c.in.path, name)
		name = filepath.Join(temp, name)
		err := c.in.root.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = a.write(c.in.root, name, file.Content, false)
		}
		if err != nil {
			return explain("writing", full, err)
		}
		back, err := c.in.root.ReadFile(name)
		if err != nil {
			return explain("reading back", full, err)
		}
		if !bytes.Equal(back, file.Content) {
			return fmt.Errorf("reading back %s: the content is not what was written: check the disk", full)
		}
	}
	return nil
}

// commit makes a change. Its files must be staged, unless it is a link.
func (a *applier) commit(ctx context.Context, temp string, c change) error {
	f := c.in
	full, from := filepath.Join(f.path, c.name), filepath.Join(temp, c.name)
	if c.link {
		if link := a.tryLink(f, c.name); link != "" {
			from = link
			defer f.root.Remove(link) // already renamed after success
		} else {
			if err := a.stage(ctx, temp, c); err != nil {
				return err
			}
			c.link, c.fresh = false, true
			a.recordCopy(c)
		}
	}
	if c.unlink {
		// Not every system can rename a file over a link to a folder.
		if err := f.root.Remove(c.name); err != nil {
			return explain("removing the link", full, err)
		}
	}
	var err error
	if c.link || c.fresh {
		err = f.root.Rename(from, c.name)
	} else {
		err = a.replace(f, temp, c)
	}
	if err != nil {
		return explain("writing", full, err)
	}
	if len(c.put) > 0 && !c.link {
		a.log.Debug("wrote a skill", "path", full, "files", len(c.put))
	}
	a.log.Debug(a.describe(c))
	return nil
}

// replace renames the files of a change to their places, and removes those that
// are no longer part of the skill, with the folders that become empty.
func (a *applier) replace(f *folder, temp string, c change) error {
	for _, file := range c.put {
		to := filepath.FromSlash(path.Join(c.name, file.Path))
		if err := f.root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := f.root.Rename(filepath.Join(temp, to), to); err != nil {
			return err
		}
	}
	for _, p := range c.drop {
		full := path.Join(c.name, p)
		if err := f.root.Remove(filepath.FromSlash(full)); err != nil {
			return err
		}
		for d := path.Dir(full); d != "." && f.root.Remove(filepath.FromSlash(d)) == nil; d = path.Dir(d) {
		}
	}
	return nil
}

// tryLink makes a link to a skill under a temporary name and returns that name,
// or "" if links cannot be made. The folder itself is known to be writable.
func (a *applier) tryLink(f *folder, name string) string {
	if a.refused[f] {
		return ""
	}
	link := a.o.Link
	if link == nil {
		// Root.Symlink cannot be used: on Windows it makes a link to a file if
		// the target is outside of the root.
		link = os.Symlink
	}
	temp := tempName()
	err := link(f.linkTo(a.out, name), filepath.Join(f.path, temp))
	if err == nil {
		return temp
	}
	if a.refused == nil {
		a.refused = map[*folder]bool{}
	}
	a.refused[f] = true
	text := fmt.Sprintf("links can't be made in %s (%v): the skills are copied there instead, and again by each "+
		"sync that changes them",
		f.path, cause(err))
	a.report.Warnings = append(a.report.Warnings, text)
	a.log.Warn(text)
	return ""
}

// recordCopy records that a skill was copied instead of linked.
func (a *applier) recordCopy(c change) {
	p := c.in.show(c.name)
	a.report.Linked = slices.DeleteFunc(a.report.Linked, func(l string) bool { return l == p })
	a.report.Copied = append(a.report.Copied, p)
	c.entry.Copied = true
}

// describe returns a line for the log.
func (a *applier) describe(c change) string {
	what, out := "Generated skill: ", c.in == a.out
	switch {
	case c.entry == nil && out:
		return "Removed skill: " + c.name
	case c.entry == nil:
		return "Removed symlink: " + c.name
	case c.link:
		what = "Created symlink: "
	case !out:
		what = "Copied skill: "
	}
	return what + c.tool + " (" + c.in.show(c.name) + ")"
}

// writeLock replaces the lock file if it differs.
func (a *applier) writeLock() error {
	data, root := a.next.encode(), a.base.root
	if a.lock != nil && bytes.Equal(data, a.lock.encode()) {
		return nil
	}
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(lockName); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	temp := tempName()
	defer root.Remove(temp) // already renamed after success
	err := a.write(root, temp, data, true)
	if err == nil {
		err = root.Chmod(temp, mode)
	}
	if err == nil {
		err = root.Rename(temp, lockName)
	}
	full := filepath.Join(a.base.path, lockName)
	if err != nil {
		return explain("writing", full, err)
	}
	a.log.Debug("wrote the lock file", "path", full, "hash", a.next.Hash, "config_hash", a.next.ConfigHash)
	return nil
}

// A writeFunc writes a new file. With flush, its content is synced to the disk.
type writeFunc func(root *os.Root, name string, data []byte, flush bool) error

func writeFile(root *os.Root, name string, data []byte, flush bool) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if flush {
		return f.Sync()
	}
	return nil
}
