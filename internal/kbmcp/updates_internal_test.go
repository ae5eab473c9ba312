package kbmcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call waits only for those that change the same document, and until its context ends.
func TestUpdatesLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u Updates
		unlock, err := u.lock(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		other, err := u.lock(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := u.lock(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want that of the context", err)
		}
		time.AfterFunc(time.Minute, unlock)
		again, err := u.lock(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		again()
		if len(u.busy) != 0 {
			t.Errorf("%d documents are locked", len(u.busy))
		}
	})
}
