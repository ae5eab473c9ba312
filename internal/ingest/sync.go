package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// Sync brings the index up to date with a source: files that are new or have
// another size or modification time are read, documents whose file is gone are
// removed. Files that cannot be read are named in the result and do not stop it.
//
// If the source itself cannot be read, that is an error (of kind NotFound or
// Unavailable) and nothing is removed; the same holds for a folder inside it,
// which is named in the result. A file that was written while it was read, or
// less than two seconds before, is read again by a later Sync, once it rests.
// A file that could not be read, or holds no text, is not opened again by this
// Ingester until its size, time or mode changes.
//
// Sync returns a Result also with an error: what was applied stays. It returns
// ctx's error soon after ctx is done.
func (g *Ingester) Sync(ctx context.Context, src document.Source) (*Result, error) {
	res, _, err := g.sync(ctx, src)
	return res, err
}

// sync is Sync; it also returns how long the walk took.
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
	todo, gone := s.plan(w, stored), w.gone(stored)
	err = s.readAndApply(ctx, t, todo, gone)
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
	file string // name of the only file, for a source that is one
	res  *Result
	old  memory // from the run before
	mem  memory // for the next run
}

// open opens the folder of the source, or that around a single file.
func (s *syncing) open() (tree, func() error, error) {
	info, err := os.Stat(s.src.Path)
	if err != nil {
		return nil, nil, err
	}
	s.base = s.src.Path
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("%s: neither a folder nor a regular file", s.src.Path)
		}
		s.base, s.file = filepath.Split(s.src.Path)
	}
	return s.g.openTree(s.base)
}

// walk lists the files of the source.
func (s *syncing) walk(ctx context.Context, t tree) (*walker, error) {
	if s.file == "" {
		return walk(ctx, t)
	}
	name, info, err := t.Target(s.file)
	if err != nil {
		return nil, err
	}
	w := &walker{odd: map[string]bool{}}
	w.add(newEntry(s.file, name, info))
	return w, nil
}

// A task is a file to read.
type task struct {
	entry
	exists bool // in the index
}

// plan decides which files to read.
func (s *syncing) plan(w *walker, stored map[string]document.Stamp) []task {
	for _, u := range w.unread {
		s.skip(u.Path, seen{outcome: unread, err: u.Err})
	}
	now := time.Now()
	var todo []task
	for _, e := range w.files {
		stamp, exists := stored[e.path]
		m, known := s.old[e.path]
		known = known && m.stamp.Equal(e.stamp) && m.mode == e.mode
		switch {
		case known && m.outcome == unread:
			s.skip(e.path, m)
		case known && m.outcome == noText:
			s.mem[e.path] = m
			s.res.LeftOut++
		case known && m.outcome == unsettled && exists && !settled(e.stamp, now):
			s.mem[e.path] = m
			s.res.Unchanged++
		case exists && stamp.Equal(e.stamp):
			s.res.Unchanged++
		default:
			todo = append(todo, task{e, exists})
		}
	}
	return todo
}

// skip notes a file or folder that could not be read, and logs it unless that
// was known.
func (s *syncing) skip(path string, m seen) {
	if before, ok := s.old[path]; !ok || before.outcome != unread || before.err.Error() != m.err.Error() {
		s.g.o.Log.Warn("could not read a file", "label", s.src.Label, "path", path, "error", m.err)
	}
	s.mem[path] = m
	s.res.skip(path, m.err)
}

// finish tells what came of reading a file: the change to apply, if there is
// one, and what to count once it is applied.
func (s *syncing) finish(t task, r reading) (c document.Change, n Result) {
	m := seen{stamp: r.stamp, mode: t.mode, outcome: unread, err: r.err}
	switch {
	case r.err == nil:
		before, known := s.old[t.path]
		n.Bytes = r.stamp.Size
		switch {
		case !t.exists:
			n.Added = 1
		case known && before.outcome == unsettled && before.hash == r.doc.Hash:
			n.Unchanged = 1 // read again for its stamp's sake
		default:
			n.Changed = 1
		}
		if !r.settled {
			m.outcome, m.hash = unsettled, r.doc.Hash
			s.mem[t.path] = m
		}
		return document.Change{Put: r.doc}, n
	case errors.Is(r.err, fs.ErrNotExist):
		return document.Change{}, n // the next walk will not find it
	case errors.Is(r.err, errNoText) && s.file == "":
		m.outcome = noText
		s.mem[t.path] = m
		s.res.LeftOut++
	case errors.Is(r.err, errNoText):
		m.err = errors.New("it holds no text of a known format")
		s.skip(t.path, m)
	case errors.Is(r.err, errkind.TooLarge):
		s.skip(t.path, m)
	default: // it may be readable again soon: what is indexed stays
		s.skip(t.path, m)
		return document.Change{}, n
	}
	if !t.exists {
		return document.Change{}, n
	}
	n.Removed = 1
	return document.Change{Delete: &document.Ref{Label: s.src.Label, Path: t.path}}, n
}

// count adds what has been applied.
func (s *syncing) count(n Result) {
	s.res.Added += n.Added
	s.res.Changed += n.Changed
	s.res.Removed += n.Removed
	s.res.Unchanged += n.Unchanged
	s.res.Bytes += n.Bytes
}
