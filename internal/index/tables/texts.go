package tables

import (
	"context"
	"database/sql"
	"unicode/utf8"
)

// CutBytes cuts s to at most n bytes, at a rune border.
func CutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Window reads bytes from (with) to (without) of a document's text. Bounds
// beyond the text are cut.
func Window(ctx context.Context, q Querier, doc, from, to int64) (string, error) {
	if from >= to {
		return "", nil
	}
	first, last := from/TextPart, (to-1)/TextPart
	if last >= MaxParts {
		last = MaxParts - 1
	}
	var buf []byte
	err := Collect(ctx, q, func(rows *sql.Rows) error {
		var part sql.RawBytes
		if err := rows.Scan(&part); err != nil {
			return err
		}
		buf = append(buf, part...)
		return nil
	}, `SELECT body FROM texts WHERE id BETWEEN ? AND ? ORDER BY id`, Row(doc, int(first)), Row(doc, int(last)))
	if err != nil {
		return "", err
	}
	from, to = from-first*TextPart, to-first*TextPart
	if from > int64(len(buf)) {
		from = int64(len(buf))
	}
	if to > int64(len(buf)) {
		to = int64(len(buf))
	}
	return string(buf[from:to]), nil
}
