package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// The states of a job.
const (
	JobQueued  = "queued"
	JobRunning = "running"
	JobDone    = "done"
	JobFailed  = "failed"
)

// A Job is work in the queue, which is on disk and shared by all processes.
type Job struct {
	ID       int64 // increases from job to job
	Kind     string
	State    string
	Filename string // "" if there is none
	Payload  []byte // nil in lists
	Attempts int    // how often it was claimed and not released
	Document int64  // the number of the document that it stored; 0 if there is none
	Error    string // of a job that failed
	Created  time.Time
	Updated  time.Time // when its state was last changed
}

// Enqueue adds a job. When it returns, the job is on disk.
func (x *Index) Enqueue(ctx context.Context, kind, filename string, payload []byte) (id int64, err error) {
	if kind == "" {
		return 0, fmt.Errorf("a job needs a kind: %w", errkind.Invalid)
	}
	err = x.write(ctx, "adding a job", func(tx *sql.Tx) error {
		now := time.Now().UnixMilli()
		return tx.QueryRowContext(ctx, `INSERT INTO queue(kind, state, payload, attempts, owner, lease, created, updated, error, filename)
			VALUES(?, ?, coalesce(?, x''), 0, '', 0, ?, ?, '', ?) RETURNING id`, kind, JobQueued, payload, now, now, filename).Scan(&id)
	})
	return id, err
}

// nextJob is the oldest job of a kind that has not ended, if nobody works on it.
// A clock that was set back must not extend a lease for ever.
const nextJob = `SELECT id FROM (SELECT id, state, lease FROM queue WHERE kind=?1 AND state IN ('queued', 'running') ORDER BY id LIMIT 1)
	WHERE state='queued' OR lease<=?2 OR lease>?2+3600000`

