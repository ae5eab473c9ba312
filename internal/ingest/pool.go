package ingest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// slowAfter is how long a file that is being read occupies a worker. Reading
// continues after that, in addition to the workers.
const slowAfter = time.Second

// A Pool limits the work of several Ingesters in one process, so that their
// sources can be synced concurrently. Create one with [NewPool].
type Pool struct {
	workers chan struct{}
	space   *semaphore.Weighted // bytes of files between reading and applying
	size    int64               // of space

	// alone is shared by the files that are being read; a suspect takes all of
	// it. If the process dies then, the suspect is the cause.
	alone *semaphore.Weighted

	preparing chan struct{} // has a place for each batch whose words are gathered

	mu    sync.Mutex
	walks map[*watch]time.Duration // duration of the last walks of each watch
}

// NewPool returns a Pool that reads up to n files concurrently; 0 or less means
// GOMAXPROCS. A file that takes longer than a second no longer counts, so that
// a few slow files do not delay the others. Each source reads at most twice as
// many files concurrently.
func NewPool(workers int) *Pool { return newPool(workers, maxInFlight) }

func newPool(workers int, space int64) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return &Pool{
		workers: make(chan struct{}, workers),
		space:   semaphore.NewWeighted(space), size: space,
		alone:     semaphore.NewWeighted(math.MaxInt64),
		preparing: make(chan struct{}, maxPreparing),
		walks:     map[*watch]time.Duration{},
	}
}

// readers returns the number of files that one source may read concurrently.
func (p *Pool) readers() int { return 2 * cap(p.workers) }

// do calls f when a worker is free. If ctx is done first, it returns ctx's
// error and does not call f.
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

// doAlone is like do, but calls f while no other file is read.
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

// prepare calls f, which prepares changes, when fewer than maxPreparing others do
// that. It returns f's error, or ctx's.
func (p *Pool) prepare(ctx context.Context, f func() error) error {
	select {
	case p.preparing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.preparing }()
	return f()
}

// acquire waits until n bytes may be read, or all bytes for a larger n. It
// returns the number of bytes to release.
func (p *Pool) acquire(ctx context.Context, n int64) (int64, error) {
	n = min(n, p.size)
	return n, p.space.Acquire(ctx, n)
}

// addWalks records the duration of a watch's last walks, and returns the sum
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

// forgetWalks records that a watch has ended.
func (p *Pool) forgetWalks(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.walks, w)
}
