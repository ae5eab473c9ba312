package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"knowhow/internal/errkind"
	"knowhow/internal/segment"
)

// Backup writes a consistent copy of the index to a new file. Other
// processes may write meanwhile. The copy is complete in one file: segments in
// files are left out, and Maintain builds them again. Jobs
// that have not ended fail in the copy if they need a file. The error is of kind
// Conflict if the file exists.
func (x *Index) Backup(ctx context.Context, file string) (err error) {
	file, err = filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("writing a backup: %s exists: choose another name: %w", file, errkind.Conflict)
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".knowhow-backup-*")
	if err != nil {
		return fmt.Errorf("writing a backup: %w", err)
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	copied := &Index{path: filepath.Join(dir, FileName), log: x.log}
	db, err := x.connect(1, true)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, copied.path)
	if err = errors.Join(err, db.Close()); err != nil {
		return x.fault("writing a backup", err)
	}
	if err := copied.detach(ctx); err != nil {
		return copied.fault("writing a backup", err)
	}
	if err := cmp.Or(os.Chmod(copied.path, 0o600), syncFile(copied.path)); err != nil {
		return fmt.Errorf("writing a backup: %w", err)
	}
	// Unlike Rename, Link does not replace a file that was made meanwhile.
	if err := os.Link(copied.path, file); errors.Is(err, os.ErrExist) {
		return fmt.Errorf("writing a backup: %s exists: choose another name: %w", file, errkind.Conflict)
	} else if err == nil {
		return nil
	}
	return os.Rename(copied.path, file) // a file system without links
}

// detach removes from a copy what refers to files outside of it.
func (x *Index) detach(ctx context.Context) error {
	db, err := x.connect(1, true)
	if err != nil {
		return err
	}
	for _, text := range []string{
		`DELETE FROM segments WHERE file<>''`,
		markRebuild,
		`DELETE FROM leases`,
		`UPDATE queue SET state='failed', owner='', lease=0, payload=x'', error='the file is not part of the backup: add it again'
			WHERE state IN ('queued', 'running') AND filename<>''`,
		`UPDATE queue SET state='queued', owner='', lease=0, attempts=0 WHERE state='running'`,
		`PRAGMA journal_mode=delete`, // one file
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

// syncFile makes the bytes of a file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// maxProblems is the maximum number of problems that Examine returns.
const maxProblems = 100

// A Problem is something that Examine found.
type Problem struct {
	Text  string // a sentence
	Mends bool   // Maintain corrects it from the stored texts, and nothing is lost
}

// Examine examines every page of the file and every segment. Problems that
// Maintain does not correct come first.
func (x *Index) Examine(ctx context.Context) (problems []Problem, err error) {
	err = x.read(ctx, "checking the index", func(tx *sql.Tx) error {
		problems = nil
		err := collect(ctx, tx, func(rows *sql.Rows) error {
			var text string
			err := rows.Scan(&text)
			if text != "ok" {
				problems = append(problems, Problem{Text: text})
			}
			return err
		}, `PRAGMA integrity_check(100)`)
		if err != nil {
			return err
		}
		err = collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			var want, have int64
			err := rows.Scan(&id, &want, &have)
			problems = append(problems, Problem{Text: fmt.Sprintf("document %d has a text of %d bytes instead of %d", id, have, want)})
			return err
		}, `SELECT d.id, d.text_size, coalesce((SELECT sum(iif(t.size>0, t.size, length(t.body))) FROM texts t WHERE t.id BETWEEN d.id<<20 AND (d.id<<20)+1048575), 0) have
			FROM docs d WHERE d.text_size<>have LIMIT 100`)
		if err != nil {
			return err
		}
		rows, err := segmentRows(ctx, tx, nil)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.format != segment.Version {
				continue // Maintain builds it again
			}
			h, err := x.openSegment(ctx, tx, r)
			if err == nil {
				err = h.verify()
				x.release(h)
			}
			if err != nil {
				problems = append(problems, Problem{fmt.Sprintf("the words of the label %q are damaged", r.label), true})
			}
		}
		rebuild, err := kvValue(ctx, tx, keyRebuild)
		if rebuild != "" {
			problems = append(problems, Problem{"the words of some documents are missing", true})
		}
		return err
	})
	return problems[:min(len(problems), maxProblems)], err
}
