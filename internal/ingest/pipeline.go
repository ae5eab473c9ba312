package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// readAndApply reads the files of todo and applies the results, then the
// removals. Suspects are read last, one at a time, so that everything else is
// in the index if one of them ends the process.
func (s *syncing) readAndApply(ctx context.Context, t tree, todo []task, gone []string) error {
	b := &batch{s: s, release: func(int64) {}}
	b.progress = Progress{Label: s.src.Label, Total: len(todo), Unchanged: s.res.Unchanged}
	defer b.wait() // after an error, for changes that are still being applied
	var harmless, suspects []task
	for _, k := range todo {
		b.progress.TotalBytes += k.stamp.Size
		if k.past.Deaths == 0 {
			harmless = append(harmless, k)
		} else {
			k.alone = true
			suspects = append(suspects, k)
		}
	}
	if len(todo) > 0 {
		b.report(b.progress)
		if err := s.pipeline(ctx, t, harmless, b); err != nil {
			return err
		}
	}
	for _, c := range s.remove(gone) {
		if err := b.add(ctx, c); err != nil {
			return err
		}
	}
	for _, k := range suspects {
		if err := b.finishAll(ctx); err != nil {
			return err
		}
		s.g.o.Log.Warn("knowhow ended while it was reading this file: it is read after all others, "+
			"and left out if that happens again",
			"label", s.src.Label, "path", k.path)
		var r reading
		if err := s.g.o.Pool.doAlone(ctx, func() { r = s.read(ctx, t, k) }); err != nil {
			return err
		}
		if err := b.finish(ctx, k, r); err != nil {
			return err
		}
	}
	return b.finishAll(ctx)
}

// pipeline reads files with several workers and passes the results to b in the
// order in which they are ready. Reading continues while b applies changes. Files
// that unpack to many bytes are read at the end, one at a time. It returns when all
// workers have ended.
func (s *syncing) pipeline(ctx context.Context, t tree, todo []task, b *batch) error {
	large, err := s.readAll(ctx, t, todo, b)
	if err != nil || len(large) == 0 {
		return err
	}
	if err := b.finishAll(ctx); err != nil {
		return err
	}
	_, err = s.readAll(ctx, t, large, b)
	return err
}

