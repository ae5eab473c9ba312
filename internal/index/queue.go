package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// A newJob is a job that a call of Enqueue adds.
type newJob struct {
	kind, filename string
	payload        []byte

	done chan struct{} // closed when id or err is set
	id   int64
	err  error
}

// newJobs are the jobs that wait to be added.
type newJobs struct {
	adding  chan struct{} // has a place for the caller that adds jobs
	mu      sync.Mutex
	waiting []*newJob
}

// take returns the jobs that wait, and removes them.
func (n *newJobs) take() []*newJob {
	n.mu.Lock()
	defer n.mu.Unlock()
	jobs := n.waiting
	n.waiting = nil
	return jobs
}

// put adds jobs to those that wait.
func (n *newJobs) put(jobs ...*newJob) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, jobs...)
}

// remove removes a job. It reports whether the job was waiting.
func (n *newJobs) remove(j *newJob) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.waiting, j)
	if i < 0 {
		return false
	}
	n.waiting = slices.Delete(n.waiting, i, i+1)
	return true
}

// Enqueue adds a job. When it returns, the job is on disk. The jobs of callers
// that wait at the same time are added in one transaction.
func (x *Index) Enqueue(ctx context.Context, kind, filename string, payload []byte) (id int64, err error) {
	if kind == "" {
		return 0, fmt.Errorf("a job needs a kind: %w", errkind.Invalid)
	}
	j := &newJob{kind: kind, filename: filename, payload: payload, done: make(chan struct{})}
	x.jobs.put(j)
	for {
		select {
		case <-j.done:
			return j.id, j.err
		case <-ctx.Done():
			if x.jobs.remove(j) {
				return 0, ctx.Err()
			}
			<-j.done // another caller has added it
			return j.id, j.err
		case x.jobs.adding <- struct{}{}:
			x.addJobs(ctx)
			<-x.jobs.adding
		}
	}
}

