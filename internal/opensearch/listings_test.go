package opensearch

import (
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// A list of names counts less than the same words of an unknown language, except at
// the beginning of a document.
func TestListingsCountLess(t *testing.T) {
	names := strings.Repeat("nistp256-cert, nistp384-cert, nistp521-cert, rsa-cert, dsa-cert, x509-cert, ", 4)
	frequencies := func(lang string) (list []int) {
		var r row
		r.analyse(&document.Document{Title: "Note", Lang: lang, Text: names + names, Chunks: []document.Chunk{
			{Length: len(names)}, {Offset: len(names), Length: len(names)}}})
		for _, c := range r.Chunks {
			for token := range strings.FieldsSeq(c.Tokens) {
				if n, ok := strings.CutPrefix(token, "nistp256"+between); ok {
					f, err := strconv.Atoi(n)
					if err != nil {
						t.Fatalf("frequency %q: %v", token, err)
					}
					list = append(list, f)
				}
			}
		}
		return list
	}
	list, other := frequencies("en"), frequencies("")
	if len(list) != 2 || len(other) != 2 || list[0] != other[0] || list[1] >= other[1] {
		t.Errorf("frequencies in the chunks of a list are %v, want %v and less in the second", list, other)
	}
}
