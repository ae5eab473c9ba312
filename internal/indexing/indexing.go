// Package indexing keeps an index true to its sources: of all processes that
// share a data folder one at a time holds the lease, looks at the sources and
// watches them. It shows how far it is on the terminal and in the index.
// Command serve runs it in the background.
package indexing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index"
	"knowhow/internal/ingest"
)

// The indexing lease: of the processes that share a data folder, the one that
// holds it indexes. A process that died is replaced at the latest after both
// times together.
const (
	indexLease    = "indexing"
	leaseTTL      = 10 * time.Second
	leaseInterval = 3 * time.Second
)

// Options say what is indexed and who is told.
type Options struct {
	Index *index.Index // required

	// Sources returns the sources that this process indexes and watches. It is
	// called again and again, because sources come and go. nil means all
	// sources of Index.
	Sources func(ctx context.Context) ([]document.Source, error)

	Out  io.Writer    // gets a bar, if it is a terminal, and a line a source; required
	Log  *slog.Logger // required
	Once bool         // look at the sources once and don't watch
}

// An indexer keeps an index true to its sources while it holds the indexing
// lease, and waits to take over while another process holds it.
type indexer struct {
	index   *index.Index
	sources func(context.Context) ([]document.Source, error)
	view    *progressView
	log     *slog.Logger
	once    bool
}

// Run indexes until ctx ends; with o.Once, until this process has looked at the
// sources. Sources that cannot be read are reported and tried again. The error is
// of kind errkind.Corrupt, or with o.Once whatever kept the index from being brought up to date.
func Run(ctx context.Context, o Options) error {
	if o.Sources == nil {
		o.Sources = o.Index.Sources
	}
	w := &indexer{index: o.Index, sources: o.Sources, view: &progressView{index: o.Index, out: o.Out}, log: o.Log, once: o.Once}
	return w.run(ctx)
}

func (w *indexer) run(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // the name only helps to read the lease
	}
	owner := fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
	tick := time.NewTicker(leaseInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		held, err := w.index.Lease(ctx, indexLease, owner, leaseTTL)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("cannot take the indexing lease", "error", err)
		}
		if held {
			err := w.hold(ctx, owner)
			w.release(ctx, owner)
			if w.once || errors.Is(err, errkind.Corrupt) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				w.log.Warn("indexing stopped and will be tried again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// release gives the lease back, also when ctx has ended, so that another
// process need not wait until it runs out.
func (w *indexer) release(ctx context.Context, owner string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
	defer cancel()
	if err := w.index.Release(ctx, indexLease, owner); err != nil {
		w.log.Debug("cannot release the indexing lease", "error", err)
	}
}

// hold indexes for as long as the lease can be renewed.
func (w *indexer) hold(ctx context.Context, owner string) error {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel()
	renewing.Go(func() {
		tick := time.NewTicker(leaseInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			held, err := w.index.Lease(ctx, indexLease, owner, leaseTTL)
			if ctx.Err() == nil && (err != nil || !held) {
				w.log.Warn("lost the indexing lease", "error", err)
				cancel()
				return
			}
			w.view.refresh(ctx)
		}
	})
	if err := w.index.Maintain(ctx, w.view.maintained); err != nil {
		return err
	}
	in := ingest.New(ingest.Options{Sink: sourceSink{w.index}, Report: w.view.report(ctx), Log: w.log})
	if err := w.syncAll(ctx, in); err != nil || w.once {
		return err
	}
	return in.Watch(ctx, w.sources, ingest.WatchOptions{})
}

// syncAll looks at every source once, for the progress bar and the summary.
func (w *indexer) syncAll(ctx context.Context, in *ingest.Ingester) error {
	sources, err := w.sources(ctx)
	if err != nil {
		return err
	}
	w.view.expect(ctx, len(sources))
	defer w.view.idle(ctx)
	for _, src := range sources {
		res, err := in.Sync(ctx, src)
		w.view.finished(src, res, err)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errkind.Corrupt) {
			return err
		}
	}
	return nil
}

// A sourceSink passes changes on while their source is still remembered:
// another process may forget a source in the middle of its sync.
type sourceSink struct{ *index.Index }

// Apply applies changes, which are all of one label.
func (s sourceSink) Apply(ctx context.Context, changes []document.Change) error {
	sources, err := s.Sources(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		known := func(src document.Source) bool { return c.Put == nil || src.Label == c.Put.Label }
		if !slices.ContainsFunc(sources, known) {
			return fmt.Errorf("source %s was removed: %w", c.Put.Label, errkind.NotFound)
		}
	}
	return s.Index.Apply(ctx, changes)
}
