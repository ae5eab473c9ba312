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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/skill"
)

// A plan is the result of [diff].
type plan struct {
	changes []change // in the order in which they must be made
	next    *lock
	report  *Report
}

// A change is one step that changes the disk.
type change struct {
	in    *folder
	name  string // of the skill
	tool  string // for messages
	entry *entry // of the next lock; nil for a skill that is removed

	unlink bool         // remove the link with that name, before everything else
	link   bool         // make the link; if that fails, write the files instead
	fresh  bool         // make the skill's folder, which does not exist
	put    []skill.File // files to write
	drop   []string     // files to remove
}

// An item is a skill that must exist after a sync.
type item struct {
	name  string
	files []skill.File // sorted by path
	entry *entry       // for the next lock
	prev  *entry       // of the last lock; nil for a new one
	held  bool         // of a failed server: files are those on disk
}

// A differ compares. It only computes: of the folders it uses what was read.
type differ struct {
	*disk
	plan
	moved   bool              // the folder of skills is not that of the last sync
	known   map[string]*entry // the skills of the last lock
	skills  map[string]*entry // those of known in the folder of skills: all, or none if it was moved
	renamed map[string]bool   // skills of the last lock whose tools now have a skill with another name
}

// diff returns the changes after which the folders contain the skills of c and
// no other generated ones.
func diff(c Content, disk *disk) *plan {
	d := &differ{disk: disk, renamed: map[string]bool{}, plan: plan{report: &Report{}, next: &lock{
		ConfigHash: disk.o.ConfigHash, Version: lockVersion, OutputDir: disk.out.key, LinkDirs: disk.linkKeys(),
		Failed: slices.Compact(slices.Sorted(slices.Values(c.Failed))), Skills: map[string]*entry{},
	}}}
	if d.lock != nil {
		d.compareFolders()
	}
	items := slices.DeleteFunc(d.items(c), func(it *item) bool { return !d.write(it) })
	for _, f := range d.links {
		for _, it := range items {
			d.connect(f, it)
		}
	}
	d.remove(c)
	texts := map[string][]byte{}
	for _, it := range items {
		slices.Sort(it.entry.Links)
		d.next.Skills[it.name] = it.entry
		texts[it.name] = it.file(skillFile)
	}
	d.next.Hash = hashOf(texts)
	return &d.plan
}

// warn adds a warning.
func (d *differ) warn(format string, args ...any) {
	d.report.Warnings = append(d.report.Warnings, fmt.Sprintf(format, args...))
}

// compareFolders compares the folders with those of the last sync. If the
// folder of skills was another one, nothing is known about this one.
func (d *differ) compareFolders() {
	d.known = d.lock.Skills
	var left []string
	if d.moved = d.lock.OutputDir != d.out.key; !d.moved {
		d.skills = d.known
	} else {
		left = append(left, d.lock.OutputDir)
	}
	for _, dir := range d.lock.LinkDirs {
		if !slices.Contains(d.next.LinkDirs, dir) {
			left = append(left, dir)
		}
	}
	for _, dir := range left {
		d.warn("the last sync used the folder %s, which is left as it is: remove the skills in it if you do not "+
			"need them", dir)
	}
}

// items returns the skills that must exist, sorted by name: those of c, and
// those of servers that did not answer.
func (d *differ) items(c Content) []*item {
	var items []*item
	wanted := map[string]bool{}
	for _, sk := range c.Skills {
		wanted[sk.Name] = true
	}
	former := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.skills)) {
		e := d.skills[name]
		if wanted[name] {
			continue
		}
		former[toolsOf(e.Server, e.Tools)] = name
		if slices.Contains(c.Failed, e.Server) {
			if it := d.held(name, e); it != nil {
				items = append(items, it)
			}
		}
	}
	for _, sk := range c.Skills {
		items = append(items, d.item(sk, former[toolsOf(sk.Server, sk.Tools)]))
	}
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.name, b.name) })
	return items
}

// toolsOf returns the same value for two skills if they have the same tools.
func toolsOf(server string, tools []string) string { return fmt.Sprintf("%q%q", server, tools) }

