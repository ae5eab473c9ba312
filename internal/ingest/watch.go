package ingest

import (
	"context"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// Defaults of [WatchOptions].
const (
	defaultMinInterval = 2 * time.Second
	defaultMaxInterval = 10 * time.Second
)

// walkShare is the ratio of the rest between two walks to the duration of a
// walk. The walks of all watches of a pool count together, so that many watches
// load the machine no more than one.
const walkShare = 10

// WatchOptions configure [Ingester.Watch].
type WatchOptions struct {
	// MinInterval and MaxInterval limit the rest between two checks of the
	// sources. Within these limits, it is ten times the duration of a check of
	// all sources of the Pool. 0 means the defaults.
	MinInterval, MaxInterval time.Duration

	// Synced is called after every sync, also without changes, from Watch's
	// goroutine. It reports whether it has reported err, which is then not
	// logged. It may be nil.
	Synced func(src document.Source, res *Result, err error) (reported bool)
}

// Watch syncs the sources repeatedly, one after the other, until ctx is done,
// and returns ctx's error. It calls sources before every round, so that sources
// may be added and removed. A failed sync is logged when it first fails, and is
// repeated in the next round.
//
// Watch polls, because notifications of operating systems are lost on network
// folders and are limited in number. A tree of 10,000 files is checked every
// two seconds.
func (g *Ingester) Watch(
	ctx context.Context, sources func(ctx context.Context) ([]document.Source, error), o WatchOptions,
) error {
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
	failing map[string]string // last logged error by label; "" is the list of sources
}

// round syncs every source once and returns how long to rest. After a failure
// the rest is long, because a sync that fails at its end has read everything.
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
			w.g.o.Log.Info("indexed changes",
				"label", src.Label, "added", res.Added, "changed", res.Changed, "removed", res.Removed)
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

// log logs a failure if it is new and was not reported, and logs its end.
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
