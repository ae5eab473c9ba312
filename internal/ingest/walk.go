package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ignore"
)

// An entry is a file that a walk found.
type entry struct {
	path  string // identifies the document; valid UTF-8, unique
	url   string // of the document; "" means that of the file
	name  string // as in the file system
	open  string // the name to open: name, or the target of a link
	stamp document.Stamp
	mode  fs.FileMode
	cloud bool // its content is not on this machine, and reading it would download it
}

func newEntry(name, open string, info fs.FileInfo) entry {
	return entry{
		path: documentPath(name), name: name, open: open,
		stamp: stampOf(info), mode: info.Mode(), cloud: inCloud(info),
	}
}

func stampOf(info fs.FileInfo) document.Stamp {
	return document.Stamp{Size: info.Size(), ModTime: info.ModTime()}
}

// A walker lists the files of a tree.
type walker struct {
	tree             tree
	rules            document.Rules
	include, exclude ignore.Patterns // of rules
	files            []entry
	unread           []Skipped       // files and folders (with a slash at the end) that could not be read
	counts           map[Reason]int  // of what is left out
	leftOut          []LeftOut       // the first maxLeftOut of them
	odd              map[string]bool // paths that several files may have
	links            []string        // names
}

// walk lists the files of a tree, sorted by name within each folder. A folder
// that cannot be read is recorded. For the folder of the tree, it is an error.
// above are the ignore files above the tree, or nil.
func walk(ctx context.Context, t tree, rules document.Rules, above *ignores) (*walker, error) {
	w := newWalker(t, rules)
	top, err := t.Folder()
	if err != nil {
		return w, err
	}
	defer top.Close()
	if err := w.list(ctx, listing{folder: top, ignores: above, included: w.include.Empty()}); err != nil {
		return w, err
	}
	return w, w.follow(ctx)
}

func newWalker(t tree, rules document.Rules) *walker {
	return &walker{tree: t, rules: rules, odd: map[string]bool{}, counts: map[Reason]int{},
		include: ignore.Parse(strings.Join(rules.Include, "\n")),
		exclude: ignore.Parse(strings.Join(rules.Exclude, "\n"))}
}

// maxFolderDepth is the maximum number of folders one inside the other. A walk keeps
// the folders above the current one open, because opening each by its path would
// open all folders above it again.
const maxFolderDepth = 500

// A listing is a folder that a walk lists.
type listing struct {
	folder   openFolder
	name     string   // with a slash at the end, or "" for the folder of the tree
	ignores  *ignores // that apply to it
	included bool     // so all its files are
}

// list lists a folder and its subfolders.
func (w *walker) list(ctx context.Context, d listing) error {
	dir := d.name
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := d.folder.ReadDir()
	switch {
	case err != nil && dir == "":
		return err
	case errors.Is(err, fs.ErrNotExist):
		return nil // removed since it was opened
	case err != nil:
		w.note(dir, err)
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if dir != "" {
		if reason := leaveOutFolder(path.Base(dir), entries); reason != "" {
			w.leave(dir, reason)
			return nil
		}
	}
	if !w.rules.NoIgnore {
		d.ignores = w.ignores(dir, entries, d.ignores)
	}
	for _, e := range entries {
		name := dir + e.Name()
		if reason := w.reason(d, e, name); reason != "" {
			if e.IsDir() {
				name += "/"
			}
			w.leave(name, reason)
			continue
		}
		switch {
		case e.IsDir():
			if err := w.enter(ctx, d, e.Name()); err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			w.links = append(w.links, name)
		case e.Type().IsRegular():
			info, err := e.Info()
			if err == nil {
				w.add(newEntry(name, name, info))
			} else if !errors.Is(err, fs.ErrNotExist) {
				w.note(name, err)
			}
		default: // a pipe, a socket or a device
			w.leave(name, NoText)
		}
	}
	return nil
}

// reason returns the reason why an entry of a folder is left out, or "".
func (w *walker) reason(d listing, e fs.DirEntry, name string) Reason {
	if r := leaveOut(e.Name(), e.IsDir()); r != "" {
		return r
	}
	switch {
	case w.exclude.Match(name, e.IsDir()) == ignore.Ignored:
		return Excluded
	case d.ignores.match(name, e.IsDir()):
		return Ignored
	case !e.IsDir() && !d.included && w.include.Match(name, false) != ignore.Ignored:
		return NotIncluded
	}
	return ""
}

// leave records a file or folder that is left out.
func (w *walker) leave(name string, reason Reason) {
	w.counts[reason]++
	if len(w.leftOut) < maxLeftOut {
		w.leftOut = append(w.leftOut, LeftOut{documentPath(name), reason})
	}
}

// enter lists a subfolder of d.
func (w *walker) enter(ctx context.Context, d listing, name string) error {
	d.included = d.included || w.include.Match(d.name+name, true) == ignore.Ignored
	if d.name += name + "/"; strings.Count(d.name, "/") > maxFolderDepth {
		w.note(d.name, fmt.Errorf("below more than %d folders: move it up", maxFolderDepth))
		return nil
	}
	var err error
	switch d.folder, err = d.folder.Folder(name); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errReplaced): // since dir was listed
		return nil
	case err != nil:
		w.note(d.name, err)
		return nil
	}
	defer d.folder.Close()
	return w.list(ctx, d)
}

