package mcpserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// isBusy reports whether err tells the peer to come back later.
func isBusy(err error) bool { return errors.Is(err, errkind.Busy) }

// The number of those who wait is bounded, too.
func TestLimiterWaiters(t *testing.T) {
	s := New(Options{MaxInFlight: 1})
	l := s.limit
	l.idle.most, l.queued.most = 1, 0
	if err := l.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Acquire(t.Context()); !isBusy(err) {
		t.Errorf("Acquire() with a full queue = %v, want BUSY", err)
	}
	k := &call{slot: true}
	err := s.Wait(context.WithValue(t.Context(), callKey{}, k), func() error {
		if err := l.Acquire(t.Context()); err != nil {
			t.Errorf("Acquire() while another waits = %v, want a slot", err)
		}
		if err := s.Wait(t.Context(), func() error { return nil }); !isBusy(err) {
			t.Errorf("Wait() beyond the bound = %v, want BUSY", err)
		}
		l.Release()
		return nil
	})
	if err != nil || k.slot || l.idle.n.Load() != 0 || l.queued.n.Load() != 0 || !l.slots.TryAcquire(1) {
		t.Errorf("Wait() = %v; afterwards the limiter is %+v, want no slot taken", err, l)
	}
}

// Whatever happens at the same moment, slots are neither lost nor made.
func TestLimiterKeepsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(LimiterOptions{InFlight: 3, QueueWait: 2 * time.Millisecond})
		l.queued.most = 20
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				// The end of the queue's time and that of the context fall
				// on moments at which slots become free.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4+1)*time.Millisecond)
				defer cancel()
				if l.Acquire(ctx) != nil {
					return
				}
				defer l.Release()
				time.Sleep(time.Millisecond)
			})
		}
		wg.Wait()
		if l.queued.n.Load() != 0 || !l.slots.TryAcquire(3) {
			t.Errorf("at the end the limiter is %+v, want no slot taken", l)
		}
	})
}
