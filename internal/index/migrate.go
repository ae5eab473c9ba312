package index

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
)

// applicationID distinguishes index files from other SQLite files: "KnHw".
const applicationID = 0x4b6e4877

// migrationWait is how long a process waits for another process that migrates.
const migrationWait = 10 * time.Minute

// A migration changes the tables from one version to the next. All migrations
// that a file lacks run in one transaction.
type migration func(ctx context.Context, tx *sql.Tx) error

// migrations lead from an empty file to the current tables. The migration at
// index i makes version i+1, which PRAGMA user_version holds. A released
// migration is never changed; testdata has a file of each version.
var migrations = []migration{
	makeTables,
	statements(`ALTER TABLE sources ADD COLUMN description TEXT NOT NULL DEFAULT ''`),
	statements(tables3),
	statements(tables4),
	statements(tables5),
	statements(tables6),
	statements(tables7),
}

// statements returns a migration that runs SQL statements.
func statements(text string) migration {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}
}

// makeTables creates the tables of version 1 in an empty file.
func makeTables(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, tables1+fmt.Sprintf("PRAGMA application_id=%d", applicationID)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO kv(key, value) VALUES(?, ?), (?, '0')`,
		keyAnalyzer, strconv.Itoa(analysis.Version), keyGeneration)
	return err
}

// prepare checks the kind of the file and runs the migrations in steps that it
// lacks. If several processes open the file, one migrates and the others wait.
func (x *Index) prepare(ctx context.Context, steps []migration) error {
	var version int
	if err := x.unlocked(ctx, func() (err error) {
		version, err = x.fileVersion(ctx, x.w, len(steps))
		return err
	}); err != nil {
		return err
	}
	if x.access != readWrite {
		if x.version = version; version != len(steps) {
			return fmt.Errorf("opening the index: %s is of an older version of knowhow and cannot be written: "+
				"copy the data folder to a place that can be written, and use the copy: %w", x.path, errkind.Unsupported)
		}
		return nil
	}
	if err := x.unlocked(ctx, func() error { return x.useWAL(ctx) }); err != nil {
		return err
	}
	x.version = len(steps)
	if version == x.version {
		return nil
	}
	if err := x.migrate(ctx, steps); err != nil {
		return err
	}
	if version > 0 {
		x.rebuildSoon <- struct{}{} // the channel is empty
	}
	return nil
}

// migrate runs the migrations that the file lacks.
func (x *Index) migrate(ctx context.Context, steps []migration) error {
	const op = "migrating the index"
	tx, err := begin(ctx, x.w, migrationWait)
	if err != nil {
		return x.fault(op, err)
	}
	return x.finish(ctx, tx, op, func(tx *sql.Tx) error {
		// Another process may have migrated meanwhile.
		version, err := x.fileVersion(ctx, tx, len(steps))
		if err != nil {
			return err
		}
		for ; version < len(steps); version++ {
			if err := steps[version](ctx, tx); err != nil {
				return fmt.Errorf("to version %d: %w", version+1, err)
			}
		}
		if _, err := tx.ExecContext(ctx, markRebuild); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version=%d", version))
		return err
	})
}

// fileVersion returns the version of the tables in the file, 0 for an empty
// file. A file of another program gives an error of kind Corrupt, a version
// above newest an error of kind Unsupported.
func (x *Index) fileVersion(ctx context.Context, q querier, newest int) (int, error) {
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
	case app != applicationID:
		return 0, x.foreign()
	case version > newest:
		return 0, x.newer(version, newest)
	case version < 1:
		return 0, x.corrupt()
	}
	return version, nil
}

const versionQuery = "PRAGMA user_version"

// checkVersion returns an error of kind Unsupported if another process has
// migrated the file since it was opened.
func (x *Index) checkVersion(ctx context.Context, q querier) error {
	var version int
	if err := q.QueryRowContext(ctx, versionQuery).Scan(&version); err != nil {
		return err
	}
	if version != x.version {
		return x.newer(version, x.version)
	}
	return nil
}

// newer returns the error for a file of a newer version of the program.
func (x *Index) newer(version, newest int) error {
	return fmt.Errorf("%s was written by a newer version of knowhow (tables of version %d, this program knows %d): "+
		"update knowhow and start it again: %w", x.path, version, newest, errkind.Unsupported)
}