// item returns the item of a skill from a server, with the description that the
// user gave it. A skill that is not in the lock may have a former name; ""
// means none.
func (d *differ) item(sk skill.Skill, formerName string) *item {
	it := &item{name: sk.Name, prev: d.skills[sk.Name], files: slices.Clone(sk.Files)}
	slices.SortFunc(it.files, func(a, b skill.File) int { return cmp.Compare(a.Path, b.Path) })
	it.entry = &entry{
		Server: sk.Server, Tools: append([]string{}, sk.Tools...), SourceHash: sk.SourceHash,
		Files: map[string]string{},
	}
	former := it.prev
	if former == nil && formerName != "" {
		former = d.skills[formerName]
		d.renamed[formerName] = true
	} else {
		formerName = sk.Name
	}
	if former != nil && former.SourceHash != sk.SourceHash {
		d.report.Changed = append(d.report.Changed, sk.Name)
	}
	description := sk.Description
	for i, f := range it.files {
		if f.Path != skillFile {
			continue
		}
		if edited, ok := d.edited(former, formerName, f.Content, description); ok {
			content, err := skill.SetFrontmatterDescription(f.Content, edited)
			if err != nil {
				d.warn("the edited description of %s can't be kept: %s", d.out.show(path.Join(sk.Name, skillFile)),
					errkind.Message(err))
				continue
			}
			it.files[i].Content, it.entry.DescriptionEdited, description = content, true, edited
		}
	}
	it.entry.WrittenDescription = sum([]byte(description))
	for _, f := range it.files {
		it.entry.Files[f.Path] = sum(f.Content)
	}
	return it
}

// edited returns the edited description of a skill on disk, in its folder or in
// a copy of it. The skill has the entry former, if any, and the name of then;
// rendered is the file that would be written with the given description.
func (d *differ) edited(former *entry, name string, rendered []byte, description string) (string, bool) {
	if d.o.Force {
		return "", false
	}
	texts := [][]byte{d.out.nodes[name].content(skillFile)}
	for _, f := range d.links {
		if former != nil && former.Copied && former.linked(f.key) {
			texts = append(texts, f.nodes[name].content(skillFile))
		}
	}
	changed := func(text []byte) bool { return former != nil && sum(text) != former.Files[skillFile] }
	// A description that the user has set back in one of the texts is not edited any more,
	// although the others have it.
	slices.SortStableFunc(texts, func(a, b []byte) int {
		switch {
		case changed(a) == changed(b):
			return 0
		case changed(a):
			return -1
		}
		return 1
	})
	for _, text := range texts {
		if text == nil {
			continue
		}
		found, shortened, err := skill.FrontmatterDescription(text)
		changed := changed(text)
		if shortened && changed {
			d.warn("the description in %s has more than 1,024 characters, and agents accept no more: its end was left out",
				d.out.show(path.Join(name, skillFile)))
		}
		switch {
		case err != nil && changed:
			d.warn("%s was changed so that its description can't be read, and is written again: %s",
				d.out.show(path.Join(name, skillFile)), errkind.Message(err))
		case err == nil && found == description && changed && former.DescriptionEdited:
			return "", false
		case err != nil || found == description:
		case former == nil && skill.SameButDescription(text, rendered):
			// Without an entry, the server may have changed a description in a
			// file that differs in other ways.
			return found, true
		case former != nil && former.DescriptionEdited, changed && sum([]byte(found)) != former.WrittenDescription:
			return found, true
		}
	}
	return "", false
}

// held returns the item of a skill whose server did not answer, or nil if it
// does not exist any more.
func (d *differ) held(name string, e *entry) *item {
	kept := *e
	it := &item{name: name, prev: e, entry: &kept, held: true}
	it.entry.Links, it.entry.Copied = nil, false
	for _, p := range e.paths() {
		if content := d.out.nodes[name].content(p); content != nil {
			it.files = append(it.files, skill.File{Path: p, Content: content})
			continue
		}
		d.warn("%s is missing and its server %q did not answer: it is written again when the server answers",
			d.out.show(path.Join(name, p)), e.Server)
	}
	if it.file(skillFile) == nil {
		return nil
	}
	return it
}

