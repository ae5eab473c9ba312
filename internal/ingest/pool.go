package ingest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// slowAfter is how long a file that is being read counts as a worker's. A file
// that takes longer is read to its end beside the others.
const slowAfter = time.Second

// A Pool bounds the work of several Ingesters of one process, so that their
// sources can be synced at the same time. Make one with [NewPool].
type Pool struct {
	workers chan struct{}
	space   *semaphore.Weighted // bytes of files between reading and applying
	size    int64               // of space

	// alone is shared by the files that are being read; a suspect takes all of
	// it. If the process dies then, the suspect is the cause.
	alone *semaphore.Weighted

	mu    sync.Mutex
	walks map[*watch]time.Duration // how long the last walks of each watch took
}

// NewPool returns a Pool that reads so many files at once; 0 or less means
// GOMAXPROCS. A file that takes longer than a second no longer counts, so that a
// few slow files do not hold up the others; each source reads at most twice as
// many files at once.
func NewPool(workers int) *Pool { return newPool(workers, maxInFlight) }

func newPool(workers int, space int64) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return &Pool{
		workers: make(chan struct{}, workers),
		space:   semaphore.NewWeighted(space), size: space,
		alone: semaphore.NewWeighted(math.MaxInt64),
		walks: map[*watch]time.Duration{},
	}
}

// readers returns how many files one source may read at once.
func (p *Pool) readers() int { return 2 * cap(p.workers) }

// do calls f when a worker is free. It does not call f if ctx is done first, and
// returns ctx's error.
func (p *Pool) do(ctx context.Context, f func()) error {
	select {
	case p.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	leave := sync.OnceFunc(func() { <-p.workers })
	defer leave()
	defer time.AfterFunc(slowAfter, leave).Stop()
	return p.share(ctx, 1, f)
}

// doAlone calls f while no other file is read, as do does.
func (p *Pool) doAlone(ctx context.Context, f func()) error {
	return p.share(ctx, math.MaxInt64, f)
}

func (p *Pool) share(ctx context.Context, n int64, f func()) error {
	if err := p.alone.Acquire(ctx, n); err != nil {
		return err
	}
	defer p.alone.Release(n)
	f()
	return nil
}

// acquire waits until n bytes may be read, or all of them for a larger n. It
// returns how many to release.
func (p *Pool) acquire(ctx context.Context, n int64) (int64, error) {
	n = min(n, p.size)
	return n, p.space.Acquire(ctx, n)
}

// addWalks takes in how long the last walks of a watch took, and returns the sum
// over all watches.
func (p *Pool) addWalks(w *watch, took time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.walks[w] = took
	var sum time.Duration
	for _, t := range p.walks {
		sum += t
	}
	return sum
}

// forgetWalks says that a watch has ended.
func (p *Pool) forgetWalks(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.walks, w)
}
