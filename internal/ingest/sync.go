package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Sync updates the index to the state of a source: files that are new or have
// another size or modification time are read, and documents whose file no
// longer exists are removed. Files that cannot be read are named in the result.
// They do not stop the Sync.
//
// If the source itself cannot be read, Sync returns an error (of kind NotFound
// or Unavailable) and removes nothing. If a folder inside it cannot be read,
// nothing in it is removed, and the result names it. A file that was written
// while it was read, or less than two seconds before, is read again by a later
// Sync, when it is settled. A file that could not be read, or contains no text,
// is not opened again by this Ingester until its size, time or mode changes.
// With a [Journal], a file that exceeds the time limit, or during which
// processes died, is not opened by later Ingesters either.
//
// Files are read by several workers and applied in the order in which they are
// ready. Suspects are read last, see Journal.
//
// With an error, Sync also returns a Result: changes that were applied remain.
// It returns ctx's error soon after ctx is done.
func (g *Ingester) Sync(ctx context.Context, src document.Source) (*Result, error) {
	res, _, err := g.sync(ctx, src)
	return res, err
}

// sync implements Sync. It also returns the duration of the walk.
func (g *Ingester) sync(ctx context.Context, src document.Source) (*Result, time.Duration, error) {
	s := &syncing{g: g, src: src, res: &Result{}, old: g.memory(src.Label), mem: memory{}}
	began := time.Now()
	t, closeTree, err := s.open()
	if err != nil {
		return s.res, 0, sourceError(src, err)
	}
	defer closeTree()
	w, err := s.walk(ctx, t)
	took := time.Since(began)
	if err != nil {
		if ctx.Err() == nil {
			err = sourceError(src, err)
		}
		return s.res, took, err
	}
	now := settledState{src: src, walk: w.sum(g.seed)}
	if now.generation, err = g.o.Sink.Generation(ctx); err != nil {
		return s.res, took, fmt.Errorf("reading the state of the index: %w", err)
	}
	if res, ok := g.settledResult(now); ok {
		return res, took, nil
	}
	stored, err := g.o.Sink.Stamps(ctx, src.Label)
	if err != nil {
		return s.res, took, fmt.Errorf("reading what the index has of %q: %w", src.Label, err)
	}
	before, err := s.leftOutBefore(ctx, w)
	if err != nil {
		return s.res, took, fmt.Errorf("reading what is left out of %q: %w", src.Label, err)
	}
	s.near = &neighbours{files: w.files}
	todo, gone := s.plan(w, stored, before)
	err = s.readAndApply(ctx, t, todo, gone)
	slices.SortFunc(s.res.Skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(s.res.LeftOutPaths, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	g.remember(src.Label, s.mem)
	if err == nil && len(todo) == 0 && len(gone) == 0 {
		g.settle(now, s.res)
	}
	return s.res, took, err
}

func sourceError(src document.Source, err error) error {
	kind := errkind.Unavailable
	if errors.Is(err, fs.ErrNotExist) {
		kind = errkind.NotFound
	}
	return fmt.Errorf("reading source %q: %w: %w", src.Label, err, kind)
}

// A syncing is one run of Sync.
type syncing struct {
	g    *Ingester
	src  document.Source
	base string // absolute path of the tree
	file string // name of the only file, if the source is a file
	res  *Result
	old  memory // of the previous run
	mem  memory // for the next run
	near *neighbours
}

// open opens the folder of the source, or the folder that contains a single
// file.
func (s *syncing) open() (tree, func() error, error) {
	s.base = cmp.Or(s.g.o.Root, s.src.Path)
	info, err := os.Stat(s.base)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("%s: neither a folder nor a regular file", s.base)
		}
		s.base, s.file = filepath.Split(s.base)
	}
	return s.g.openTree(s.base)
}

// walk lists the files of the source.
func (s *syncing) walk(ctx context.Context, t tree) (*walker, error) {
	if s.file == "" {
		var above *ignores
		if !s.src.Rules.NoIgnore && s.g.o.Root == "" {
			above = ignoresAbove(s.base)
		}
		w, err := walk(ctx, t, s.src.Rules, above)
		if err == nil && s.g.o.Map != nil {
			w.mapPaths(s.g.o.Map)
		}
		return w, err
	}
	name, info, err := t.Target(s.file)
	if err != nil {
		return nil, err
	}
	w := newWalker(t, document.Rules{})
	w.add(newEntry(s.file, name, info))
	return w, nil
}

// A task is a file to read.
type task struct {
	entry
	exists []string // paths of its documents in the index
	past   Past
	alone  bool // it takes the space of all files, and may unpack to more than maxUnpacked
}