// addJobs adds the jobs that wait when the transaction has begun. If ctx ends,
// they still wait.
func (x *Index) addJobs(ctx context.Context) {
	var jobs []*newJob
	err := x.db.WritePrepared(ctx, "adding a job", func(p *preparedTx) error {
		jobs = x.jobs.take()
		now := time.Now().UnixMilli()
		for _, j := range jobs {
			err := p.QueryRowContext(ctx, `INSERT INTO queue(kind, state, payload, attempts, owner, lease, created, updated, error, filename)
				VALUES(?, ?, coalesce(?, x''), 0, '', 0, ?, ?, '', ?) RETURNING id`, j.kind, JobQueued, j.payload, now, now, j.filename).Scan(&j.id)
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		x.jobs.put(jobs...)
		return
	case jobs == nil:
		jobs = x.jobs.take()
	}
	for _, j := range jobs {
		if j.err = err; err != nil {
			j.id = 0
		}
		close(j.done)
	}
}

// nextJob is the oldest job of a kind that has not ended, if nobody works on it.
// A clock that was set back must not extend a lease for ever.
const nextJob = `SELECT id, attempts, size FROM (SELECT id, attempts, length(payload) AS size, state, lease FROM queue WHERE kind=?1 AND state IN ('queued', 'running') ORDER BY id LIMIT 1)
	WHERE state='queued' OR lease<=?2 OR lease>?2+3600000`

// claimBytes is how long the payloads of several jobs that are claimed at once
// may be together.
const claimBytes = 1 << 20

// ClaimJobs starts the oldest job of a kind that has not ended, unless somebody
// works on it, and up to limit-1 jobs that follow it, and returns them in their
// order. The jobs of a kind so run one after another. A job that was claimed
// before is claimed alone, because it may be what ended that process. The claims
// end after ttl if they are not renewed; then the jobs can be claimed again. If
// there is nothing to claim, the result is nil.
func (x *Index) ClaimJobs(ctx context.Context, kind, owner string, ttl time.Duration, limit int) ([]Job, error) {
	if owner == "" || ttl <= 0 || limit < 1 {
		return nil, fmt.Errorf("a claim needs an owner, a time and a limit: %w", errkind.Invalid)
	}
	var first int64 // job
	var attempts, size int
	find := func(q querier) error {
		first = 0
		err := q.QueryRowContext(ctx, nextJob, kind, time.Now().UnixMilli()).Scan(&first, &attempts, &size)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	err := x.read(ctx, "looking for a job", func(tx *sql.Tx) error { return find(x.prepared(tx)) }) // does not make writers wait
	if err != nil || first == 0 {
		return nil, err
	}
	var jobs []Job
	err = x.db.WritePrepared(ctx, "claiming a job", func(p *preparedTx) error {
		jobs = nil
		if err := find(p); err != nil || first == 0 {
			return err
		}
		ids := []int64{first}
		if attempts == 0 && limit > 1 {
			err := collect(ctx, p, func(rows *sql.Rows) error {
				var id int64
				var n int
				err := rows.Scan(&id, &n)
				if size += n; size <= claimBytes {
					ids = append(ids, id)
				}
				return err
			}, `SELECT id, length(payload) FROM queue WHERE kind=? AND state='queued' AND attempts=0 AND id>? ORDER BY id LIMIT ?`, kind, first, limit-1)
			if err != nil {
				return err
			}
		}
		now := time.Now()
		err := collect(ctx, p, func(rows *sql.Rows) error {
			j, err := scanJob(rows.Scan, true)
			if err == nil {
				jobs = append(jobs, *j)
			}
			return err
		}, `UPDATE queue SET state='running', owner=?2, lease=?3, attempts=attempts+(owner<>?2), updated=?1
			WHERE id IN (SELECT value FROM json_each(?4)) RETURNING `+jobColumns+`, payload`,
			now.UnixMilli(), owner, now.Add(ttl).UnixMilli(), jsonList(ids))
		slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
		return err
	})
	return jobs, err
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

// RenewJobs extends claims. The error is ErrLost if one of them has ended.
func (x *Index) RenewJobs(ctx context.Context, owner string, ttl time.Duration, ids ...int64) error {
	return x.write(ctx, "renewing a claim", func(tx *sql.Tx) error {
		until := time.Now().Add(ttl).UnixMilli()
		for _, id := range ids {
			if err := claimed(tx.ExecContext(ctx, `UPDATE queue SET lease=? WHERE id=? AND owner=? AND state='running'`, until, id, owner)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReleaseJobs ends claims: the jobs are queued again, and the attempts do not
// count. Claims that have ended are ignored.
func (x *Index) ReleaseJobs(ctx context.Context, owner string, ids ...int64) error {
	return x.write(ctx, "releasing a job", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE queue SET state='queued', owner='', lease=0, attempts=attempts-1
			WHERE id IN (SELECT value FROM json_each(?)) AND owner=? AND state='running'`, jsonList(ids), owner)
		return err
	})
}

// A FinishedJob is a job that an owner has claimed, and what it changes.
type FinishedJob struct {
	ID         int64
	Changes    []document.Change
	DocumentID string // the ID of its document
}

// FinishJobs makes the changes of jobs that the owner has claimed and ends the
// jobs, in one transaction. The jobs are done, and their payloads are deleted.
// The error is ErrLost if one of the claims has ended. Other errors are those of
// [Index.Apply].
func (x *Index) FinishJobs(ctx context.Context, owner string, jobs ...FinishedJob) (err error) {
	var changes []document.Change
	for _, j := range jobs {
		changes = append(changes, j.Changes...)
	}
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return err
		}
	}
	words, err := x.gather(ctx, changes)
	if err != nil {
		return err
	}
	defer func() { x.dropGathered(words, err == nil) }()
	return x.change(ctx, "finishing a job", words, func(p *poster) error {
		if err := p.apply(ctx, changes); err != nil {
			return err
		}
		for _, j := range jobs {
			err := claimed(p.hot.ExecContext(ctx, `UPDATE queue SET state='done', owner='', lease=0, payload=x'', updated=?,
				doc=(SELECT id FROM docs WHERE doc_id=?) WHERE id=? AND owner=? AND state='running'`, p.now.UnixMilli(), j.DocumentID, j.ID, owner))
			if err != nil {
				return err
			}
		}
		return nil
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
