package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Schema is the tables of a file.
type Schema struct {
	Application int    // PRAGMA application_id, which distinguishes the file from other SQLite files
	First       int    // the version of the tables that Create makes; older ones are refused
	Create      string // statements that create the tables in an empty file

	// Upgrades change the tables to later versions: the one at index i from version
	// First+i to the next. All that a file lacks run in one transaction. An upgrade
	// that was released is never changed.
	Upgrades []Upgrade
}

// An Upgrade changes the tables from one version to the next.
type Upgrade func(ctx context.Context, tx *sql.Tx) error

// version returns the version of the tables after all upgrades. PRAGMA
// user_version of a file holds it.
func (s *Schema) version() int { return s.First + len(s.Upgrades) }

// ErrOlder is the error for a file of an older version that is opened without being
// upgraded.
var ErrOlder = errors.New("older version")

// An olderError is an error that is ErrOlder.
type olderError struct{ error }

func (e olderError) Is(target error) bool { return target == ErrOlder }
func (e olderError) Unwrap() error        { return e.error }

// upgradeWait is how long a process waits for another process that upgrades the
// file.
const upgradeWait = 10 * time.Minute

// prepareTables checks the kind of the file, and creates or upgrades the tables.
// If several processes open the file, one does it and the others wait.
func (d *DB) prepareTables(ctx context.Context) error {
	var version int
	if err := d.unlocked(ctx, func() (err error) {
		version, err = d.fileVersion(ctx, d.w)
		return err
	}); err != nil {
		return err
	}
	if !d.Writable() {
		if version != d.schema.version() {
			return olderError{fmt.Errorf("opening the index: %s is of an older version of knowhow and cannot be written: "+
				"copy the data folder to a place that can be written, and use the copy: %w",
				d.path, errkind.Unsupported)}
		}
		return nil
	}
	if err := d.unlocked(ctx, func() error { // a log is a lasting setting
		var mode string
		return d.w.QueryRowContext(ctx, `PRAGMA journal_mode=wal`).Scan(&mode)
	}); err != nil {
		return err
	}
	if version == d.schema.version() {
		return nil
	}
	return d.upgrade(ctx)
}

// upgrade creates the tables if there are none, and runs the upgrades that the
// file lacks.
func (d *DB) upgrade(ctx context.Context) error {
	const op = "upgrading the index"
	tx, err := begin(ctx, d.w, upgradeWait)
	if err != nil {
		return d.Fault(op, err)
	}
	return d.finish(ctx, tx, op, func(tx *sql.Tx) error {
		// Another process may have done it meanwhile.
		version, err := d.fileVersion(ctx, tx)
		if err != nil {
			return err
		}
		if version == 0 {
			version = d.schema.First
			if _, err := tx.ExecContext(ctx, d.schema.Create+fmt.Sprintf("PRAGMA application_id=%d",
				d.schema.Application)); err != nil {
				return err
			}
		}
		for ; version < d.schema.version(); version++ {
			if err := d.schema.Upgrades[version-d.schema.First](ctx, tx); err != nil {
				return fmt.Errorf("to version %d: %w", version+1, err)
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version=%d", version))
		return err
	})
}

// fileVersion returns the version of the tables in the file, 0 for an empty
// file. A file of another program gives an error of kind Corrupt, one that this
// program cannot upgrade an error of kind Unsupported.
func (d *DB) fileVersion(ctx context.Context, q Querier) (int, error) {
	// One statement, because another process may create the tables meanwhile.
	const query = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`
	var app, version, tables int
	if err := q.QueryRowContext(ctx, query).Scan(&app, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != d.schema.Application:
		return 0, d.foreign()
	case version > d.schema.version():
		return 0, d.newer(version)
	case version < 1:
		return 0, d.corrupt()
	case version < d.schema.First:
		return 0, fmt.Errorf("%s was written by a version of knowhow from before the first release, "+
			"and was left as it is "+
			"(tables of version %d, this program reads %d): choose another data folder and index the sources there; "+
			"notes and files that were added can be read with that version: %w",
			d.path, version, d.schema.First, errkind.Unsupported)
	}
	return version, nil
}

const versionQuery = "PRAGMA user_version"

// checkVersion returns an error of kind Unsupported if another process has
// upgraded the file since it was opened.
func (d *DB) checkVersion(ctx context.Context, q Querier) error {
	var version int
	if err := q.QueryRowContext(ctx, versionQuery).Scan(&version); err != nil {
		return err
	}
	if version != d.schema.version() {
		return d.newer(version)
	}
	return nil
}

// newer returns the error for a file of a newer version of the program.
func (d *DB) newer(version int) error {
	return fmt.Errorf("%s was written by a newer version of knowhow (tables of version %d, this program knows %d): "+
		"update knowhow and start it again: %w", d.path, version, d.schema.version(), errkind.Unsupported)
}
