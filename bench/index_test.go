package bench

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/index"
)

// BenchmarkIndexing measures how fast the program indexes a folder, from the
// start of the process with an empty data folder to the line that reports the
// end.
func BenchmarkIndexing(b *testing.B) {
	b.Run("generated", func(b *testing.B) { generated(b).speed(b) })
	b.Run("debian", func(b *testing.B) { debian(b).speed(b) })
}

func (c corpus) speed(b *testing.B) {
	var x indexing
	for b.Loop() {
		x = c.index(b)
	}
	stored := c.stats(b)
	b.ReportMetric(0, "ns/op")
	seconds := x.took.Seconds()
	b.ReportMetric(float64(x.documents), "documents")
	b.ReportMetric(float64(stored.Chunks), "chunks")
	b.ReportMetric(float64(x.documents)/seconds, "documents/s")
	b.ReportMetric(float64(size(b, c.source))/1e6/seconds, "files-MB/s")
	b.ReportMetric(float64(stored.TextBytes)/1e6/seconds, "text-MB/s")
	b.ReportMetric(float64(stored.TextBytes)/1e6, "text-MB")
	b.ReportMetric(float64(size(b, c.data))/1e6, "database-MB")
	b.ReportMetric(seconds, "s")
	b.ReportMetric(x.cpu.Seconds(), "cpu-s")
	b.ReportMetric(x.peak, "peak-MB")
}

// open opens the index of the corpus in this process.
func (c corpus) open(b *testing.B) *index.Index {
	b.Helper()
	x, err := index.Open(b.Context(), index.Options{Dir: c.data})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	})
	return x
}

// stats returns how much the index of the corpus holds.
func (c corpus) stats(b *testing.B) index.Stats {
	b.Helper()
	s, err := c.open(b).Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return s
}
