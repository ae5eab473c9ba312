package index

import (
	"context"
	"time"
)

// The files of segments are mapped. What searches read of them counts as memory of
// the process, although the system can take it back at any time. A search with
// wildcards may read all of them, so they are forgotten while searches run if they
// take too much.
const (
	maxResident   = 160 << 20 // bytes of files in the memory of the process
	residentEvery = 20 * time.Millisecond
)

// residentLoop keeps the mapped files that are in memory small while searches run,
// until ctx ends.
func (x *Index) residentLoop(ctx context.Context) {
	tick := time.NewTicker(residentEvery)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-ctx.Done():
			return
		case <-x.searchBegun:
		}
		tick.Reset(residentEvery)
		for busy := true; busy; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			busy = x.evaluating.Load() > 0
			if residentFiles() > x.maxResident {
				x.forgetSegments()
			}
		}
	}
}

// forgetSegments makes all open segments no longer count as memory of this process,
// until they are read again.
func (x *Index) forgetSegments() {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	for _, h := range x.open.handles {
		if h.mapped != nil {
			forget(h.mapped)
		}
	}
}
