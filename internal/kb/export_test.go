package kb

import (
	"os"
	"time"
)

// LockFile is lock.
func LockFile(f *os.File) bool { return lock(f) }

// SetIndexTime sets the time limit for indexing a small text.
func (b *Local) SetIndexTime(d time.Duration) { b.indexTime = d }
