//go:build unix

package index_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// cpuTime returns the seconds of the processor that this process has used.
func cpuTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// BenchmarkNotes stores notes of about 800 bytes, each in a change of its own.
func BenchmarkNotes(b *testing.B) {
	x, g := open(b, b.TempDir()), newGenerator()
	note := func(n int) string {
		var t strings.Builder
		for t.Len() < 800 {
			t.WriteString(word(g.zipf.Uint64()))
			t.WriteByte(' ')
		}
		return t.String()
	}
	n := 0
	begin := cpuTime(b)
	for b.Loop() {
		put(b, x, doc("notes", fmt.Sprintf("%d.txt", n), "A note", note(n)))
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(1000*(cpuTime(b)-begin)/float64(n), "CPU-ms/commit")
}

// BenchmarkSegments searches the same documents in one segment and in fifty.
func BenchmarkSegments(b *testing.B) {
	const segments, docs = 50, 1000
	for _, n := range []int{1, segments} {
		x, g := open(b, b.TempDir()), newGenerator()
		for i := range n { // the segments of different labels are not merged
			d := g.document(i*docs/n, 10)
			batch := puts(d)
			for j := 1; j < docs/n; j++ {
				batch = append(batch, puts(g.document(i*docs/n+j, 10))...)
			}
			for k := range batch {
				batch[k].Put.Label = fmt.Sprintf("label-%d", i)
			}
			if err := x.Apply(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("word/%d", n), func(b *testing.B) {
			measure(b, x, func() string { return word(300 + g.r.Uint64N(3000)) })
		})
		b.Run(fmt.Sprintf("question/%d", n), func(b *testing.B) {
			measure(b, x, func() string {
				var words []string
				for range 7 {
					words = append(words, word(20+g.r.Uint64N(1000)))
				}
				return strings.Join(words, " ")
			})
		})
	}
}

func measure(b *testing.B, x *index.Index, text func() string) {
	begin := cpuTime(b)
	n := 0
	for b.Loop() {
		if _, err := x.Search(b.Context(), search.Query{Text: query.MustParse(text()), Num: 10}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(1e6*(cpuTime(b)-begin)/float64(n), "CPU-µs/op")
}
