//go:build unix

package minilm

import (
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
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

// encode encodes the texts once for each iteration, on one core, and returns the
// time of the processor for one iteration in seconds.
func encode(b *testing.B, o bert.Options, kind embed.Kind, texts ...string) float64 {
	o.Threads = 1
	e := New(o)
	run := func() {
		if _, err := e.Embed(b.Context(), texts, kind); err != nil {
			b.Fatal(err)
		}
	}
	run() // reads the model
	begin := cpuTime(b)
	for b.Loop() {
		run()
	}
	return (cpuTime(b) - begin) / float64(b.N)
}

// BenchmarkQuery encodes a query of ten words.
func BenchmarkQuery(b *testing.B) {
	b.ReportMetric(1000*encode(b, bert.Options{}, embed.Query, words), "CPU-ms")
}

// BenchmarkDocuments encodes documents of 128 tokens.
func BenchmarkDocuments(b *testing.B) {
	const tokens = 128
	docs := []string{strings.Repeat(words+". ", 20),
		strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)}
	seconds := encode(b, bert.Options{MaxTokens: tokens}, embed.Document, docs...)
	b.ReportMetric(float64(tokens*len(docs))/seconds, "tokens/CPU-s")
}
