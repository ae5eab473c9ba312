package ingest

import (
	"context"
	"fmt"
	"sync"

	"knowhow/internal/document"
)

// A job is a task on its way through the pipeline.
type job struct {
	task
	result reading
	done   chan struct{} // closed when result is set
}

// readAndApply reads the files of todo with several workers and applies what
// comes of them in order, then the removals.
func (s *syncing) readAndApply(ctx context.Context, t tree, todo []task, gone []string) error {
	b := &batch{s: s, progress: Progress{Label: s.src.Label, Total: len(todo)}}
	for _, t := range todo {
		b.progress.TotalBytes += t.stamp.Size
	}
	if len(todo) > 0 {
		b.report()
		if err := s.pipeline(ctx, t, todo, b); err != nil {
			return err
		}
	}
	for _, path := range gone {
		c := document.Change{Delete: &document.Ref{Label: s.src.Label, Path: path}}
		if err := b.add(ctx, c, Result{Removed: 1}); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// pipeline runs the workers and feeds b. It returns when all of them have ended.
func (s *syncing) pipeline(ctx context.Context, t tree, todo []task, b *batch) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	workers := min(s.g.o.Workers, len(todo))
	work := make(chan *job)
	ordered := make(chan *job, 2*workers)
	space := newBudget(s.g.inFlight)
	wg.Go(func() {
		defer close(work)
		defer close(ordered)
		for _, task := range todo {
			j := &job{task: task, done: make(chan struct{})}
			if !space.acquire(ctx, task.stamp.Size) || !send(ctx, ordered, j) || !send(ctx, work, j) {
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			for j := range work {
				if ctx.Err() == nil {
					j.result = s.g.read(ctx, t, s.src, s.base, j.entry)
				}
				close(j.done)
			}
		})
	}
	for j := range ordered {
		select {
		case <-j.done:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.finish(ctx, j); err != nil {
			return err
		}
		space.release(j.stamp.Size)
	}
	return ctx.Err()
}

// send sends j unless ctx is done first.
func send(ctx context.Context, c chan<- *job, j *job) bool {
	select {
	case c <- j:
		return true
	case <-ctx.Done():
		return false
	}
}

// A batch collects changes until they are worth a transaction.
type batch struct {
	s        *syncing
	changes  []document.Change
	counts   []Result // what each change counts for
	chunks   int
	bytes    int
	progress Progress
}

// finish takes in a file that has been read.
func (b *batch) finish(ctx context.Context, j *job) error {
	b.progress.Done++
	b.progress.Bytes += j.stamp.Size
	b.progress.Path = j.path
	if c, n := b.s.finish(j.task, j.result); c != (document.Change{}) {
		return b.add(ctx, c, n)
	}
	if len(b.changes) == 0 {
		b.report()
	}
	return nil
}

// add takes in a change, and what it counts for, and applies the batch when it
// is full.
func (b *batch) add(ctx context.Context, c document.Change, n Result) error {
	chunks, bytes := 1, 0
	if c.Put != nil {
		chunks, bytes = max(len(c.Put.Chunks), 1), len(c.Put.Text)
	}
	b.changes = append(b.changes, c)
	b.counts = append(b.counts, n)
	b.chunks += chunks
	b.bytes += bytes
	if b.chunks < maxBatchChunks && b.bytes < b.s.g.o.BatchBytes {
		return nil
	}
	return b.flush(ctx)
}

// flush applies what has been collected.
func (b *batch) flush(ctx context.Context) error {
	if len(b.changes) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.s.g.o.Sink.Apply(ctx, b.changes); err != nil {
		return fmt.Errorf("storing documents of %q: %w", b.s.src.Label, err)
	}
	for _, n := range b.counts {
		b.s.count(n)
	}
	b.changes, b.counts, b.chunks, b.bytes = nil, nil, 0, 0
	if b.progress.Total > 0 {
		b.report()
	}
	return nil
}

func (b *batch) report() {
	if b.s.g.o.Report != nil {
		b.s.g.o.Report(b.progress)
	}
}

// A budget bounds the bytes that are in the pipeline. Only one goroutine may
// acquire.
type budget struct {
	wake chan struct{}

	mu         sync.Mutex
	free, size int64
}

func newBudget(size int64) *budget {
	return &budget{wake: make(chan struct{}, 1), free: size, size: size}
}

// acquire waits until n bytes are free, or all are for a larger n. It reports
// false when ctx is done first.
func (b *budget) acquire(ctx context.Context, n int64) bool {
	for {
		b.mu.Lock()
		if b.free >= n || b.free == b.size {
			b.free -= n
			b.mu.Unlock()
			return ctx.Err() == nil
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-ctx.Done():
			return false
		}
	}
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	b.free += n
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
