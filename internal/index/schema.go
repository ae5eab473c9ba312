package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/index/tables"
)

// schemaVersion is the number of the schema below (PRAGMA user_version).
const schemaVersion = 1

// applicationID tells our files from other SQLite files: "KnHw".
const applicationID = 0x4b6e4877

// checkHeader refuses a file that cannot be an SQLite database, before SQLite
// touches it. Where there is none it makes an empty one that only its owner can
// read; SQLite gives the files beside it the same mode.
func (x *Index) checkHeader() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} { // those that SQLite opens
		if err := checkRegular(x.path + suffix); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case errors.Is(err, io.EOF):
		return nil // empty: SQLite makes a database of it
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("opening the index: %w", err)
	case string(head[:n]) != magic:
		return x.foreign()
	}
	return nil
}

// checkRegular refuses what is not a file, such as a named pipe: opening one
// waits for another program.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%s is %s, where knowhow keeps a file: move it away or choose another data folder: %w", path, kind, errkind.Corrupt)
}

// foreign is the error for a file that is not ours.
func (x *Index) foreign() error {
	return fmt.Errorf("%s is no index of knowhow: move it away or choose another data folder: %w", x.path, errkind.Corrupt)
}

// prepare checks what kind of file this is, and makes the tables of a new one.
func (x *Index) prepare(ctx context.Context) error {
	known, err := x.known(ctx, x.w)
	if err != nil {
		return err
	}
	if err := x.useWAL(ctx); err != nil {
		return err
	}
	if _, err := x.w.ExecContext(ctx, `PRAGMA busy_timeout=0`); err != nil || known { // see begin
		return err
	}
	return x.write(ctx, "making the index", func(tx *sql.Tx) error {
		// Another process may have been faster.
		if known, err := x.known(ctx, tx); err != nil || known {
			return err
		}
		for _, s := range []string{tables.Schema, fmt.Sprintf("PRAGMA application_id=%d", applicationID),
			fmt.Sprintf("PRAGMA user_version=%d", schemaVersion)} {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO kv(key, value) VALUES(?, ?), (?, '0')`,
			tables.KeyAnalyzer, strconv.Itoa(analysis.Version), tables.KeyGeneration)
		return err
	})
}

// useWAL switches the file to a write-ahead log, which lasts. Another process
// that does the same makes it fail at once, whatever the timeout.
func (x *Index) useWAL(ctx context.Context) error {
	retry := time.NewTicker(busyStep)
	defer retry.Stop()
	for begin := time.Now(); time.Since(begin) < busyWait; {
		var mode string
		err := x.w.QueryRowContext(ctx, `PRAGMA journal_mode=wal`).Scan(&mode)
		if !busy(err) {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("opening %s: another process holds it, try again: %w", x.path, errkind.Busy)
}

// known reports whether the file is an index that this program can use; false
// means that it is empty.
func (x *Index) known(ctx context.Context, q tables.Querier) (bool, error) {
	var app, version, tables int64
	for _, s := range []struct {
		text string
		to   *int64
	}{{"PRAGMA application_id", &app}, {"PRAGMA user_version", &version}, {"SELECT count(*) FROM sqlite_schema", &tables}} {
		if err := q.QueryRowContext(ctx, s.text).Scan(s.to); err != nil {
			return false, err
		}
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return false, nil
	case app != applicationID:
		return false, x.foreign()
	case version > schemaVersion:
		return false, fmt.Errorf("%s was written by a newer version of knowhow: update knowhow, or move the file away to start anew: %w",
			x.path, errkind.Unsupported)
	case version != schemaVersion:
		return false, x.corrupt()
	}
	return true, nil
}
