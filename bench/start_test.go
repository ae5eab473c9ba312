package bench

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStart measures the time from starting the program to its response to
// initialize.
func BenchmarkStart(b *testing.B) {
	f := startFess(b)
	b.Run("fess", func(b *testing.B) { starts(b, "fess", "--config", f.config) })
	c := generated(b).indexed(b)
	b.Run("serve", func(b *testing.B) { starts(b, "serve", "--transport", "stdio", "--data", c.data) })
}

func starts(b *testing.B, args ...string) {
	var all Times
	for b.Loop() {
		began := time.Now()
		p := start(b, args...)
		p.call("initialize", hello())
		all = append(all, time.Since(began))
		if err := p.stop(); err != nil {
			b.Fatal(err)
		}
	}
	all.report(b, 0.95)
}

// BenchmarkMemory reports how much memory the idle program uses, two seconds
// after its last response.
func BenchmarkMemory(b *testing.B) {
	b.Run("fess", func(b *testing.B) {
		p := startFess(b).stdio(b)
		p.rest(b)
	})
	b.Run("fess-after-calls", func(b *testing.B) {
		p := startFess(b).stdio(b)
		l := p.pipeline(b, searchParams(tool(b, p, "search")))
		done := 0
		for _, n := range []int{1_000, 10_000, 100_000} {
			calls(l, clients, n-done)
			done = n
			time.Sleep(idle)
			b.ReportMetric(p.memory("VmRSS"), fmt.Sprintf("%d-calls-MB", n))
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(p.memory("VmHWM"), "most-MB")
	})
	b.Run("serve", func(b *testing.B) {
		p := generated(b).indexed(b).serve(b)
		search(b, p, tool(b, p, "search"), map[string]any{"query": "folder token"})
		p.rest(b)
	})
}

// idle is how long a program is idle before its memory is read.
const idle = 2 * time.Second

// rest waits until p is idle and reports its memory.
func (p *process) rest(b *testing.B) {
	for b.Loop() {
		// The response to a ping follows all earlier responses.
		p.call("ping", nil)
	}
	time.Sleep(idle)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p.memory("VmRSS"), "MB")
}
