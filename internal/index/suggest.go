package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/analysis"
	"knowhow/internal/search"
)

// Suggest returns words that begin with a prefix, those of the most documents
// first; see [search.Service]. All words of titles and texts are known,
// whatever fields and languages the query names.
func (x *Index) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	prefix := strings.TrimSpace(analysis.Lower(q.Prefix))
	var out []search.Suggestion
	if prefix == "" || len(prefix) > 256 {
		return out, ctx.Err()
	}
	err := x.read(ctx, "suggesting words", func(tx *sql.Tx) error {
		only := ""
		if q.Labels != nil {
			ids, err := findTags(ctx, tx, tagLabel, q.Labels)
			if err != nil {
				return err
			}
			only = ` AND w.label IN ` + numbers(ids)
		}
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var s search.Suggestion
			var labels string
			if err := rows.Scan(&s.Text, &labels); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(labels), &s.Labels); err != nil {
				return err
			}
			slices.Sort(s.Labels)
			out = append(out, s)
			return nil
		}, `SELECT s.term, json_group_array(t.name)
			FROM (SELECT w.term, sum(w.df) AS n FROM terms w WHERE w.term>=? AND w.term<?`+only+`
				GROUP BY w.term ORDER BY n DESC, w.term LIMIT ?) s
			CROSS JOIN terms w ON w.term=s.term`+only+` CROSS JOIN tags t ON t.id=w.label
			GROUP BY s.term ORDER BY max(s.n) DESC, s.term`, prefix, prefix+lastRune, q.Num)
	})
	return out, err
}

// numbers returns a list of numbers in SQL.
func numbers(ids []int64) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.FormatInt(id, 10)
	}
	return "(" + strings.Join(parts, ",") + ")"
}