// follow adds the files to which links lead, unless they are read under another
// name. Links that are not followed are left out.
func (w *walker) follow(ctx context.Context) error {
	if len(w.links) == 0 {
		return nil
	}
	read := make(map[string]bool, len(w.files))
	for _, e := range w.files {
		read[e.open] = true
	}
	for _, name := range w.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		target, info, err := w.tree.Target(name)
		_, reason := leftOutName(target)
		switch {
		case errors.Is(err, errOutside), errors.Is(err, errNowhere):
			w.leave(name, Link)
		case err != nil:
			w.note(name, err)
		case read[target]:
		case !info.Mode().IsRegular(), reason == "": // patterns exclude the file
			w.leave(name, Link)
		default:
			read[target] = true
			w.add(newEntry(name, target, info))
		}
	}
	return nil
}

func (w *walker) add(e entry) {
	if strings.ContainsRune(e.path, utf8.RuneError) {
		if w.odd[e.path] {
			w.note(e.name, errors.New("its name is not UTF-8 and reads like that of another file: rename it"))
			return
		}
		w.odd[e.path] = true
	}
	w.files = append(w.files, e)
}

func (w *walker) note(name string, err error) {
	w.unread = append(w.unread, Skipped{Path: documentPath(name), Err: fmt.Errorf("reading: %w", cause(err))})
}

// sum returns a checksum of the walk's results.
func (w *walker) sum(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	text := func(s string) {
		maphash.WriteComparable(&h, len(s))
		h.WriteString(s)
	}
	for _, e := range w.files {
		text(e.path)
		text(e.url)
		text(e.name)
		text(e.open)
		at := e.stamp.ModTime
		maphash.WriteComparable(&h, [...]int64{e.stamp.Size, at.Unix(), int64(at.Nanosecond()), int64(e.mode)})
	}
	maphash.WriteComparable(&h, len(w.files))
	for _, u := range w.unread {
		text(u.Path)
		text(u.Err.Error())
	}
	maphash.WriteComparable(&h, len(w.unread))
	for _, l := range w.leftOut {
		text(l.Path)
		text(string(l.Reason))
	}
	for _, r := range slices.Sorted(maps.Keys(w.counts)) {
		text(string(r))
		maphash.WriteComparable(&h, w.counts[r])
	}
	return h.Sum64()
}

// compare compares the tree with the stored paths. members are the paths of the
// documents in each file that contains several, by its path. gone are the paths
// that the tree no longer contains, in order; paths in a file or folder that
// could not be read are not included.
func (w *walker) compare(stored map[string]document.Stamp) (members map[string][]string, gone []string) {
	found := w.found()
	stamps := map[string]document.Stamp{}
	for _, e := range w.files {
		stamps[e.path] = e.stamp
	}
	unread := map[string]bool{}
	for _, s := range w.unread {
		unread[s.Path] = true
	}
	members = map[string][]string{}
	for p := range stored {
		if found[p] {
			continue
		}
		switch file := fileAbove(p, func(file string) bool { return found[file] || unread[file] }); {
		case found[file] && !isPart(stored[p], stored[file], stamps[file]):
			gone = append(gone, p)
		case found[file]:
			members[file] = append(members[file], p)
		case file == "" && !unread[p] && !belowAny(p, unread):
			gone = append(gone, p)
		}
	}
	slices.Sort(gone)
	return members, gone
}

// isPart reports whether a document with a path below that of a file can be a part of
// the file: it has the stamp of the file, or none. Pages of a web site can have paths
// below that of another page. file is the stamp that the document of the file has, and
// now that of the file. If the file has changed, all documents are read again anyway.
func isPart(part, file, now document.Stamp) bool {
	return part == document.Stamp{} || part.Equal(now) || !file.Equal(now)
}

// mapPaths gives the files the paths and URLs of their documents, and leaves out those
// that are none.
func (w *walker) mapPaths(to func(name string) (path, url string, ok bool)) {
	kept := w.files[:0]
	for _, e := range w.files {
		var ok bool
		if e.path, e.url, ok = to(e.name); ok {
			kept = append(kept, e)
		}
	}
	w.files = kept
}

// found returns the paths of the files.
func (w *walker) found() map[string]bool {
	found := make(map[string]bool, len(w.files))
	for _, e := range w.files {
		found[e.path] = true
	}
	return found
}

// fileAbove returns the beginning of p, up to one of its slashes, that is a
// file, or "".
func fileAbove(p string, isFile func(string) bool) string {
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && isFile(p[:i]) {
			return p[:i]
		}
	}
	return ""
}

// belowAny reports whether p is inside one of the folders.
func belowAny(p string, folders map[string]bool) bool {
	if len(folders) == 0 {
		return false
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && folders[p[:i+1]] {
			return true
		}
	}
	return false
}
