package index

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
)

// Backup writes a consistent copy of the index to a new file. Other
// processes may write meanwhile. The copy is complete in one file: segments in
// files are left out, and Maintain builds them again. Jobs
// that have not ended fail in the copy if they need a file. The error is of kind
// Conflict if the file exists.
func (x *Index) Backup(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return x.db.Backup(ctx, file, slices.Concat(segments.Detach, queue.Detach, []string{`DELETE FROM leases`}))
}

// maxProblems is the maximum number of problems that Examine returns.
const maxProblems = 100

// A Problem is something that Examine found.
type Problem struct {
	Text       string // a sentence
	Repairable bool   // Maintain corrects it from the stored texts, and nothing is lost
}

// Examine examines every page of the file and every segment. Problems that
// Maintain does not correct come first.
func (x *Index) Examine(ctx context.Context) (problems []Problem, err error) {
	err = x.db.Read(ctx, "checking the index", func(tx *sql.Tx) error {
		problems = nil
		err := database.Collect(ctx, tx, func(rows *sql.Rows) error {
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
		err = database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			var want, have int64
			err := rows.Scan(&id, &want, &have)
			problems = append(problems, Problem{Text: fmt.Sprintf("document %d has a text of %d bytes instead of %d",
				id, have, want)})
			return err
		}, `SELECT d.id, d.text_size, coalesce((SELECT sum(iif(t.size>0, t.size, length(t.body))) FROM texts t
			WHERE t.id BETWEEN d.id<<20 AND (d.id<<20)+1048575), 0) have
			FROM docs d WHERE d.text_size<>have LIMIT 100`)
		if err != nil {
			return err
		}
		damaged, incomplete, err := x.segments.Damaged(ctx, tx)
		for _, label := range damaged {
			problems = append(problems, Problem{fmt.Sprintf("the words of the label %q are damaged", label), true})
		}
		if incomplete {
			problems = append(problems, Problem{"the words of some documents are missing", true})
		}
		return err
	})
	return problems[:min(len(problems), maxProblems)], err
}
