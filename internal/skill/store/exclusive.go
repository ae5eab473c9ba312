package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/gofrs/flock"
)

// lockTimeout is how long a sync waits for another sync with the same base.
const lockTimeout = 10 * time.Second

// exclusive prevents other syncs with the same base until release is called. It
// locks an empty file in the folder for temporary files, whose name depends on
// the base and the user. The file is not in the base, where it would be
// clutter. The lock file of the skills cannot be used, because each sync
// replaces it. Processes with different TMPDIR or of different users do not
// exclude each other. The warning is "" unless the file cannot be locked.
func exclusive(ctx context.Context, base *folder) (release func(), warning string, err error) {
	name := fmt.Sprintf("knowhow-sync-%d-%s.lock", os.Getuid(), sum([]byte(base.real))[:16])
	file := filepath.Join(os.TempDir(), name)
	l := flock.New(file)
	wait, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	_, err = l.TryLockContext(wait, 50*time.Millisecond)
	switch {
	case err == nil:
		return func() { _ = l.Close() }, "", nil
	case ctx.Err() != nil:
		return nil, "", fmt.Errorf("waiting for another sync: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return nil, "", fmt.Errorf("another sync of %s is running: wait for its end: %w", base.path, errkind.Busy)
	}
	warning = fmt.Sprintf("the file %s can't be locked: another sync of this folder at the same time would not be "+
		"noticed", file)
	return func() {}, warning, nil
}
