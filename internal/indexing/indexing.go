// Package indexing keeps an index true to its sources: each source is indexed
// and watched by one of the processes that share a data folder and were asked
// for it. It shows the progress on the terminal and in the index. Command serve
// runs it in the background.
//
// A process indexes a source while it holds the source's lease. So a process
// that was asked for one source never keeps another process from having its own
// sources indexed, and each source of a process that died is taken over by any
// other process that was asked for it.
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
	"strings"
	"sync"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/ingest"
	"knowhow/internal/terminal"
)

// The leases and their times. A process that died is replaced at the latest
// after both times together.
const (
	sourceLease   = "indexing:" // and a label
	leaseTTL      = 10 * time.Second
	leaseInterval = 3 * time.Second
)

// stopTime is how long Run waits for what does not stop at once when its
// context ends, such as a system call on a network folder.
const stopTime = 400 * time.Millisecond

// Options say what is indexed and how that is shown.
type Options struct {
	Index *index.Index // required

	// Sources returns the sources that this process indexes and watches. It is
	// called again and again, because sources come and go. nil means all
	// sources of Index.
	Sources func(ctx context.Context) ([]document.Source, error)

	Dir   string          // the data folder, for the journals of files that are read; "" means that none are kept
	Lines *terminal.Lines // get a bar, if they go to a terminal, and lines for each source; required
	Log   *slog.Logger    // required
	Once  bool            // sync the sources once and do not watch them
}

// An Indexer indexes the sources of a process. Make one with [New]. Its methods
// are called one after the other.
type Indexer struct {
	Options
	owner string // of leases
	pool  *ingest.Pool
	view  *progressView

	// The fields below belong to run's goroutine, but for the mutex and what is
	// safe for concurrent use.

	tasks     map[string]*task // that are running, by the names of their leases
	ended     chan *task
	quit      chan struct{}   // closed when nobody receives from ended any more
	held      []string        // leases, when they were last renewed
	renewed   time.Time       // when that was
	synced    map[string]bool // with Once: labels that are done
	elsewhere int             // sources that another process indexes
	told      map[string]bool // labels that the user knows to be indexed by another process
	failing   string          // the failure of the last step, as it was logged

	maintaining sync.Mutex // held by the task that maintains the index
}

// New returns an Indexer that has not begun.
func New(o Options) *Indexer {
	if o.Sources == nil {
		o.Sources = o.Index.Sources
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // the name only helps to read the leases
	}
	return &Indexer{
		Options: o,
		owner:   fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8]),
		pool:    ingest.NewPool(0),
		view:    &progressView{store: o.Index, lines: o.Lines},
		tasks:   map[string]*task{},
		ended:   make(chan *task),
		quit:    make(chan struct{}),
		synced:  map[string]bool{},
		told:    map[string]bool{},
	}
}

// prepareTime bounds Prepare: another process may be writing to the index.
const prepareTime = time.Second

// Prepare takes the leases of the sources that no other process indexes, and
// stores that they will be indexed, so that the first search already reports it.
// Run follows soon. What Prepare could not do within a second is left to Run.
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
	for _, lease := range w.held {
		w.view.begin(ctx, wanted[lease].src.Label)
	}
}

// Close gives back what Prepare took, if Run was not called.
func (w *Indexer) Close(ctx context.Context) {
	if len(w.held) == 0 {
		return
	}
	for _, lease := range w.held {
		w.view.stop(ctx, strings.TrimPrefix(lease, sourceLease))
	}
	w.release(ctx)
}

// release gives all leases back.
func (w *Indexer) release(ctx context.Context) {
	if err := w.Index.Release(ctx, w.owner, w.held...); err != nil {
		w.Log.Debug("cannot release the leases", "error", err)
	}
	w.held = nil
}

// Run indexes until ctx ends; with o.Once, until this process has synced its
// sources once. Sources that cannot be read are reported and tried again. The
// error is of kind errkind.Corrupt, or with o.Once whatever kept the index from
// being brought up to date. Run is called once.
//
// Run returns within a second after ctx ends. Work that does not stop until then is
// left behind; its context has ended, so that it cannot write to the index.
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
	err    error // that run has returned, once the task is sent to ended
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
				wait = t.err != nil // what has failed is not tried again at once
			}
		}
	}
}

