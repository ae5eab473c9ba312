package index

import (
	"context"
	"database/sql"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// idBatch is how many IDs an upgrade has in memory.
const idBatch = 1000

// presentIDs gives every document its present ID; see [document.PresentID]. Nothing
// else in the index refers to a document by its ID.
func presentIDs(ctx context.Context, tx *sql.Tx) error {
	for after := int64(0); ; {
		ids, err := database.Map[int64, string](ctx, tx,
			`SELECT id, doc_id FROM docs WHERE id>? ORDER BY id LIMIT ?`, after, idBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		for number, old := range ids {
			after = max(after, number)
			id := document.PresentID(old)
			if id == old {
				continue
			}
			if _, err := tx.ExecContext(ctx, `UPDATE docs SET doc_id=? WHERE id=?`, id, number); err != nil {
				return err
			}
		}
	}
}
