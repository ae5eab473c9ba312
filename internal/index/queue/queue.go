// Package queue is a queue of jobs on disk that all processes of a data folder
// share. Each job has a kind. The jobs of a kind run one after another, by one
// process at a time, which claims them for some time and renews its claims. A
// process that dies loses them.
package queue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// The states of a job.
const (
	Queued  = "queued"
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// A Job is work in the queue.
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

// Tables are statements that create the tables of the queue; [AddUsers] completes
// them.
const Tables = `
CREATE TABLE queue(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	filename TEXT NOT NULL,
	payload BLOB NOT NULL,
	attempts INTEGER NOT NULL,
	owner TEXT NOT NULL,
	lease INTEGER NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	doc INTEGER,
	error TEXT NOT NULL);
CREATE INDEX queue_state ON queue(state, id);
`

// AddUsers is a [database.Upgrade] that gives each job a user. Jobs of before have
// none.
func AddUsers(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `ALTER TABLE queue ADD COLUMN user TEXT NOT NULL DEFAULT '';
		CREATE INDEX queue_user ON queue(user, id)`)
	return err
}

// Detach are statements that end what refers to processes and to files, in a copy
// of the database without them: claims, and jobs that need a file.
var Detach = []string{
	`UPDATE queue
		SET state='failed', owner='', lease=0, payload=x'', error='the file is not part of the backup: add it again'
		WHERE state IN ('queued', 'running') AND filename<>''`,
	`UPDATE queue SET state='queued', owner='', lease=0, attempts=0 WHERE state='running'`,
}

// Reads are the statements that should be prepared for reading.
var Reads = []string{nextJob}

// A Queue is the queue in a database. Its methods are safe for concurrent use.
type Queue struct {
	db      *database.DB
	adding  chan struct{} // has a place for the caller that adds jobs
	mu      sync.Mutex
	waiting []*newJob // to be added
}

// New returns the queue in a database that has its tables.
func New(db *database.DB) *Queue { return &Queue{db: db, adding: make(chan struct{}, 1)} }

// A NewJob is a job that is added.
type NewJob struct {
	User     string // who started it; "" if the server has no users
	Kind     string // required
	Filename string // "" if there is none
	Payload  []byte
}

// A newJob is a job that a call of Add adds.
type newJob struct {
	NewJob

	done chan struct{} // closed when id or err is set
	id   int64
	err  error
}

// take returns the jobs that wait, and removes them.
func (q *Queue) take() []*newJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.waiting
	q.waiting = nil
	return jobs
}

// put adds jobs to those that wait.
func (q *Queue) put(jobs ...*newJob) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, jobs...)
}

// remove removes a job from those that wait. It reports whether it was there.
func (q *Queue) remove(j *newJob) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, j)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// Add adds a job. When it returns, the job is on disk. The jobs of callers
// that wait at the same time are added in one transaction.
func (q *Queue) Add(ctx context.Context, job NewJob) (id int64, err error) {
	if job.Kind == "" {
		return 0, fmt.Errorf("a job needs a kind: %w", errkind.Invalid)
	}
	j := &newJob{NewJob: job, done: make(chan struct{})}
	q.put(j)
	for {
		select {
		case <-j.done:
			return j.id, j.err
		case <-ctx.Done():
			if q.remove(j) {
				return 0, ctx.Err()
			}
			<-j.done // another caller has added it
			return j.id, j.err
		case q.adding <- struct{}{}:
			q.addJobs(ctx)
			<-q.adding
		}
	}
}

