package index

import (
	"context"
	"database/sql"
	"errors"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
)

// Queue returns the queue of jobs in the index.
func (x *Index) Queue() *queue.Queue { return x.queue }

// A FinishedJob is a job that an owner has claimed, and what it changes.
type FinishedJob struct {
	ID         int64
	Changes    []document.Change
	DocumentID string // the ID of its document
}

// FinishJobs makes the changes of jobs that the owner has claimed and ends the
// jobs, in one transaction. The jobs are done, and their payloads are deleted.
// The error is [queue.ErrLost] if one of the claims has ended. Other errors are
// those of [Index.Apply].
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
	defer func() { x.segments.Drop(words, err == nil) }()
	return x.change(ctx, "finishing a job", words, func(w *writer) error {
		if err := w.apply(ctx, changes); err != nil {
			return err
		}
		for _, j := range jobs {
			var number int64
			err := w.tx.QueryRowContext(ctx, `SELECT id FROM docs WHERE doc_id=?`, j.DocumentID).Scan(&number)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if err := queue.EndIn(ctx, w.tx, j.ID, owner, number); err != nil {
				return err
			}
		}
		return nil
	})
}
