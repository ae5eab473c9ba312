package indexing

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// The lease of the process that computes vectors: one on a machine at a time.
const embeddingLease = "embedding"

// Work on vectors is done in small batches with pauses, so that it delays
// nothing else.
const (
	embedBatch    = 16               // chunks
	embedPause    = 4                // the pause after a batch is its time divided by this
	embedInterval = 2 * time.Second  // of looking for chunks without vectors
	embedNews     = 30 * time.Second // between lines about the progress
	embedQuiet    = 5 * time.Second  // shorter work is not reported
	embedEstimate = 5 * time.Second  // between estimates in the index
)

// EmbedOptions configure [Embed].
type EmbedOptions struct {
	Index    *index.Index   // has the lease and the progress of indexing; required
	Store    VectorStore    // has the chunks; nil means Index
	Embedder embed.Embedder // required

	// Labels returns the labels whose documents get vectors. It is called
	// repeatedly.
	Labels func(ctx context.Context) ([]string, error)

	Lines *terminal.Lines // for lines about the progress; required
	Log   *slog.Logger    // required

	interval, quiet time.Duration // embedInterval and embedQuiet, except in tests
}

// A VectorStore stores the vectors of chunks. See [index.Index] for its methods.
type VectorStore interface {
	EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error)
	Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error)
}

// Embed computes the vectors of chunks in the background until ctx ends, while
// no documents with the labels are being indexed. Chunks that have a vector are
// left as they are. If an embedder fails, it is tried again later.
func Embed(ctx context.Context, o EmbedOptions) {
	if o.Store == nil {
		o.Store = o.Index
	}
	w := &embedding{EmbedOptions: o, owner: rand.Text()}
	defer w.release(ctx)
	tick := time.NewTicker(cmp.Or(o.interval, embedInterval))
	defer tick.Stop()
	failing := ""
	for {
		// First, too: a program that starts answers its client meanwhile.
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		text := ""
		if err := w.work(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != failing {
				o.Log.Warn("vectors of documents are missing, will try again; searches use words only for these",
					"error", err)
			}
		}
		failing = text
		w.release(ctx) // another process may have something to do
	}
}

// An embedding is a running Embed.
type embedding struct {
	EmbedOptions
	owner   string
	renewed time.Time // when the lease was renewed last; zero if it is not held
}

// work computes vectors until none are missing, documents are being indexed, or
// another process has the lease.
func (w *embedding) work(ctx context.Context) error {
	var began, reported, estimated time.Time
	stored, done, total := 0, 0, 0
	defer func() {
		if !estimated.IsZero() {
			w.estimate(context.WithoutCancel(ctx), 0)
		}
		if total > 0 && w.Lines.Terminal() {
			w.Lines.Show(terminal.Bar{})
		}
	}()
	for ctx.Err() == nil {
		labels, err := w.Labels(ctx)
		if err != nil {
			return err
		}
		if _, _, busy := w.Index.Indexing(ctx, labels); busy {
			break
		}
		if ok, err := w.lease(ctx); err != nil || !ok {
			return err
		}
		start := time.Now()
		n, err := w.Store.EmbedNext(ctx, w.Embedder, labels, embedBatch)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if stored += n; stored == n {
			began, reported = start, start.Add(cmp.Or(w.quiet, embedQuiet)-embedNews) // the first line comes soon
		}
		done += n
		now := time.Now()
		if now.Sub(reported) >= embedNews {
			reported = now
			// They are counted again, because documents change and other
			// processes store vectors.
			if d, t, err := w.Store.Embedded(ctx, w.Embedder, labels); err == nil {
				done, total = d, t
				if !w.Lines.Terminal() {
					fmt.Fprintf(w.Lines, "searching by meaning: %d of %s are ready (%d %%)%s; searching by words is ready\n",
						done, terminal.Plural(total, "passage"), 100*done/max(total, 1),
						left(timeLeft(now.Sub(began), stored, total-done)))
				}
			}
		}
		if total > 0 && w.Lines.Terminal() {
			// The time since none was done, at the present rate.
			since := now.Add(-timeLeft(now.Sub(began), stored, done))
			w.Lines.Show(terminal.Bar{What: "searching by meaning", Done: done, Total: total, Things: "passages",
				Since: since})
		}
		if total > done && now.Sub(estimated) >= embedEstimate {
			estimated = now
			w.estimate(ctx, timeLeft(now.Sub(began), stored, total-done))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Since(start) / embedPause):
		}
	}
	if took := time.Since(began); ctx.Err() == nil && stored > 0 && took >= cmp.Or(w.quiet, embedQuiet) {
		fmt.Fprintf(w.Lines, "searching by meaning: ready (%s in %s)\n", terminal.Plural(stored, "passage"),
			terminal.Duration(took))
	}
	return nil
}

// timeLeft estimates the time for the remaining chunks.
func timeLeft(took time.Duration, stored, remaining int) time.Duration {
	return time.Duration(float64(took) / float64(stored) * float64(max(remaining, 0)))
}

// left describes the remaining time, or returns "" if it is short.
func left(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return ", about " + terminal.Duration(d) + " left"
}

// estimate stores the remaining time in the index; 0 removes it.
func (w *embedding) estimate(ctx context.Context, left time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_ = w.Index.SetVectorTime(ctx, left) // an error is ignored: the estimate expires
}

// lease acquires the lease, or renews it if that is due. It reports whether the
// process has it.
func (w *embedding) lease(ctx context.Context) (bool, error) {
	if time.Since(w.renewed) < leaseInterval {
		return true, nil
	}
	held, err := w.Index.Lease(ctx, w.owner, leaseTTL, embeddingLease)
	if err != nil || len(held) == 0 {
		return false, err
	}
	w.renewed = time.Now()
	return true, nil
}

// release releases the lease, also after ctx has ended.
func (w *embedding) release(ctx context.Context) {
	if w.renewed.IsZero() {
		return
	}
	w.renewed = time.Time{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
	defer cancel()
	if err := w.Index.Release(ctx, w.owner, embeddingLease); err != nil {
		w.Log.Debug("cannot release the lease of embedding", "error", err)
	}
}
