package kb

import (
	"context"
	"time"
)

// Sweep removes files without a job, as the base does every sweepTime.
func (b *Local) Sweep(ctx context.Context) error { return b.sweep(ctx) }

// SetIndexTime sets the time limit for indexing a small text.
func (b *Local) SetIndexTime(d time.Duration) { b.indexTime = d }
