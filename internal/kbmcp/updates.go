package kbmcp

import (
	"context"
	"sync"
)

// Updates orders the calls that change a document with several calls of a base, one
// call at a time for each document. The zero value is ready for use. It is safe for
// concurrent use, and has an entry for each call in progress.
type Updates struct {
	mu   sync.Mutex
	busy map[int64]chan struct{} // closed when the call that changes the document has ended
}

// lock waits until no other call changes a document, or ctx ends. If the error is nil,
// the caller must call unlock.
func (u *Updates) lock(ctx context.Context, id int64) (unlock func(), err error) {
	for {
		u.mu.Lock()
		other := u.busy[id]
		if other == nil {
			if u.busy == nil {
				u.busy = map[int64]chan struct{}{}
			}
			ended := make(chan struct{})
			u.busy[id] = ended
			u.mu.Unlock()
			return func() {
				u.mu.Lock()
				delete(u.busy, id)
				u.mu.Unlock()
				close(ended)
			}, nil
		}
		u.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