// ClaimJob starts the oldest job of a kind that has not ended, unless somebody
// works on it, and returns it. The jobs of a kind so run one after another. The
// claim ends after ttl if it is not renewed; then the job can be claimed again.
// If there is nothing to claim, the result is nil.
func (x *Index) ClaimJob(ctx context.Context, kind, owner string, ttl time.Duration) (*Job, error) {
	if owner == "" || ttl <= 0 {
		return nil, fmt.Errorf("a claim needs an owner and a time: %w", errkind.Invalid)
	}
	some := false
	err := x.read(ctx, "looking for a job", func(tx *sql.Tx) error { // does not make writers wait
		var id int64
		err := tx.QueryRowContext(ctx, nextJob, kind, time.Now().UnixMilli()).Scan(&id)
		some = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || !some {
		return nil, err
	}
	var job *Job
	err = x.write(ctx, "claiming a job", func(tx *sql.Tx) error {
		now := time.Now()
		j, err := scanJob(tx.QueryRowContext(ctx, `UPDATE queue SET state='running', owner=?3, lease=?4, attempts=attempts+(owner<>?3), updated=?2
			WHERE id=(`+nextJob+`) RETURNING `+jobColumns+`, payload`, kind, now.UnixMilli(), owner, now.Add(ttl).UnixMilli()).Scan, true)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		job = j
		return err
	})
	return job, err
}

const jobColumns = `id, kind, state, filename, attempts, coalesce(doc, 0), error, created, updated`

// scanJob reads the columns jobColumns, and the payload if there is one.
func scanJob(scan func(...any) error, payload bool) (*Job, error) {
	j := &Job{}
	var created, updated int64
	to := []any{&j.ID, &j.Kind, &j.State, &j.Filename, &j.Attempts, &j.Document, &j.Error, &created, &updated}
	if payload {
		to = append(to, &j.Payload)
	}
	if err := scan(to...); err != nil {
		return nil, err
	}
	j.Created, j.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return j, nil
}

// RenewJob extends a claim. The error is ErrLost if the claim has ended.
func (x *Index) RenewJob(ctx context.Context, id int64, owner string, ttl time.Duration) error {
	return x.write(ctx, "renewing a claim", func(tx *sql.Tx) error {
		return claimed(tx.ExecContext(ctx, `UPDATE queue SET lease=? WHERE id=? AND owner=? AND state='running'`,
			time.Now().Add(ttl).UnixMilli(), id, owner))
	})
}

// ReleaseJob ends a claim: the job is queued again, and the attempt does not
// count. A claim that has ended is ignored.
func (x *Index) ReleaseJob(ctx context.Context, id int64, owner string) error {
	return x.write(ctx, "releasing a job", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE queue SET state='queued', owner='', lease=0, attempts=attempts-1 WHERE id=? AND owner=? AND state='running'`, id, owner)
		return err
	})
}

// FinishJob makes changes and ends a job that the owner has claimed, in one
// transaction. The job is done, and its document is the one with the ID docID.
// Its payload is deleted. The error is ErrLost if the claim has ended.
// Other errors are those of [Index.Apply].
func (x *Index) FinishJob(ctx context.Context, id int64, owner string, changes []document.Change, docID string) error {
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return err
		}
	}
	words, err := x.gather(ctx, changes)
	if err != nil {
		return err
	}
	defer x.dropGathered(words)
	return x.change(ctx, "finishing a job", words, func(p *poster) error {
		if err := p.apply(ctx, changes); err != nil {
			return err
		}
		return claimed(p.hot.ExecContext(ctx, `UPDATE queue SET state='done', owner='', lease=0, payload=x'', updated=?,
			doc=(SELECT id FROM docs WHERE doc_id=?) WHERE id=? AND owner=? AND state='running'`, p.now.UnixMilli(), docID, id, owner))
	})
}

// EndJob ends a job that the owner has claimed and whose changes another store
// has. The job is done, with the number of the document there (0: it no longer
// exists). Its payload is deleted. The error is ErrLost if the claim has ended.
func (x *Index) EndJob(ctx context.Context, id int64, owner string, number int64) error {
	return x.write(ctx, "ending a job", func(tx *sql.Tx) error {
		return claimed(tx.ExecContext(ctx, `UPDATE queue SET state='done', owner='', lease=0, payload=x'', updated=?, doc=nullif(?, 0)
			WHERE id=? AND owner=? AND state='running'`, time.Now().UnixMilli(), number, id, owner))
	})
}

// FailJob ends a job that the owner has claimed with a message. The error is
// ErrLost if the claim has ended.
func (x *Index) FailJob(ctx context.Context, id int64, owner, message string) error {
	return x.write(ctx, "ending a job", func(tx *sql.Tx) error {
		return claimed(tx.ExecContext(ctx, `UPDATE queue SET state='failed', owner='', lease=0, payload=x'', error=?, updated=?
			WHERE id=? AND owner=? AND state='running'`, message, time.Now().UnixMilli(), id, owner))
	})
}

// claimed returns ErrLost if a statement changed no job.
func claimed(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return ErrLost
}

// ErrLost means that a claim on a job has ended: another process may have
// claimed it. It is of kind Conflict.
var ErrLost = fmt.Errorf("another process has taken over the job: %w", errkind.Conflict)

// Job returns a job without its payload. The error is of kind NotFound if there
// is none.
func (x *Index) Job(ctx context.Context, id int64) (*Job, error) {
	var job *Job
	err := x.read(ctx, "reading a job", func(tx *sql.Tx) error {
		var err error
		job, err = scanJob(tx.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM queue WHERE id=?`, id).Scan, false)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("job %d does not exist: %w", id, errkind.NotFound)
		}
		return err
	})
	return job, err
}

// Jobs returns up to limit jobs with a state ("": any), the newest first.
func (x *Index) Jobs(ctx context.Context, state string, limit int) ([]Job, error) {
	var jobs []Job
	err := x.read(ctx, "listing jobs", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			j, err := scanJob(rows.Scan, false)
			if err == nil {
				jobs = append(jobs, *j)
			}
			return err
		}, `SELECT `+jobColumns+` FROM queue WHERE ?1='' OR state=?1 ORDER BY id DESC LIMIT ?2`, state, limit)
	})
	return jobs, err
}

// JobPayloads returns the payloads of the jobs of a kind that have not ended.
func (x *Index) JobPayloads(ctx context.Context, kind string) ([][]byte, error) {
	var out [][]byte
	err := x.read(ctx, "listing jobs", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var payload []byte
			err := rows.Scan(&payload)
			out = append(out, payload)
			return err
		}, `SELECT payload FROM queue WHERE kind=? AND state IN ('queued', 'running')`, kind)
	})
	return out, err
}

// CountJobs returns how many jobs there are by state.
func (x *Index) CountJobs(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := x.read(ctx, "counting jobs", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var state string
			var n int
			err := rows.Scan(&state, &n)
			counts[state] = n
			return err
		}, `SELECT state, count(*) FROM queue GROUP BY state`)
	})
	return counts, err
}

// ForgetJobs deletes the jobs that ended before a time.
func (x *Index) ForgetJobs(ctx context.Context, before time.Time) error {
	return x.write(ctx, "deleting old jobs", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM queue WHERE state IN ('done', 'failed') AND updated<?`, before.UnixMilli())
		return err
	})
}