// addJobs adds the jobs that wait when the transaction has begun. If ctx ends,
// they still wait.
func (q *Queue) addJobs(ctx context.Context) {
	var jobs []*newJob
	err := q.db.WritePrepared(ctx, "adding a job", func(p *database.Prepared) error {
		jobs = q.take()
		now := time.Now().UnixMilli()
		for _, j := range jobs {
			err := p.QueryRowContext(ctx, `INSERT INTO queue(user, kind, state, payload, attempts, owner, lease,
				created, updated, error, filename)
				VALUES(?, ?, ?, coalesce(?, x''), 0, '', 0, ?, ?, '', ?)
					RETURNING id`, j.User, j.Kind, Queued, j.Payload, now, now, j.Filename).Scan(&j.id)
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		q.put(jobs...)
		return
	case jobs == nil:
		jobs = q.take()
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
const nextJob = `SELECT id, attempts, size FROM (SELECT id, attempts, length(payload) AS size, state, lease FROM queue
	WHERE kind=?1 AND state IN ('queued', 'running') ORDER BY id LIMIT 1)
	WHERE state='queued' OR lease<=?2 OR lease>?2+3600000`

// claimBytes is how long the payloads of several jobs that are claimed at once
// may be together.
const claimBytes = 1 << 20

// Claim starts the oldest job of a kind that has not ended, unless somebody
// works on it, and up to limit-1 jobs that follow it, and returns them in their
// order. The jobs of a kind so run one after another. A job that was claimed
// before is claimed alone, because it may be what ended that process. The claims
// end after ttl if they are not renewed; then the jobs can be claimed again. If
// there is nothing to claim, the result is nil.
func (q *Queue) Claim(ctx context.Context, kind, owner string, ttl time.Duration, limit int) ([]Job, error) {
	if owner == "" || ttl <= 0 || limit < 1 {
		return nil, fmt.Errorf("a claim needs an owner, a time and a limit: %w", errkind.Invalid)
	}
	var first int64 // job
	var attempts, size int
	find := func(tx database.Querier) error {
		first = 0
		err := tx.QueryRowContext(ctx, nextJob, kind, time.Now().UnixMilli()).Scan(&first, &attempts, &size)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	// does not make writers wait
	err := q.db.Read(ctx, "looking for a job", func(tx *sql.Tx) error { return find(q.db.Prepared(tx)) })
	if err != nil || first == 0 {
		return nil, err
	}
	var jobs []Job
	err = q.db.WritePrepared(ctx, "claiming a job", func(p *database.Prepared) error {
		jobs = nil
		if err := find(p); err != nil || first == 0 {
			return err
		}
		ids := []int64{first}
		if attempts == 0 && limit > 1 {
			err := database.Collect(ctx, p, func(rows *sql.Rows) error {
				var id int64
				var n int
				err := rows.Scan(&id, &n)
				if size += n; size <= claimBytes {
					ids = append(ids, id)
				}
				return err
			}, `SELECT id, length(payload) FROM queue WHERE kind=? AND state='queued' AND attempts=0 AND id>?
				ORDER BY id LIMIT ?`, kind, first, limit-1)
			if err != nil {
				return err
			}
		}
		now := time.Now()
		err := database.Collect(ctx, p, func(rows *sql.Rows) error {
			j, err := scanJob(rows.Scan, true)
			if err == nil {
				jobs = append(jobs, *j)
			}
			return err
		}, `UPDATE queue SET state='running', owner=?2, lease=?3, attempts=attempts+(owner<>?2), updated=?1
			WHERE id IN (SELECT value FROM json_each(?4)) RETURNING `+jobColumns+`, payload`,
			now.UnixMilli(), owner, now.Add(ttl).UnixMilli(), database.List(ids))
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

// Renew extends claims. The error is ErrLost if one of them has ended.
func (q *Queue) Renew(ctx context.Context, owner string, ttl time.Duration, ids ...int64) error {
	return q.db.Write(ctx, "renewing a claim", func(tx *sql.Tx) error {
		until := time.Now().Add(ttl).UnixMilli()
		for _, id := range ids {
			if err := claimed(tx.ExecContext(ctx,
				`UPDATE queue SET lease=? WHERE id=? AND owner=? AND state='running'`, until, id, owner)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Release ends claims: the jobs are queued again, and the attempts do not
// count. Claims that have ended are ignored.
func (q *Queue) Release(ctx context.Context, owner string, ids ...int64) error {
	return q.db.Write(ctx, "releasing a job", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE queue SET state='queued', owner='', lease=0, attempts=attempts-1
			WHERE id IN (SELECT value FROM json_each(?)) AND owner=? AND state='running'`, database.List(ids), owner)
		return err
	})
}

// End ends a job that the owner has claimed. The job is done, with the number of
// its document (0: it has none). Its payload is deleted. The error is ErrLost if
// the claim has ended.
func (q *Queue) End(ctx context.Context, id int64, owner string, document int64) error {
	return q.db.Write(ctx, "ending a job", func(tx *sql.Tx) error { return EndIn(ctx, tx, id, owner, document) })
}

// EndIn is [Queue.End] in a transaction.
func EndIn(ctx context.Context, tx database.Changer, id int64, owner string, document int64) error {
	return end(ctx, tx, id, owner, Done, document, "")
}

// Fail ends a job that the owner has claimed with a message. The error is
// ErrLost if the claim has ended.
func (q *Queue) Fail(ctx context.Context, id int64, owner, message string) error {
	return q.db.Write(ctx, "ending a job", func(tx *sql.Tx) error {
		return end(ctx, tx, id, owner, Failed, 0, message)
	})
}

func end(
	ctx context.Context, tx database.Changer, id int64, owner, state string, document int64, message string,
) error {
	return claimed(tx.ExecContext(ctx, `UPDATE queue
		SET state=?, owner='', lease=0, payload=x'', updated=?, doc=nullif(?, 0), error=?
		WHERE id=? AND owner=? AND state='running'`, state, time.Now().UnixMilli(), document, message, id, owner))
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

// A Filter selects jobs. A zero field selects all.
type Filter struct {
	User  string // who started them
	State string
}

// where returns the filter as an SQL expression, and its arguments.
func (f Filter) where() (where string, args []any) {
	where = "1"
	for _, c := range []struct{ column, value string }{{"user", f.User}, {"state", f.State}} {
		if c.value != "" {
			where += " AND " + c.column + "=?"
			args = append(args, c.value)
		}
	}
	return where, args
}

// Job returns the job with an ID without its payload, if the filter selects it. The
// error is of kind NotFound if there is none.
func (q *Queue) Job(ctx context.Context, f Filter, id int64) (*Job, error) {
	var job *Job
	where, args := f.where()
	err := q.db.Read(ctx, "reading a job", func(tx *sql.Tx) error {
		var err error
		job, err = scanJob(tx.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM queue WHERE `+where+` AND id=?`,
			append(args, id)...).Scan, false)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("job %d does not exist: %w", id, errkind.NotFound)
		}
		return err
	})
	return job, err
}

// Jobs returns up to limit jobs that a filter selects, the newest first.
func (q *Queue) Jobs(ctx context.Context, f Filter, limit int) ([]Job, error) {
	var jobs []Job
	where, args := f.where()
	err := q.db.Read(ctx, "listing jobs", func(tx *sql.Tx) error {
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			j, err := scanJob(rows.Scan, false)
			if err == nil {
				jobs = append(jobs, *j)
			}
			return err
		}, `SELECT `+jobColumns+` FROM queue WHERE `+where+` ORDER BY id DESC LIMIT ?`, append(args, limit)...)
	})
	return jobs, err
}

// Payloads returns the payloads of the jobs of a kind that have not ended.
func (q *Queue) Payloads(ctx context.Context, kind string) ([][]byte, error) {
	var out [][]byte
	err := q.db.Read(ctx, "listing jobs", func(tx *sql.Tx) (err error) {
		out, err = database.Column[[]byte](ctx, tx,
			`SELECT payload FROM queue WHERE kind=? AND state IN ('queued', 'running')`, kind)
		return err
	})
	return out, err
}

// Count returns how many jobs that a filter selects there are by state.
func (q *Queue) Count(ctx context.Context, f Filter) (counts map[string]int, err error) {
	where, args := f.where()
	err = q.db.Read(ctx, "counting jobs", func(tx *sql.Tx) (err error) {
		counts, err = database.Map[string, int](ctx, tx,
			`SELECT state, count(*) FROM queue WHERE `+where+` GROUP BY state`, args...)
		return err
	})
	return counts, err
}

// Forget deletes the jobs that ended before a time.
func (q *Queue) Forget(ctx context.Context, before time.Time) error {
	return q.db.Write(ctx, "deleting old jobs", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM queue WHERE state IN ('done', 'failed') AND updated<?`,
			before.UnixMilli())
		return err
	})
}