// file returns the content of one of the item's files, or nil.
func (it *item) file(p string) []byte {
	for _, f := range it.files {
		if f.Path == p {
			return f.Content
		}
	}
	return nil
}

// tool returns the tool of an item for messages, or the skill if it has several
// tools.
func (it *item) tool() string {
	if len(it.entry.Tools) == 1 {
		return shown(it.entry.Tools[0])
	}
	return it.name
}

// write compares an item with its folder and plans to write what differs.
// Without a lock nothing is up to date (FR-6.2). It returns false if the place
// is taken by something of the user.
func (d *differ) write(it *item) bool {
	n := d.out.nodes[it.name]
	c := change{in: d.out, name: it.name, tool: it.tool(), entry: it.entry, fresh: n == nil}
	switch {
	case n == nil:
	case !n.dir:
		d.warn("%s is in the way of a skill's folder and was left alone: move it", d.out.show(it.name))
		return false
	case !it.owns(n) || !n.takes(it.entry.paths()):
		d.warn("%s is in the way of a skill of that name and was left alone, because it is not ours: move it",
			d.out.show(it.name))
		return false
	}
	prev := it.prev
	if it.held {
		prev = nil // files that its server dropped are not known yet
	}
	var changed []string
	c.put, c.drop, changed = it.compare(n, prev, (d.o.Force || d.lock == nil) && !it.held)
	for _, p := range changed {
		d.warn("%s is no longer part of the skill but was changed, so it was left alone",
			d.out.show(path.Join(it.name, p)))
	}
	switch {
	case len(c.put)+len(c.drop) > 0:
		d.report.Written = append(d.report.Written, it.name)
		d.changes = append(d.changes, c)
	case !it.held:
		d.report.Unchanged = append(d.report.Unchanged, it.name)
	}
	return true
}

// owns reports whether a folder with an item's name was made by a sync:
// according to the lock or to its SKILL.md, or because it is empty.
func (it *item) owns(n *node) bool {
	if md := n.content(skillFile); it.prev == nil && md != nil {
		return skill.FrontmatterServer(md) == it.entry.Server
	}
	return it.prev != nil || len(n.files) == 0
}

// compare compares an item with a folder, which may be nil. It returns the files
// to write, all of them or those that differ, and the files of the last sync
// that are no longer part of the skill: those to remove, and those that were
// changed.
func (it *item) compare(n *node, prev *entry, all bool) (put []skill.File, drop, changed []string) {
	for _, f := range it.files {
		if all || !bytes.Equal(n.content(f.Path), f.Content) {
			put = append(put, f)
		}
	}
	for _, p := range prev.paths() {
		content := n.content(p)
		switch _, still := it.entry.Files[p]; {
		case still || content == nil:
		case sum(content) == prev.Files[p]:
			drop = append(drop, p)
		default:
			changed = append(changed, p)
		}
	}
	return put, drop, changed
}

// connect plans the link to an item in a folder of links, or its copy.
func (d *differ) connect(f *folder, it *item) {
	n, prev, path := f.nodes[it.name], d.known[it.name], f.show(it.name)
	c := change{in: f, name: it.name, tool: it.tool(), entry: it.entry}
	switch {
	case n == nil:
		c.link = true
	case n.exact:
	case n.target != "":
		if !n.ours {
			d.warn("the link %s to %s is replaced by one to the skill of that name", path, shown(n.target))
		}
		c.link, c.unlink = true, true
	case !n.isCopy(f.key, prev, it.entry):
		d.warn("%s is in the way of a link and was left alone, because it is not ours: move it", path)
		return
	case !n.takes(append(it.entry.paths(), prev.paths()...)):
		d.warn("%s contains links in place of folders and was left alone: move it", path)
		it.entry.Copied = true
	default:
		it.entry.Copied = true
		c.put, c.drop, _ = it.compare(n, prev, false)
	}
	it.entry.Links = append(it.entry.Links, f.key)
	switch {
	case c.link:
		c.put = it.files
		d.report.Linked = append(d.report.Linked, path)
	case len(c.put)+len(c.drop) > 0:
		d.report.Copied = append(d.report.Copied, path)
	default:
		return
	}
	d.changes = append(d.changes, c)
}

