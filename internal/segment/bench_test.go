package segment

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// benchDocs returns documents with about so many chunks in all, of a hundred
// tokens on average, and a function that returns one of their tokens.
func benchDocs(chunks int) (docs []testDoc, word func() string) {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 4, 100_000)
	names := map[uint64]string{}
	word = func() string {
		x := zipf.Uint64()
		if names[x] == "" {
			names[x] = fmt.Sprintf("%x", x*2654435761%(1<<32))
		}
		return names[x]
	}
	tokens := func(n int) []string {
		t := make([]string, n)
		for i := range t {
			t[i] = word()
		}
		return t
	}
	for row := int64(1); chunks > 0; row++ {
		d := testDoc{row: row, title: tokens(3), name: tokens(2)}
		for range min(1+rnd.IntN(20), chunks) {
			d.chunks = append(d.chunks, testChunk{tokens(rnd.IntN(4)), tokens(20 + rnd.IntN(160))})
			chunks--
		}
		docs = append(docs, d)
	}
	return docs, word
}

// BenchmarkBuild writes segments of 200 chunks.
func BenchmarkBuild(b *testing.B) {
	docs, _ := benchDocs(200)
	b.ReportAllocs()
	for b.Loop() {
		build(b, docs)
	}
	b.ReportMetric(200*float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
}

// BenchmarkMerge merges 10 segments of 200 chunks.
func BenchmarkMerge(b *testing.B) {
	docs, _ := benchDocs(2000)
	_, segments, deleted := collect(b, split(docs, 10), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge(b.Context(), io.Discard, InMemory, segments, deleted); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
}

// BenchmarkTop searches 50,000 chunks in one segment, and in one of 45,000 and
// ten of 500 chunks.
func BenchmarkTop(b *testing.B) {
	docs, word := benchDocs(50_000)
	terms := func(n int) func() [][]Pattern {
		return func() (leaves [][]Pattern) {
			for range n {
				leaves = append(leaves, []Pattern{{Tokens: []string{word()}}})
			}
			return leaves
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	sequence := func() []string {
		text := docs[rnd.IntN(len(docs))].chunks[0].text
		at := rnd.IntN(len(text) - 3)
		return text[at : at+3]
	}
	uneven := append(split(docs[:len(docs)*9/10], 1), split(docs[len(docs)*9/10:], 10)...)
	one, _, _ := collect(b, split(docs, 1), nil)
	several, _, _ := collect(b, uneven, nil)
	for _, kind := range []struct {
		name string
		make func() [][]Pattern
	}{
		{"term", terms(1)},
		{"or of 3", terms(3)},
		{"or of 8", terms(8)},
		{"phrase of 2", func() [][]Pattern { return [][]Pattern{{{Tokens: sequence()[:2]}}} }},
		{"phrase of 3", func() [][]Pattern { return [][]Pattern{{{Tokens: sequence()}}} }},
		{"prefix of 3", func() [][]Pattern {
			w := word()
			return [][]Pattern{{{Tokens: []string{w[:min(3, len(w))]}, Prefix: true}}}
		}},
		{"prefix of 1", func() [][]Pattern { return [][]Pattern{{{Tokens: []string{word()[:1]}, Prefix: true}}} }},
	} {
		var queries [][][]Pattern
		for range 100 {
			queries = append(queries, kind.make())
		}
		for _, c := range []*Collection{one, several} {
			b.Run(fmt.Sprintf("%s/%d segments", kind.name, c.Len()), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					s := c.Begin()
					var leaves []*Leaf
					for _, patterns := range queries[i%len(queries)] {
						l, err := s.Leaf(b.Context(), AllFields, patterns...)
						if err != nil {
							b.Fatal(err)
						}
						leaves = append(leaves, l)
					}
					if _, err := s.Top(b.Context(), leaves, nil, 10); err != nil {
						b.Fatal(err)
					}
					s.End()
				}
			})
		}
	}
}
