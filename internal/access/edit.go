package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/atomicfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/filelock"
)

// lockTime is how long Edit waits for another process that edits the file.
const lockTime = 10 * time.Second

// Edit changes the access file at path with change, which gets an empty content if there
// is no file. If change returns an error, nothing is changed. change may be called twice.
//
// Links are followed. The file is replaced in one step, and has mode 0600 then. Members
// keep their order. A damaged file is not changed. Processes that edit the same file wait
// for each other, with a lock on the file path.lock, which stays.
func Edit(ctx context.Context, path string, change func(*Content) error) error {
	real, err := atomicfile.Resolve(path)
	if err != nil {
		return readError(err)
	}
	folder := filepath.Dir(real)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if err := change(&Content{}); err != nil { // without a folder for nothing
			return err
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("making the folder of the access file: %w", err)
		}
	}
	unlock, err := lock(ctx, real)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		c, err = &Content{}, nil
	}
	if err != nil {
		return err
	}
	if err := change(c); err != nil {
		return err
	}
	data, err := c.encode()
	if err != nil {
		return err
	}
	if _, err := parse(path, data); err != nil {
		return err
	}
	if err := replace(ctx, real, data); err != nil {
		return fmt.Errorf("writing the access file: %w", err)
	}
	return nil
}

// replace replaces the file at path. On Windows that fails while a reader has the file
// open, so replace tries again for a while.
func replace(ctx context.Context, path string, data []byte) error {
	return retry(ctx, time.Second, func() (again bool, err error) {
		t, err := atomicfile.Prepare(path, data, 0o600)
		if err == nil {
			err = t.Commit()
		}
		return errors.Is(err, fs.ErrPermission) && runtimeIsWindows, err
	})
}

// lock locks the access file at path against other processes. Without locks in the file
// system, it does nothing.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := atomicfile.Create(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("locking the access file: %w", err)
	}
	err = retry(ctx, lockTime, func() (bool, error) {
		err := filelock.Lock(f)
		if errors.Is(err, filelock.ErrLocked) {
			return true, fmt.Errorf("locking the access file: another process is changing it; try again: %w", errkind.Busy)
		}
		return false, nil
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// retry calls try until it does not ask to be called again, at most for a time.
func retry(ctx context.Context, most time.Duration, try func() (again bool, err error)) error {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(most); ; {
		again, err := try()
		if !again || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
