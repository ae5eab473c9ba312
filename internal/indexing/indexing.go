// Package indexing keeps an index up to date with its sources. Several
// processes may share a data folder. Each source is indexed and watched by one
// of the processes that serve it. The progress is shown on the terminal and
// stored in the index. Command serve runs the package in the background.
//
// A process indexes a source while it has the source's lease. So a process that
// serves one source does not prevent another process from indexing its own
// sources, and when a process dies, its sources are taken over by other
// processes that serve them.
package indexing

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// Leases and their times. A process that died is replaced at the latest after
// the sum of both times.
const (
	sourceLease   = "indexing:" // followed by a label
	leaseTTL      = 10 * time.Second
	leaseInterval = 3 * time.Second
)

// stopTime is how long Run waits for work that does not stop at once when its
// context ends, such as a system call on a network folder.
const stopTime = 400 * time.Millisecond

// Options configure an Indexer.
type Options struct {
	Index *index.Index // has the sources, the leases and the progress; required
	Sink  ingest.Sink  // gets the documents; nil means Index

	// Sources returns the sources that this process indexes and watches. It is
	// called repeatedly, because sources may be added and removed. nil means
	// all sources of Index.
	Sources func(ctx context.Context) ([]document.Source, error)

	Dir   string          // the data folder, for the journals of files that are read; "" means no journals
	Lines *terminal.Lines // for a bar, if it is a terminal, and for lines about each source; required
	Log   *slog.Logger    // required
	Once  bool            // sync the sources once, and do not watch them

	Version string       // of the program, for the servers of web sites
	site    site.Options // for tests
}

// An Indexer indexes the sources of a process. Create one with [New]. Its
// methods must not be called concurrently.
type Indexer struct {
	Options
	owner string // of leases
	pool  *ingest.Pool
	hosts site.Hosts
	view  *progressView

	// The fields below are used only by run's goroutine, except the mutex and
	// fields that are safe for concurrent use.

	tasks      map[string]*task // running tasks, by the names of their leases
	ended      chan *task
	quit       chan struct{}       // closed when nothing receives from ended any more
	held       []string            // leases that were renewed last
	unfinished []search.Unfinished // before Prepare
	renewed    time.Time           // time of the last renewal
	synced     map[string]bool     // with Once: labels that are synced
	others     int                 // sources that another process indexes
	reported   map[string]bool     // labels that the user knows to be indexed by another process
	failing    string              // the last failure of a step, as it was logged

	maintaining sync.Mutex // locked by the task that maintains the index
}

// New returns an Indexer. It does not start it.
func New(o Options) *Indexer {
	if o.Sources == nil {
		o.Sources = o.Index.Sources
	}
	if o.Sink == nil {
		o.Sink = o.Index
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // the name only helps people to read the leases
	}
	return &Indexer{
		Options:  o,
		owner:    fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8]),
		pool:     ingest.NewPool(0),
		view:     &progressView{store: o.Index, lines: o.Lines},
		tasks:    map[string]*task{},
		ended:    make(chan *task),
		quit:     make(chan struct{}),
		synced:   map[string]bool{},
		reported: map[string]bool{},
	}
}

// A Process is a process that indexes and watches a source.
type Process struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

// Processes returns the processes that index and watch sources now, by label. The
// processes that only search are not known.
func Processes(ctx context.Context, x *index.Index) (map[string]Process, error) {
	leases, err := x.Leases(ctx)
	if err != nil {
		return nil, err
	}
	processes := map[string]Process{}
	for name, owner := range leases {
		label, ok := strings.CutPrefix(name, sourceLease)
		if p, known := ParseOwner(owner); ok && known {
			processes[label] = p
		}
	}
	return processes, nil
}

// ParseOwner returns the process that the owner of a lease is; see
// [index.Index.Leases]. ok is false if the owner is not a process that indexes.
func ParseOwner(owner string) (p Process, ok bool) {
	parts := strings.Split(owner, "-") // the name of the host may contain a hyphen, too
	n := len(parts)
	if n < 3 {
		return Process{}, false
	}
	pid, err := strconv.Atoi(parts[n-2])
	return Process{Host: strings.Join(parts[:n-2], "-"), PID: pid}, err == nil
}

// prepareTime limits Prepare, because another process may be writing to the
// index.
const prepareTime = 5 * time.Second

// Prepare takes the leases of the sources that no other process indexes, and
// stores that they will be indexed, so that the first search already reports
// it. Run must follow soon. Run does what Prepare could not do within prepareTime.
func (w *Indexer) Prepare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	wanted, err := w.wanted(ctx)
	if err == nil {
		w.held, err = w.Index.Lease(ctx, w.owner, leaseTTL, slices.Collect(maps.Keys(wanted))...)
	}
	if err != nil {
		w.Log.Debug("cannot take the leases yet", "error", err)
		return
	}
	w.renewed = time.Now()
	if w.unfinished, err = w.Index.Unfinished(ctx, nil); err != nil {
		w.Log.Debug("cannot look for sources that are indexed in part", "error", err)
	}
	for _, lease := range w.held {
		w.view.begin(ctx, wanted[lease].src.Label)
	}
}

