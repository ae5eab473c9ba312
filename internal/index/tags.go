package index

import (
	"context"
	"database/sql"
	"errors"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// tagUser is the kind of the tags that users give; see table doc_tags.
const tagUser = "tag"

// findTag returns the number of a tag, 0 if it is not stored.
func findTag(ctx context.Context, q database.Querier, kind, name string) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT id FROM tags WHERE kind=? AND name=?`, kind, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}
