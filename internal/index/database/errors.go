package database

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// busy reports whether err means that another process holds a lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// Fault turns an error of SQLite into one with a kind that says what to do. It
// returns errors that already have a kind unchanged.
func (d *DB) Fault(op string, err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return errkind.Disk(op, err) // of another file
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		d.damaged.Store(true)
		return d.corrupt()
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%s: disk full: free space on the disk of %s and try again: %w", op, d.path, errkind.DiskFull)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: the disk of %s fails or is full: check it and try again: %w", op, d.path,
			errkind.Unavailable)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%s: another process is writing to %s; try again: %w", op, d.path, errkind.Busy)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %s cannot be written: allow it or choose another data folder: %w", op, d.path,
			errkind.Denied)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// corrupt returns the error for a damaged index.
func (d *DB) corrupt() error {
	return fmt.Errorf("the index %s is damaged: stop knowhow and copy the file and those beside it "+
		"with the same name and -wal or -shm; "+
		"then restore a backup, or choose another data folder and index the sources there: %w", d.path, errkind.Corrupt)
}