// Close releases the leases of Prepare, if Run was not called. What was unfinished
// before remains so.
func (w *Indexer) Close(ctx context.Context) {
	if len(w.held) == 0 {
		return
	}
	for _, lease := range w.held {
		label := strings.TrimPrefix(lease, sourceLease)
		w.view.stop(ctx, label, nil)
		for _, u := range w.unfinished {
			if u.Label != label || u.Stop == search.NotBegun {
				continue
			}
			if err := w.Index.SetProgress(ctx, index.Progress{Label: label, Done: u.Done, Total: u.Total,
				Stopped: u.Stop, Message: u.Message}); err != nil {
				w.Log.Debug("cannot store that a source is indexed in part", "label", label, "error", err)
			}
		}
	}
	w.release(ctx)
}

// release releases all leases.
func (w *Indexer) release(ctx context.Context) {
	if err := w.Index.Release(ctx, w.owner, w.held...); err != nil {
		w.Log.Debug("cannot release the leases", "error", err)
	}
	w.held = nil
}

// Run indexes until ctx ends; with o.Once, until this process has synced its
// sources once. Sources that cannot be read are reported and tried again. The
// error is of kind errkind.Corrupt; with o.Once, it is any error that prevented
// an update of the index. Run must be called at most once.
//
// Run returns within a second after ctx ends. It does not wait for work that
// has not stopped by then. The context of that work has ended, so it cannot
// write to the index.
func (w *Indexer) Run(ctx context.Context) error {
	defer close(w.quit)
	return w.run(ctx)
}

// A task is the indexing of a source, under its lease.
type task struct {
	lease  string
	src    document.Source
	run    func(ctx context.Context) error
	cancel context.CancelFunc
	err    error // the error of run, set when the task is sent to ended
}

func (w *Indexer) run(ctx context.Context) error {
	tick := time.NewTicker(leaseInterval)
	defer tick.Stop()
	defer w.stop(ctx)
	for {
		err := w.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		w.logFailure(err)
		if w.Once && (err != nil || w.done()) {
			return err
		}
		w.view.refresh(ctx)
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				wait = false
			case t := <-w.ended:
				delete(w.tasks, t.lease)
				if ctx.Err() != nil {
					return nil
				}
				w.finish(ctx, t)
				if t.err != nil && (w.Once || errors.Is(t.err, errkind.Corrupt)) {
					return t.err
				}
				wait = t.err != nil // a failed task is not tried again at once
			}
		}
	}
}

// step looks up the sources, renews the leases, and starts and cancels tasks so
// that there is one for each lease.
func (w *Indexer) step(ctx context.Context) error {
	wanted, err := w.wanted(ctx)
	names := slices.Collect(maps.Keys(wanted))
	if err != nil { // assume that nothing has changed
		wanted, names = w.tasks, slices.Clone(w.held)
	}
	for lease, t := range w.tasks {
		if next := wanted[lease]; next == nil {
			t.cancel()
			names = append(names, lease) // until it has ended
		} else if !same(next.src, t.src) {
			t.cancel()
		}
	}
	held, leaseErr := w.Index.Lease(ctx, w.owner, leaseTTL, names...)
	if leaseErr == nil {
		w.renewed, w.held = time.Now(), held
	} else if time.Since(w.renewed) < leaseTTL-leaseInterval {
		return errors.Join(err, leaseErr) // the leases last until the next step
	}
	for lease, t := range w.tasks {
		if !slices.Contains(held, lease) {
			t.cancel()
		}
	}
	if err := errors.Join(err, leaseErr); err != nil {
		return err
	}
	w.others = 0
	var news []string
	var begun []*task
	for lease, t := range wanted {
		if w.tasks[lease] != nil {
			continue
		}
		if slices.Contains(held, lease) {
			begun = append(begun, t)
			continue
		}
		w.others++
		if label := t.src.Label; !w.reported[label] {
			w.reported[label] = true
			news = append(news, label)
		}
	}
	// All begin before one can end: otherwise nothing is being indexed in between.
	for _, t := range begun {
		w.view.begin(ctx, t.src.Label)
	}
	for _, t := range begun {
		w.start(ctx, t)
	}
	if len(news) > 0 {
		slices.Sort(news)
		fmt.Fprintf(w.Lines, "another process is indexing %s: this one searches, and takes over when that one ends\n",
			strings.Join(news, ", "))
	}
	return nil
}