// ref identifies the document of a task.
func (s *syncing) ref(k task) document.Ref { return document.Ref{Label: s.src.Label, Path: k.path} }

// leftOutBefore returns what an earlier process left out of the files of a walk,
// by path. It is empty if this process has synced the source before.
func (s *syncing) leftOutBefore(ctx context.Context, w *walker) (map[string][]Skipped, error) {
	if s.old != nil || s.g.o.LeftOut == nil {
		return nil, nil
	}
	list, err := s.g.o.LeftOut(ctx, s.src.Label)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	found := w.found()
	before := map[string][]Skipped{}
	for _, l := range list {
		file := fileAbove(l.Path, func(file string) bool { return found[file] })
		if found[l.Path] && (l.Reason == Partly || l.Reason == Illegible || l.Reason == Damaged) {
			file = l.Path
		}
		if file != "" {
			before[file] = append(before[file], l)
		}
	}
	return before, nil
}

// plan determines which files to read and which documents to remove. before is
// what an earlier process left out of files.
func (s *syncing) plan(
	w *walker, stored map[string]document.Stamp, before map[string][]Skipped,
) (todo []task, gone []string) {
	s.res.addLeftOut(w.counts, w.leftOut)
	for _, l := range s.g.o.Missing {
		s.res.leaveOut(l.Path, l.Reason)
	}
	for _, u := range w.unread {
		s.skip(u.Path, seen{outcome: unread, reason: Unreadable, err: u.Err})
	}
	members, gone := w.compare(stored)
	now := time.Now()
	for _, e := range w.files {
		exists := members[e.path]
		if _, ok := stored[e.path]; ok {
			exists = append(exists, e.path)
		}
		// One of the documents has the stamp of the file, see read.
		// An earlier version of the program stored empty files.
		current := e.stamp.Size > 0 &&
			slices.ContainsFunc(exists, func(p string) bool { return stored[p].Equal(e.stamp) })
		m, known := s.old[e.path]
		known = known && m.stamp.Equal(e.stamp) && m.mode == e.mode
		switch {
		case known && m.outcome == unread:
			s.skip(e.path, m)
		case known && m.outcome == unwanted:
			s.mem[e.path] = m
			s.res.leaveOut(e.path, m.reason)
		case known && m.outcome == unsettled && len(exists) > 0 && !settled(e.stamp, now):
			s.mem[e.path] = m
			s.res.Unchanged += len(exists)
			s.leaveOutParts(m.left)
		case current:
			s.res.Unchanged += len(exists)
			if parts := before[e.path]; len(parts) > 0 {
				m, known = seen{outcome: partly, stamp: e.stamp, mode: e.mode, left: newLeftParts(parts)}, true
			}
			if known && m.outcome == partly {
				s.mem[e.path] = m
				s.leaveOutParts(m.left)
			}
		case e.cloud: // without a stamp, so that it is tried again when it has been downloaded
			s.skip(e.path, seen{outcome: unread, reason: Unreadable, err: errCloud})
		default:
			k := task{entry: e, exists: exists}
			k.past = s.g.o.Journal.Past(s.ref(k), e.stamp)
			err := s.banned(k.past)
			if err == nil {
				todo = append(todo, k)
				continue
			}
			s.skip(e.path, seen{outcome: unread, stamp: e.stamp, mode: e.mode, reason: reasonOf(err), err: err})
			gone = append(gone, exists...)
		}
	}
	return todo, gone
}

// banned returns the reason why a file with a past must not be read, or nil.
func (s *syncing) banned(p Past) error {
	switch {
	case p.Deaths >= maxDeaths:
		return crashed(p.Deaths)
	case p.Slow >= s.g.o.FileTimeout:
		return tooSlow(p.Slow)
	}
	return nil
}

// skip records a file or folder that could not be read. It is logged if it is
// new, but not in the first sync of a source, whose result names everything.
func (s *syncing) skip(path string, m seen) {
	before, ok := s.old[path]
	if s.old != nil && (!ok || before.outcome != unread || before.err.Error() != m.err.Error()) {
		s.g.o.Log.Warn("left out a file", "label", s.src.Label, "path", path, "error", errkind.Message(m.err))
	}
	s.mem[path] = m
	s.res.leaveOut(path, m.reason)
	s.res.SkippedTotal++
	if len(s.res.Skipped) < maxSkipped {
		s.res.Skipped = append(s.res.Skipped, Skipped{Path: path, Reason: m.reason, Err: m.err})
	}
}

