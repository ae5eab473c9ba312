package ingest

import (
	"context"
	"time"

	"knowhow/internal/document"
)

// Defaults of [WatchOptions].
const (
	defaultMinInterval = 2 * time.Second
	defaultMaxInterval = 10 * time.Second
)

// walkShare is how many times the walks' duration a watch rests between them. The
// walks of all watches of its pool count, so that many watches take no more of the
// machine than one.
const walkShare = 10

// WatchOptions configure [Ingester.Watch].
type WatchOptions struct {
	// MinInterval and MaxInterval bound the rest between two looks at the
	// sources; inside these bounds it is ten times what a look takes at all
	// sources of the Pool. 0 means the defaults.
	MinInterval, MaxInterval time.Duration

	// Synced is called after every sync, also of those that found nothing
	// new, from Watch's goroutine. It returns whether it has reported err, which
	// is then not logged. nil means that nothing is called.
	Synced func(src document.Source, res *Result, err error) (reported bool)
}

// Watch syncs the sources again and again, one after the other, until ctx is
// done, and returns ctx's error. It asks for the sources before every round, so
// that they may come and go. A sync that fails is logged when it first does and
// tried again in the next round.
//
// It polls, because notifications of the operating systems get lost on network
// folders and run out on big ones: a tree of 10,000 files is looked at every
// two seconds.
func (g *Ingester) Watch(ctx context.Context, sources func(ctx context.Context) ([]document.Source, error), o WatchOptions) error {
	if o.MinInterval <= 0 {
		o.MinInterval = defaultMinInterval
	}
	if o.MaxInterval <= 0 {
		o.MaxInterval = defaultMaxInterval
	}
	w := &watch{g: g, sources: sources, o: o, failing: map[string]string{}}
	defer g.o.Pool.forgetWalks(w)
	for {
		timer := time.NewTimer(w.round(ctx))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// A watch is one run of Watch.
type watch struct {
	g       *Ingester
	sources func(ctx context.Context) ([]document.Source, error)
	o       WatchOptions
	failing map[string]string // label -> what was logged; "" is the list of sources
}

// round syncs every source once and returns how long to rest. After a failure
// that is long, because a sync that fails at its end has read everything.
func (w *watch) round(ctx context.Context) time.Duration {
	sources, err := w.sources(ctx)
	if ctx.Err() != nil {
		return 0
	}
	w.log("", err, false)
	if err != nil {
		return w.o.MaxInterval
	}
	rest := w.o.MinInterval
	var walks time.Duration
	labels := map[string]bool{"": true}
	for _, src := range sources {
		res, took, err := w.g.sync(ctx, src)
		if ctx.Err() != nil {
			return 0
		}
		if walks += took; err != nil {
			rest = w.o.MaxInterval
		}
		labels[src.Label] = true
		reported := w.o.Synced != nil && w.o.Synced(src, res, err)
		w.log(src.Label, err, reported)
		if n := res.Added + res.Changed + res.Removed; n > 0 {
			w.g.o.Log.Info("indexed changes", "label", src.Label, "added", res.Added, "changed", res.Changed, "removed", res.Removed)
		}
	}
	w.g.forget(labels)
	for label := range w.failing {
		if !labels[label] {
			delete(w.failing, label)
		}
	}
	return min(max(rest, walkShare*w.g.o.Pool.addWalks(w, walks)), w.o.MaxInterval)
}

// log logs a failure when it is new, unless it has been reported, and its end.
func (w *watch) log(label string, err error, reported bool) {
	before, failing := w.failing[label]
	switch {
	case err != nil && (!failing || before != err.Error()):
		if w.failing[label] = err.Error(); reported {
			return
		}
		w.g.o.Log.Warn("could not look for changes, will try again", "label", label, "error", err)
	case err == nil && failing:
		delete(w.failing, label)
		w.g.o.Log.Info("looking for changes works again", "label", label)
	}
}
