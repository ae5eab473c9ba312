package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"knowhow/internal/errkind"

	"github.com/gofrs/flock"
)

// patience is how long a sync waits for another one of the same base.
const patience = 10 * time.Second

// exclusive keeps other syncs of the same base out until release is called. The
// right is a lock on an empty file in the folder for temporary files, named
// after the base and the user: in the base it would be litter, and the lock
// file itself is replaced by each sync. Processes with different TMPDIR or of
// different users are not kept apart.
func (s *syncer) exclusive(ctx context.Context) (release func(), err error) {
	name := fmt.Sprintf("knowhow-sync-%d-%s.lock", os.Getuid(), sum([]byte(s.base.real))[:16])
	file := filepath.Join(os.TempDir(), name)
	l := flock.New(file)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = l.TryLockContext(wait, 50*time.Millisecond)
	switch {
	case err == nil:
		return func() { _ = l.Close() }, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("waiting for another sync: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("another sync of %s is running: wait for its end: %w", s.base.path, errkind.Busy)
	}
	s.warn("the file %s can't be locked: another sync of this folder at the same time would not be noticed", file)
	return func() {}, nil
}