// logParts logs parts that should be indexed and are left out, unless they were
// left out before.
func (s *syncing) logParts(parts, before []Skipped) {
	for _, p := range parts {
		if p.Err != nil && !slices.ContainsFunc(before, func(b Skipped) bool { return b.Path == p.Path }) {
			s.g.o.Log.Warn("left out a file", "label", s.src.Label, "path", p.Path, "error", errkind.Message(p.Err))
		}
	}
}

// leaveOutParts records what is left out of a file that is indexed.
func (s *syncing) leaveOutParts(l leftParts) {
	paths := make([]LeftOut, len(l.named))
	for i, p := range l.named {
		if paths[i] = (LeftOut{p.Path, p.Reason}); p.Err != nil && len(s.res.Skipped) < maxSkipped {
			s.res.Skipped = append(s.res.Skipped, p)
		}
	}
	s.res.SkippedTotal += l.skipped
	s.res.addLeftOut(l.counts, paths)
}

// An applied is a change to apply, and what to count after applying it.
type applied struct {
	document.Change
	counts Result
	file   *stored // of a Put
}

// A stored is a file whose documents are stored.
type stored struct {
	task
	docs []string // paths of its documents
	slow bool     // storing one of them takes too long: the file is left out
}

// finish handles the result of reading a file. It returns the changes to apply,
// in order.
func (s *syncing) finish(k task, r reading) []applied {
	m := seen{stamp: r.stamp, mode: k.mode, outcome: unread, err: r.err}
	if r.err == nil {
		return s.put(k, r, m)
	}
	m.reason = reasonOf(r.err)
	switch {
	case errors.Is(r.err, fs.ErrNotExist):
		return nil // the next walk handles it
	case s.file == "" && (errors.Is(r.err, errNoText) || errors.Is(r.err, errGenerated) || errors.Is(r.err, errEmpty) ||
		errors.Is(r.err, errPointer)):
		m.outcome = unwanted
		s.mem[k.path] = m
		s.res.leaveOut(k.path, m.reason)
	default:
		s.skip(k.path, m)
	}
	if m.reason == Unreadable || m.reason == Damaged { // it may be readable again soon: keep the documents
		return nil
	}
	return s.remove(k.exists)
}

// put returns the changes that store the documents of a file and remove those
// that it no longer contains.
func (s *syncing) put(k task, r reading, m seen) []applied {
	before, known := s.old[k.path]
	hash := hashOf(r.docs)
	old := map[string]bool{}
	for _, p := range k.exists {
		old[p] = true
	}
	var changes []applied
	file := &stored{task: k}
	file.stamp = r.stamp
	for _, d := range r.docs {
		file.docs = append(file.docs, d.Path)
		var n Result
		switch {
		case !old[d.Path]:
			n.Added = 1
		case known && before.outcome == unsettled && before.hash == hash:
			n.Unchanged = 1 // only its stamp has changed
		default:
			n.Changed = 1
		}
		changes = append(changes, applied{document.Change{Put: d}, n, file})
		delete(old, d.Path)
	}
	last := len(changes) - 1
	changes[last].counts.Bytes = r.stamp.Size
	m.outcome, m.left = partly, newLeftParts(r.left)
	if s.old != nil {
		s.logParts(m.left.named, before.left.named)
	}
	s.leaveOutParts(m.left)
	if !r.settled {
		m.outcome, m.hash = unsettled, hash
	}
	if !r.settled || len(r.left) > 0 {
		s.mem[k.path] = m
	}
	if len(old) == 0 {
		return changes
	}
	// The document with the stamp must be applied last.
	return append(s.remove(slices.Sorted(maps.Keys(old))), changes...)
}

// remove returns the changes that remove documents.
func (s *syncing) remove(paths []string) []applied {
	var changes []applied
	for _, p := range paths {
		c := document.Change{Delete: &document.Ref{Label: s.src.Label, Path: p}}
		changes = append(changes, applied{c, Result{Removed: 1}, nil})
	}
	return changes
}

// hashOf returns a hash of the texts of all documents of a file.
func hashOf(docs []*document.Document) string {
	if len(docs) == 1 {
		return docs[0].Hash
	}
	h := sha256.New()
	for _, d := range docs {
		io.WriteString(h, d.Path+"\x00"+d.Hash+"\x00")
	}
	return string(h.Sum(nil))
}

// count adds what has been applied.
func (s *syncing) count(n Result) {
	s.res.Added += n.Added
	s.res.Changed += n.Changed
	s.res.Removed += n.Removed
	s.res.Unchanged += n.Unchanged
	s.res.Bytes += n.Bytes
}