// step looks at the sources, renews the leases, and starts and cancels tasks so
// that they are those of the leases.
func (w *Indexer) step(ctx context.Context) error {
	wanted, err := w.wanted(ctx)
	if err != nil {
		wanted = w.tasks // nothing is known to have changed
	}
	names := slices.Collect(maps.Keys(wanted))
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
		return errors.Join(err, leaseErr) // they last until the next step
	}
	for lease, t := range w.tasks {
		if !slices.Contains(held, lease) {
			t.cancel()
		}
	}
	if err := errors.Join(err, leaseErr); err != nil {
		return err
	}
	w.elsewhere = 0
	var news []string
	for lease, t := range wanted {
		if w.tasks[lease] != nil {
			continue
		}
		if slices.Contains(held, lease) {
			w.start(ctx, t)
			continue
		}
		w.elsewhere++
		if label := t.src.Label; !w.told[label] {
			w.told[label] = true
			news = append(news, label)
		}
	}
	if len(news) > 0 {
		slices.Sort(news)
		fmt.Fprintf(w.Lines, "another process is indexing %s: this one searches meanwhile, and takes over when that one ends\n",
			strings.Join(news, ", "))
	}
	return nil
}

// wanted returns what there is to do, by the names of the leases.
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

// finish takes note that a task has ended.
func (w *Indexer) finish(ctx context.Context, t *task) {
	w.view.stop(ctx, t.src.Label)
	switch {
	case t.err == nil && w.Once:
		w.synced[t.src.Label] = true
	case errors.Is(t.err, context.Canceled):
		t.err = nil // by step
	case t.err != nil && !w.Once && !errors.Is(t.err, errkind.Corrupt):
		w.Log.Warn("indexing stopped and will be tried again", "label", t.src.Label, "error", t.err)
	}
	if err := w.Index.Release(ctx, w.owner, t.lease); err != nil && ctx.Err() == nil {
		w.Log.Debug("cannot release a lease", "lease", t.lease, "error", err)
	}
}

// done reports whether with Once nothing is left to do.
func (w *Indexer) done() bool { return len(w.tasks) == 0 && w.elsewhere == 0 }

// logFailure logs the failure of a step when it is new.
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

// stop ends all tasks and gives their leases back, also when ctx has ended, so that
// another process need not wait until they run out.
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

// maintain brings the index to the version of this program. Tasks of other
// processes may do that at the same time; then they share the work.
func (w *Indexer) maintain(ctx context.Context) error {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	defer w.view.stop(ctx, "")
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
	o := ingest.Options{
		Sink:   sourceSink{w.Index, src},
		Pool:   w.pool,
		Report: func(p ingest.Progress) { w.view.report(ctx, p) },
		Log:    w.Log,
	}
	if w.Dir != "" {
		j := openJournal(w.Dir, src.Label, w.Log)
		defer j.close()
		o.Journal = j
	}
	in := ingest.New(o)
	w.view.begin(ctx, src.Label)
	if w.Once {
		res, err := in.Sync(ctx, src)
		w.view.finished(ctx, src, res, err)
		if ctx.Err() == nil && !errors.Is(err, errkind.Corrupt) {
			err = nil // it has been reported
		}
		return err
	}
	var corrupt error
	first := true
	synced := func(src document.Source, res *ingest.Result, err error) (reported bool) {
		switch {
		case errors.Is(err, errkind.Corrupt):
			corrupt = err
			cancel()
			return true
		case errors.Is(err, errRemoved):
			return true // step will notice
		case first:
			first = false
			w.view.finished(ctx, src, res, err)
			return true
		}
		return false
	}
	err := in.Watch(ctx, func(context.Context) ([]document.Source, error) { return []document.Source{src}, nil },
		ingest.WatchOptions{Synced: synced})
	return cmp.Or(corrupt, err)
}

// errRemoved means that a source was removed in the middle of a sync.
var errRemoved = fmt.Errorf("the source was removed: %w", errkind.NotFound)

// A sourceSink passes changes on while their source is still remembered:
// another process may remove a source, or give its label to another folder.
type sourceSink struct {
	*index.Index
	src document.Source
}

// Apply applies changes to the documents of the source.
func (s sourceSink) Apply(ctx context.Context, changes []document.Change) error {
	sources, err := s.Sources(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sources, func(o document.Source) bool { return o.Label == s.src.Label && o.Path == s.src.Path }) {
		return errRemoved
	}
	return s.Index.Apply(ctx, changes)
}
