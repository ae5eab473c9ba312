package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"knowhow/internal/errkind"
)

// checkHeader returns an error if the file cannot be an SQLite database, before
// SQLite opens it. If there is no file, it creates an empty one that only its
// owner can read; SQLite gives the files beside it the same mode.
func (x *Index) checkHeader() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} { // the files that SQLite opens
		if err := checkRegular(x.path + suffix); err != nil {
			return err
		}
	}
	flag := os.O_RDWR | os.O_CREATE
	if x.access != readWrite {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(x.path, flag, 0o600)
	if err != nil {
		return errkind.Disk("opening "+x.path, fmt.Errorf("opening the index: %w", err))
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case errors.Is(err, io.EOF):
		return nil // empty: SQLite creates a database in it
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("opening the index: %w", err)
	case string(head[:n]) != magic:
		return x.foreign()
	}
	return nil
}

// checkRegular returns an error if path exists and is not a regular file.
// Opening a named pipe, for example, waits for another program.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is %s, where knowhow keeps a file: move it away or choose another data folder: %w", path, fileKind(info.Mode()), errkind.Corrupt)
}

// checkFolder returns an error if path exists and is not a folder.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil { // a link to nothing, or to itself
			return fmt.Errorf("%s is %s, where knowhow keeps a folder: move it away or choose another data folder: %w", path, fileKind(info.Mode()), errkind.Corrupt)
		}
		return nil // it is created when it is needed
	}
	if info.IsDir() {
		return nil
	}
	return fmt.Errorf("%s is %s, where knowhow keeps a folder: move it away or choose another data folder: %w", path, fileKind(info.Mode()), errkind.Corrupt)
}

// fileKind returns a name for the kind of a file.
func fileKind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// foreign returns the error for a file that is not an index.
func (x *Index) foreign() error {
	return fmt.Errorf("%s is not an index of knowhow and was left as it is: choose another data folder: %w", x.path, errkind.Corrupt)
}

// useWAL switches the file to a write-ahead log, which is a lasting setting.
func (x *Index) useWAL(ctx context.Context) error {
	var mode string
	return x.w.QueryRowContext(ctx, `PRAGMA journal_mode=wal`).Scan(&mode)
}

// unlocked calls f again while another process has locked the file, for busyWait
// at most.
func (x *Index) unlocked(ctx context.Context, f func() error) error {
	retry := time.NewTicker(busyStep)
	defer retry.Stop()
	for begin := time.Now(); time.Since(begin) < busyWait; {
		if err := f(); !busy(err) {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("opening %s: another process is using it, try again: %w", x.path, errkind.Busy)
}
