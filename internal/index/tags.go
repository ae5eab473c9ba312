package index

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
)

// The kinds of tags.
const (
	tagLabel = "label"
	tagLang  = "lang"
	tagUser  = "tag" // given by users; see table doc_tags
)

// tagToken returns the token of a tag in the full-text table. It is made of the
// tag's number, so that no two names share a token, whatever their spelling.
func tagToken(id int64) string { return "t" + strconv.FormatInt(id, 10) }

// findTag returns the number of a tag, 0 if it is not stored.
func findTag(ctx context.Context, q querier, kind, name string) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT id FROM tags WHERE kind=? AND name=?`, kind, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// findTags returns the numbers of those of the tags that are stored.
func findTags(ctx context.Context, q querier, kind string, names []string) ([]int64, error) {
	var ids []int64
	for _, name := range names {
		id, err := findTag(ctx, q, kind, name)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
