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

// tagToken is what a tag is called in the full-text table. It is made of the
// tag's number, so that two names never share one however they are spelled.
func tagToken(id int64) string { return "t" + strconv.FormatInt(id, 10) }

// findTag returns the number of a tag, 0 where nothing has it.
func findTag(ctx context.Context, q querier, kind, name string) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT id FROM tags WHERE kind=? AND name=?`, kind, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// findTags returns the numbers of those tags that something has.
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
