package datasetsearch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// BenchmarkSearch searches 100,000 chunks of 20,000 texts of 100 words each.
func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 50_000)
	var records []dataset.Document
	for i := range 20_000 {
		title := fmt.Sprintf("Title word%d", zipf.Uint64())
		for c := range 5 {
			var text strings.Builder
			for range 100 {
				fmt.Fprintf(&text, "word%d ", zipf.Uint64())
			}
			records = append(records, dataset.Document{Title: title, Path: fmt.Sprintf("d/%d.txt", i),
				Content: text.String(), Chunk: c + 1})
		}
	}
	dir := b.TempDir()
	write(b, dir, "large", records)
	s, _ := open(b, dataset.Options{Dir: dir})
	find(b, s, "word1") // names the documents
	for name, q := range map[string]search.Query{
		"question":  {Text: query.MustParse("how do word20 and word300 work with word4000"), Num: 8},
		"frequent":  {Text: query.MustParse("word1 word2 word3"), Num: 8},
		"operators": {Text: query.MustParse(`(word20 OR word30) -word5 title:word1*`), Num: 8},
		"wildcard":  {Text: query.MustParse("*ord99*"), Num: 8},
		"fuzzy":     {Text: query.MustParse("wrod4000~2"), Num: 8},
		"facets": {Text: query.MustParse("word20"), Num: 8,
			Facets: &search.Facets{Fields: []string{"filetype", "filename"}}},
		"by size": {Num: 8, Sort: []search.SortKey{{Field: "content_length", Desc: true}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := s.Search(b.Context(), q)
				if err != nil || p.Total == 0 {
					b.Fatalf("Search() = %+v, %v", p, err)
				}
			}
		})
	}
}
