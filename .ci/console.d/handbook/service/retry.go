// Package retry repeats requests to the warehouse that failed for a while.
package retry

import (
	"context"
	"time"
)

// Do calls f until it succeeds, at most attempts times, and waits twice as long
// before each further attempt. It returns the last error.
func Do(ctx context.Context, attempts int, f func(context.Context) error) error {
	var err error
	for i, wait := 0, 100*time.Millisecond; i < attempts; i, wait = i+1, wait*2 {
		if err = f(ctx); err == nil {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
