package database

import (
	"context"
	"database/sql"
	"strconv"
)

// A row number in tables of parts of documents, such as chunks and texts, is the
// number of the document and, in the lowest PartBits bits, the number of the part.
// So the document is known without a join.
const (
	PartBits = 20
	MaxParts = 1 << PartBits
)

// PartRow returns the row number of a part of a document.
func PartRow(document int64, part int) int64 { return document<<PartBits | int64(part) }

// List returns numbers as JSON, for the function json_each.
func List(numbers []int64) string {
	list := make([]byte, 1, 8*len(numbers)+2)
	list[0] = '['
	for i, n := range numbers {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, n, 10)
	}
	return string(append(list, ']'))
}

// Column returns the values of the only column of a query.
func Column[T any](ctx context.Context, q Querier, text string, args ...any) (all []T, err error) {
	err = Collect(ctx, q, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	}, text, args...)
	return all, err
}

// Map returns the values of the second column of a query by those of the first.
func Map[K comparable, V any](ctx context.Context, q Querier, text string, args ...any) (map[K]V, error) {
	all := map[K]V{}
	err := Collect(ctx, q, func(rows *sql.Rows) error {
		var k K
		var v V
		err := rows.Scan(&k, &v)
		all[k] = v
		return err
	}, text, args...)
	return all, err
}