// readAll is pipeline without the files that unpack to many bytes, which it returns.
func (s *syncing) readAll(ctx context.Context, t tree, todo []task, b *batch) (large []task, err error) {
	type result struct {
		task
		reading
		space int64
	}
	pool := s.g.o.Pool
	readCtx, cancel := context.WithCancel(ctx)
	var held atomic.Int64 // bytes acquired from pool.space
	b.release = func(n int64) {
		held.Add(-n)
		pool.space.Release(n)
	}
	defer func() {
		b.release = func(int64) {}
		pool.space.Release(held.Load())
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	work, results := make(chan result), make(chan result)
	wg.Go(func() {
		defer close(work)
		for _, k := range todo {
			size := k.stamp.Size
			if k.alone {
				size = pool.size
			}
			n, err := pool.acquire(readCtx, size)
			if err != nil {
				return
			}
			held.Add(n)
			select {
			case work <- result{task: k, space: n}:
			case <-readCtx.Done():
				return
			}
		}
	})
	for range min(pool.readers(), len(todo)) {
		wg.Go(func() {
			for r := range work {
				if pool.do(readCtx, func() { r.reading = s.read(readCtx, t, r.task) }) != nil {
					return
				}
				select {
				case results <- r:
				case <-readCtx.Done():
					return
				}
			}
		})
	}
	// A slow file must not delay files that were read before it.
	tick := time.NewTicker(maxBatchTime)
	defer tick.Stop()
	for done := 0; done < len(todo); {
		select {
		case r := <-results:
			done++
			if !r.alone && errors.Is(r.err, extract.ErrUnpacked) {
				r.task.alone = true
				large = append(large, r.task)
				b.release(r.space)
				continue
			}
			if err := b.finish(ctx, r.task, r.reading); err != nil {
				return nil, err
			}
			if n := len(b.running); n == 0 || len(b.changes) > 0 { // what is collected is small
				b.release(r.space)
			} else {
				b.running[n-1].space += r.space
			}
		case <-b.applied():
			if err := b.ended(); err != nil {
				return nil, err
			}
		case <-tick.C:
			if err := b.flush(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return large, nil
}

// A batch collects changes until a transaction is worthwhile. While one batch is
// applied, the next one is prepared, and another one is collected.
type batch struct {
	s        *syncing
	changes  []document.Change
	counts   []Result // what each change adds to the counts
	chunks   int
	bytes    int
	large    *stored // see applying
	progress Progress
	running  []*applying       // at most maxRunning, in their order
	release  func(space int64) // releases the space of files whose changes are applied
}

// maxRunning is how many batches are prepared or applied.
const maxRunning = 2

// An applying is a batch that is prepared or applied.
type applying struct {
	counts   []Result
	progress Progress      // when it is done
	space    int64         // of files
	large    *stored       // the file of its only document; nil for several documents, which are small
	limit    time.Duration // for preparing it if large is set
	done     chan struct{} // closed when slow and err are set
	slow     bool          // the limit was exceeded, and nothing is applied
	err      error
}

// apply prepares changes, and makes them after those before them are made.
func (a *applying) apply(ctx context.Context, o Options, changes []document.Change, before *applying) {
	defer close(a.done)
	var apply func(context.Context) error
	err := o.Pool.prepare(ctx, func() (err error) {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if a.large != nil {
			limited, cancel = context.WithTimeout(ctx, a.limit)
		}
		defer cancel()
		apply, err = Prepare(limited, o.Sink, changes)
		return err
	})
	if before != nil {
		<-before.done
		err = cmp.Or(before.err, err)
	}
	if a.slow = a.large != nil && timedOut(ctx, err); a.slow {
		return
	}
	if err == nil {
		err = apply(ctx)
	}
	a.err = err
}

// indexTime returns the time limit for preparing a document with a text of so
// many bytes.
func (o *Options) indexTime(text int) time.Duration {
	return o.FileTimeout + o.FileTimeout*time.Duration(text)/indexBytes
}

// finish handles a file that has been read.
func (b *batch) finish(ctx context.Context, k task, r reading) error {
	if err := ctx.Err(); err != nil {
		return err // may be r.err
	}
	b.progress.Done++
	b.progress.Bytes += k.stamp.Size
	b.progress.Path = k.path
	changes := b.s.finish(k, r)
	for _, c := range changes {
		if err := b.add(ctx, c); err != nil {
			return err
		}
	}
	if len(b.changes) == 0 && len(b.running) == 0 {
		b.report(b.progress)
	}
	return nil
}

// add adds a change, and begins to apply the batch when it is full.
func (b *batch) add(ctx context.Context, c applied) error {
	chunks, bytes := 1, 0
	if c.Put != nil {
		chunks, bytes = max(len(c.Put.Chunks), 1), len(c.Put.Text)
	}
	// A large file is alone, because it may take too long. flush may add removals.
	for bytes >= b.s.g.o.BatchBytes && len(b.changes) > 0 {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	if c.file != nil && c.file.slow {
		return nil
	}
	if bytes >= b.s.g.o.BatchBytes {
		b.large = c.file
	}
	b.changes = append(b.changes, c.Change)
	b.counts = append(b.counts, c.counts)
	b.chunks += chunks
	b.bytes += bytes
	if b.chunks < maxBatchChunks && b.bytes < b.s.g.o.BatchBytes {
		return nil
	}
	return b.flush(ctx)
}

// flush begins to prepare and apply the collected changes.
func (b *batch) flush(ctx context.Context) error {
	if len(b.changes) == 0 {
		return nil
	}
	changes := b.changes
	a := &applying{counts: b.counts, progress: b.progress, large: b.large,
		limit: b.s.g.o.indexTime(b.bytes), done: make(chan struct{})}
	b.changes, b.counts, b.chunks, b.bytes, b.large = nil, nil, 0, 0, nil
	for len(b.running) >= maxRunning { // what has to be removed after that is collected again
		if err := b.ended(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var before *applying
	if n := len(b.running); n > 0 {
		before = b.running[n-1]
	}
	go a.apply(ctx, b.s.g.o, changes, before)
	b.running = append(b.running, a)
	return nil
}

// finishAll applies all collected changes.
func (b *batch) finishAll(ctx context.Context) error {
	for len(b.changes) > 0 || len(b.running) > 0 {
		if err := b.flush(ctx); err != nil {
			return err
		}
		if err := b.wait(); err != nil {
			return err
		}
	}
	return nil
}

// applied returns a channel that is closed when ended does not have to wait, nil
// if nothing is running.
func (b *batch) applied() <-chan struct{} {
	if len(b.running) == 0 {
		return nil
	}
	return b.running[0].done
}

// wait waits until nothing is running.
func (b *batch) wait() (err error) {
	for len(b.running) > 0 {
		err = cmp.Or(err, b.ended())
	}
	return err
}

// ended waits for the oldest of what is running, and handles the result.
func (b *batch) ended() error {
	a := b.running[0]
	<-a.done
	b.running = b.running[1:]
	b.release(a.space)
	if a.err != nil {
		return fmt.Errorf("storing documents of %q: %w", b.s.src.Label, a.err)
	}
	if a.slow {
		b.leaveOut(a.large, a.limit)
	} else {
		for _, n := range a.counts {
			b.s.count(n)
		}
	}
	if len(b.changes) == 0 && len(b.running) == 0 { // later files were left out
		a.progress = b.progress
	}
	if a.progress.Total > 0 {
		b.report(a.progress)
	}
	return nil
}

// leaveOut removes the documents of a file that takes longer than limit.
func (b *batch) leaveOut(f *stored, limit time.Duration) {
	f.slow = true
	end := b.s.g.o.Journal.Begin(b.s.ref(f.task), f.stamp)
	end(Past{Slow: limit})
	b.s.skip(f.path, seen{outcome: unread, stamp: f.stamp, mode: f.mode, reason: TooSlow, err: tooSlow(limit)})
	paths := slices.Clone(f.exists)
	for _, d := range f.docs {
		if !slices.Contains(paths, d) {
			paths = append(paths, d)
		}
	}
	for _, c := range b.s.remove(paths) {
		b.changes, b.counts = append(b.changes, c.Change), append(b.counts, c.counts)
	}
}

func (b *batch) report(p Progress) {
	if b.s.g.o.Report != nil {
		b.s.g.o.Report(p)
	}
}
