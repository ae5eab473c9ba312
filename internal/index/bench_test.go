package index_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A generator makes documents whose words have the frequencies of a natural
// language: word n occurs about 1/n times as often as the first.
type generator struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newGenerator() *generator {
	r := rand.New(rand.NewPCG(1, 2))
	return &generator{r, rand.NewZipf(r, 1.1, 2, 200_000)}
}

// word returns the n-th most frequent word.
func word(n uint64) string {
	var b strings.Builder
	for n += 27; n > 0; n /= 26 {
		b.WriteByte(byte('a' + n%26))
	}
	return b.String() + "q" // no English ending
}

// document returns document n with chunks of about 150 words.
func (g *generator) document(n, chunks int) document.Document {
	var b strings.Builder
	for range chunks {
		for range 100 + g.r.IntN(100) {
			b.WriteString(word(g.zipf.Uint64()))
			b.WriteByte(' ')
		}
		b.WriteString("\n\n")
	}
	title := word(g.zipf.Uint64()) + " " + word(g.zipf.Uint64())
	return doc(fmt.Sprintf("label-%d", n%4), fmt.Sprintf("%d.txt", n), title, b.String())
}

// fill stores documents of ten chunks in batches of twenty.
func (g *generator) fill(t testing.TB, x *index.Index, docs int) {
	for n := 0; n < docs; n += 20 {
		batch := make([]document.Document, min(20, docs-n))
		for i := range batch {
			batch[i] = g.document(n+i, 10)
		}
		put(t, x, batch...)
	}
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			x, g, n := open(b, b.TempDir()), newGenerator(), 0
			bytes := 0
			for b.Loop() {
				b.StopTimer()
				batch := make([]document.Document, size)
				for i := range batch {
					batch[i] = g.document(n, 10)
					bytes += len(batch[i].Text)
					n++
				}
				b.StartTimer()
				put(b, x, batch...)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "docs/s")
			b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}

// BenchmarkSearch measures classes of queries over documents of ten chunks.
// BENCH_DOCS is the number of documents, 2,000 by default.
func BenchmarkSearch(b *testing.B) {
	docs := 2000
	if n, err := strconv.Atoi(os.Getenv("BENCH_DOCS")); err == nil {
		docs = n
	}
	x, g := open(b, b.TempDir()), newGenerator()
	g.fill(b, x, docs)
	rare := func() string { return word(300 + g.r.Uint64N(3000)) }
	common := func() string { return word(g.r.Uint64N(50)) }
	words := func(n int, w func() string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = w()
		}
		return out
	}
	classes := []struct {
		name string
		make func() search.Query
	}{
		{"word", func() search.Query { return search.Query{Text: query.MustParse(rare())} }},
		{"common word", func() search.Query { return search.Query{Text: query.MustParse(common())} }},
		{"two words", func() search.Query { return search.Query{Text: query.MustParse(rare() + " " + common())} }},
		{"question", func() search.Query {
			return search.Query{Text: query.MustParse(strings.Join(append(words(3, rare), words(4, common)...), " "))}
		}},
		{"question in a label", func() search.Query {
			return search.Query{Text: query.MustParse(strings.Join(append(words(3, rare), words(4, common)...), " ")),
				Labels: []string{"label-2"}}
		}},
		{"three or", func() search.Query {
			return search.Query{Text: query.MustParse(strings.Join(words(3, rare), " OR "))}
		}},
		{"phrase", func() search.Query {
			return search.Query{Text: query.MustParse(`"` + common() + " " + common() +
				`"`)}
		}},
		{"prefix", func() search.Query { return search.Query{Text: query.MustParse(rare()[:2] + "*")} }},
		{"fuzzy", func() search.Query { return search.Query{Text: query.MustParse(rare() + "~1")} }},
		{"newest", func() search.Query { return search.Query{Labels: []string{"label-1"}} }},
		{"facets", func() search.Query {
			return search.Query{Text: query.MustParse(common()), Facets: &search.Facets{Fields: []string{"label",
				"filetype"}}}
		}},
	}
	for _, c := range classes {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				q := c.make()
				q.Num = 10
				if _, err := x.Search(b.Context(), q); err != nil {
					b.Fatalf("Search(%q) = %v", q.Text, err)
				}
			}
		})
	}
}