// wanted returns the tasks that are needed, by the names of their leases.
func (w *Indexer) wanted(ctx context.Context) (map[string]*task, error) {
	sources, err := w.Sources(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[string]*task{}
	for _, src := range sources {
		if !w.synced[src.Label] {
			t := &task{lease: sourceLease + src.Label, src: src}
			t.run = func(ctx context.Context) error { return w.index(ctx, src) }
			wanted[t.lease] = t
		}
	}
	return wanted, nil
}

// same reports whether two sources have the same documents.
func same(a, b document.Source) bool {
	a.Description = b.Description
	return reflect.DeepEqual(a, b)
}

// start runs a task.
func (w *Indexer) start(ctx context.Context, t *task) {
	ctx, t.cancel = context.WithCancel(ctx)
	w.tasks[t.lease] = t
	go func() {
		defer t.cancel()
		t.err = t.run(ctx)
		select {
		case w.ended <- t:
		case <-w.quit:
		}
	}()
}

// finish records that a task has ended.
func (w *Indexer) finish(ctx context.Context, t *task) {
	w.view.stop(ctx, t.src.Label, notCanceled(t.err))
	switch {
	case t.err == nil && w.Once:
		w.synced[t.src.Label] = true
	case errors.Is(t.err, context.Canceled):
		t.err = nil // already reported by step
	case t.err != nil && !w.Once && !errors.Is(t.err, errkind.Corrupt):
		w.Log.Warn("indexing stopped and will be tried again", "label", t.src.Label, "error", t.err)
	}
	if err := w.Index.Release(ctx, w.owner, t.lease); err != nil && ctx.Err() == nil {
		w.Log.Debug("cannot release a lease", "lease", t.lease, "error", err)
	}
}

// notCanceled returns err, or nil for a task that was canceled: its source was
// removed or changed, or belongs to another process.
func notCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// done reports whether, with Once, all sources are synced.
func (w *Indexer) done() bool { return len(w.tasks) == 0 && w.others == 0 }

// logFailure logs the failure of a step if it is new.
func (w *Indexer) logFailure(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != w.failing && !w.Once {
		w.Log.Warn("cannot look for what to index, will try again", "error", err)
	}
	w.failing = text
}

// stop ends all tasks and releases their leases, also after ctx has ended, so
// that another process does not have to wait until they expire.
func (w *Indexer) stop(ctx context.Context) {
	for _, t := range w.tasks {
		t.cancel()
	}
	for late := time.After(stopTime); len(w.tasks) > 0; {
		select {
		case t := <-w.ended:
			delete(w.tasks, t.lease)
		case <-late:
			clear(w.tasks)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
	defer cancel()
	w.view.interrupted(ctx)
	w.release(ctx)
}

// maintain updates the index to the version of this program. Tasks of other
// processes may do so at the same time, and share the work.
func (w *Indexer) maintain(ctx context.Context) error {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	defer w.view.stop(ctx, "", nil)
	return w.Index.Maintain(ctx, func(done, total int) {
		w.view.report(ctx, ingest.Progress{Done: done, Total: total})
	})
}

// index syncs a source and, unless w.Once is set, watches it.
func (w *Indexer) index(ctx context.Context, src document.Source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.maintain(ctx); err != nil {
		return err
	}
	switch {
	case repository.Is(src.Path):
		return w.follow(ctx, src)
	case site.Is(src.Path):
		return w.crawl(ctx, src)
	}
	o, leftOut, end, err := w.options(ctx, src, "")
	if err != nil {
		return err
	}
	defer end()
	in := ingest.New(o)
	if w.Once {
		res, err := in.Sync(ctx, src)
		leftOut.store(ctx, res, err)
		w.view.finished(ctx, src, res, err)
		if ctx.Err() == nil && !errors.Is(err, errkind.Corrupt) {
			err = nil // it has been reported
		}
		return err
	}
	var corrupt error
	first := true
	synced := func(src document.Source, res *ingest.Result, err error) (reported bool) {
		leftOut.store(ctx, res, err)
		switch {
		case errors.Is(err, errkind.Corrupt):
			corrupt = err
			cancel()
			return true
		case errors.Is(err, errRemoved):
			return true // the next step handles it
		case first:
			first = false
			w.view.finished(ctx, src, res, err)
			return true
		}
		w.view.stop(ctx, src.Label, err) // a sync that failed has not reported its end
		return false
	}
	err = in.Watch(ctx, func(context.Context) ([]document.Source, error) { return []document.Source{src}, nil },
		ingest.WatchOptions{Synced: synced})
	return cmp.Or(corrupt, err)
}

// options returns the options for syncing a source, and the store of what is left
// out. version is that of the source. The caller must call end.
func (w *Indexer) options(ctx context.Context, src document.Source, version string) (
	o ingest.Options, leftOut *leftOutStore, end func(), err error) {
	before, err := w.Index.LeftOut(ctx, src.Label)
	if err != nil {
		return o, nil, nil, err
	}
	leftOut = &leftOutStore{Indexer: w, label: src.Label, version: version,
		outdated: before.Reader != ingest.ReaderVersion || before.Version != version}
	o = ingest.Options{
		Sink:    sourceSink{w.Sink, w.Index, src, leftOut},
		Pool:    w.pool,
		Report:  func(p ingest.Progress) { w.view.report(ctx, p) },
		Log:     w.Log,
		LeftOut: w.leftOut,
	}
	if w.Dir == "" {
		return o, leftOut, func() {}, nil
	}
	j := openJournal(w.Dir, src.Label, w.Log)
	o.Journal = j
	return o, leftOut, j.close, nil
}

// lookedEvery is how often the time of the last look at a source is stored if nothing
// else has changed.
const lookedEvery = time.Minute

// A leftOutStore stores what is left out of a source when it has changed, and the time of
// the look.
type leftOutStore struct {
	*Indexer
	label  string
	stored *index.LeftOut // nil until something was stored

	version string // of the source

	// outdated reports whether another version of package ingest read the files, or
	// whether those of another version of the source were read: their URLs differ.
	outdated bool
}

// leftOut returns what is stored as left out of a source.
func (w *Indexer) leftOut(ctx context.Context, label string) ([]ingest.Skipped, error) {
	left, err := w.Index.LeftOut(ctx, label)
	if err != nil {
		return nil, err
	}
	list := make([]ingest.Skipped, len(left.Paths))
	for i, p := range left.Paths {
		list[i] = ingest.Skipped{Path: p.Path, Reason: ingest.Reason(p.Reason)}
		if p.Message != "" {
			list[i].Err = errors.New(p.Message)
		}
	}
	return list, nil
}

// store stores what a sync left out. A failed sync does not change it.
func (s *leftOutStore) store(ctx context.Context, res *ingest.Result, err error) {
	if err != nil {
		return
	}
	messages := map[string]string{}
	for _, k := range res.Skipped {
		messages[k.Path] = k.Message()
	}
	s.outdated = false
	left := index.LeftOut{Counts: map[string]int{}, Reader: ingest.ReaderVersion, Version: s.version}
	for r, n := range res.LeftOut {
		left.Counts[string(r)] = n
	}
	for _, l := range res.LeftOutPaths {
		left.Paths = append(left.Paths, index.LeftOutPath{Path: l.Path, Reason: string(l.Reason),
			Message: messages[l.Path]})
	}
	now := time.Now()
	if s.stored != nil && now.Sub(s.stored.Time) < lookedEvery {
		if left.Time = s.stored.Time; reflect.DeepEqual(*s.stored, left) {
			return
		}
	}
	left.Time = now.UTC()
	if err := s.Index.SetLeftOut(ctx, s.label, left); err != nil {
		if ctx.Err() == nil {
			s.Log.Warn("cannot store what is left out", "label", s.label, "error", err)
		}
		return
	}
	s.stored = &left
}

// errRemoved reports that a source was removed during a sync.
var errRemoved = fmt.Errorf("the source was removed: %w", errkind.NotFound)

// A sourceSink passes changes on while their source is still remembered:
// another process may remove a source, or assign its label to another folder.
type sourceSink struct {
	ingest.Sink
	index   *index.Index
	src     document.Source
	leftOut *leftOutStore
}

// Stamps returns the stamps of the documents. Those of files that another version of
// package ingest has read match no file, so that the files are read again.
func (s sourceSink) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	stamps, err := s.Sink.Stamps(ctx, label)
	if s.leftOut.outdated {
		for path := range stamps {
			stamps[path] = document.Stamp{}
		}
	}
	return stamps, err
}

// Apply applies changes to the documents of the source.
func (s sourceSink) Apply(ctx context.Context, changes []document.Change) error {
	if err := s.remembered(ctx); err != nil {
		return err
	}
	return s.Sink.Apply(ctx, changes)
}

// Prepare implements [ingest.Preparer].
func (s sourceSink) Prepare(ctx context.Context, changes []document.Change) (func(context.Context) error, error) {
	apply, err := ingest.Prepare(ctx, s.Sink, changes)
	return func(ctx context.Context) error {
		if err := s.remembered(ctx); err != nil {
			return err
		}
		return apply(ctx)
	}, err
}

// remembered returns errRemoved if the source is no longer remembered.
func (s sourceSink) remembered(ctx context.Context) error {
	sources, err := s.index.Sources(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sources, func(o document.Source) bool { return o.Label == s.src.Label && o.Path == s.src.Path }) {
		return errRemoved
	}
	return nil
}
