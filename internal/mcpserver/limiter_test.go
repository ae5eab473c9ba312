package mcpserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"knowhow/internal/errkind"
)

// isBusy reports whether err tells the peer to come back later.
func isBusy(err error) bool { return errors.Is(err, errkind.Busy) }

// The number of those who wait is bounded, too.
func TestLimiterWaiters(t *testing.T) {
	l := newLimiter(1, time.Second)
	l.idling, l.queued = 1, 1
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := l.wait(func() error {
		if err := l.acquire(t.Context()); err != nil {
			t.Errorf("acquire() while another waits = %v, want a slot", err)
		}
		if err := l.wait(func() error { return nil }); !isBusy(err) {
			t.Errorf("wait() beyond the bound = %v, want BUSY", err)
		}
		l.release()
		return nil
	})
	l.release()
	if err != nil || l.running != 0 || l.idle != 0 || len(l.queue) != 0 {
		t.Errorf("wait() = %v; afterwards %d run, %d wait, %d queue, want none", err, l.running, l.idle, len(l.queue))
	}
}

// Whatever happens at the same moment, slots are neither lost nor made.
func TestLimiterKeepsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(3, 2*time.Millisecond)
		l.queued = 20
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				// The end of the queue's time and that of the context fall
				// on moments at which slots become free.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4+1)*time.Millisecond)
				defer cancel()
				if l.acquire(ctx) != nil {
					return
				}
				defer l.release()
				time.Sleep(time.Millisecond)
				if i%5 == 0 {
					_ = l.wait(func() error { time.Sleep(3 * time.Millisecond); return nil })
				}
			})
		}
		wg.Wait()
		if l.running != 0 || l.idle != 0 || len(l.queue) != 0 {
			t.Errorf("at the end %d run, %d wait, %d queue, want none", l.running, l.idle, len(l.queue))
		}
	})
}
