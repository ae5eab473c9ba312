package database

import "strconv"

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
