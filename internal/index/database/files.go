package database

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// checkHeader returns an error if the file cannot be an SQLite database, before
// SQLite opens it. If there is no file, it creates an empty one that only its
// owner can read; SQLite gives the files beside it the same mode.
func (d *DB) checkHeader() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} { // the files that SQLite opens
		if err := checkRegular(d.path + suffix); err != nil {
			return err
		}
	}
	flag := os.O_RDWR | os.O_CREATE
	if d.access != readWrite {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(d.path, flag, 0o600)
	if err != nil {
		return errkind.Disk("opening "+d.path, fmt.Errorf("opening the index: %w", err))
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
		return d.foreign()
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
	return misplaced(path, info, "a file")
}

// CheckFolder returns an error if path exists and is not a folder.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil { // a link to nothing, or to itself
			return misplaced(path, info, "a folder")
		}
		return nil // it is created when it is needed
	}
	if info.IsDir() {
		return nil
	}
	return misplaced(path, info, "a folder")
}

// misplaced returns the error for something that is where want should be.
func misplaced(path string, info fs.FileInfo, want string) error {
	return fmt.Errorf("%s is %s, where knowhow keeps %s: move it away or choose another data folder: %w",
		path, FileKind(info.Mode()), want, errkind.Corrupt)
}

// FileKind returns a name for the kind of a file.
func FileKind(mode fs.FileMode) string {
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
func (d *DB) foreign() error {
	return fmt.Errorf("%s is not an index of knowhow and was left as it is: choose another data folder: %w", d.path,
		errkind.Corrupt)
}