// remove plans the removal of skills that are not wanted any more: their links
// first, and then their folders.
func (d *differ) remove(c Content) {
	gone := map[string]bool{}
	for name, e := range d.known {
		gone[name] = !d.moved && !slices.Contains(c.Failed, e.Server) || slices.Contains(c.Disabled, e.Server)
	}
	// Links that are not in the lock may lead to a skill of the same name that
	// was removed or belongs to a disabled server.
	for _, f := range d.links {
		for name, n := range f.nodes {
			if _, known := gone[name]; known || d.moved || !n.ours || !validName(name) {
				continue
			}
			to := d.out.nodes[name]
			gone[name] = to == nil || slices.Contains(c.Disabled, skill.FrontmatterServer(to.content(skillFile)))
		}
	}
	for _, sk := range c.Skills {
		delete(gone, sk.Name)
	}
	names := slices.Sorted(maps.Keys(gone))
	names = slices.DeleteFunc(names, func(name string) bool { return !gone[name] })
	for _, f := range d.links {
		for _, name := range names {
			d.disconnect(f, name)
		}
	}
	for _, name := range names {
		if d.skills[name] != nil {
			d.removeSkill(name)
		}
	}
}

// disconnect plans the removal of the link or copy of a removed skill.
func (d *differ) disconnect(f *folder, name string) {
	n, prev := f.nodes[name], d.known[name]
	switch {
	case n != nil && n.ours:
		d.changes = append(d.changes, change{in: f, name: name, unlink: true})
	case n.isCopy(f.key, prev, nil):
		if !d.removeFiles(f, name) {
			return
		}
	case n != nil && prev.linked(f.key):
		d.warn("%s is no longer ours and was left alone", f.show(name))
		return
	default:
		return
	}
	d.report.Unlinked = append(d.report.Unlinked, f.show(name))
}

// removeSkill plans the removal of a skill's folder, unless its SKILL.md was
// changed.
func (d *differ) removeSkill(name string) {
	d.report.Removed = append(d.report.Removed, name)
	n, prev := d.out.nodes[name], d.skills[name]
	if n == nil {
		return
	}
	md := n.content(skillFile)
	changed := md != nil && !d.renamed[name] && (prev.DescriptionEdited || sum(md) != prev.Files[skillFile])
	if !n.dir || changed || !n.takes(prev.paths()) {
		d.warn("%s is no longer generated but was changed, so it was left alone: remove it if you don't need it",
			d.out.show(name))
		return
	}
	d.removeFiles(d.out, name)
}

// removeFiles plans the removal of the files of a removed skill, and reports
// whether nothing else is in its folder. It leaves alone what is not an
// unchanged file of the last sync. If the skill continues to exist under another
// name, with the edited description, changed files are removed too.
func (d *differ) removeFiles(f *folder, name string) bool {
	n, prev := f.nodes[name], d.known[name]
	c := change{in: f, name: name}
	for _, p := range prev.paths() {
		content := n.content(p)
		if content != nil && n.takes(prev.paths()) && (d.renamed[name] || sum(content) == prev.Files[p]) {
			c.drop = append(c.drop, p)
		}
	}
	if len(c.drop) > 0 {
		d.changes = append(d.changes, c)
	}
	all := len(c.drop) == len(n.files)
	if !all {
		d.warn("%s contains files that are not ours or were changed, which were left alone", f.show(name))
	}
	return all
}

// hashOf returns the SHA-256 of the concatenated texts of skills, in the order
// of name + "/SKILL.md".
func hashOf(texts map[string][]byte) string {
	names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Compare(a+"/"+skillFile, b+"/"+skillFile)
	})
	h := sha256.New()
	for _, name := range names {
		h.Write(texts[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
