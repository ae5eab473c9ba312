package bench

import (
	"testing"
	"time"
)

// BenchmarkStart measures the time from starting the program to its answer to
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

// BenchmarkMemory tells how much memory the program takes up when it has
// nothing to do.
func BenchmarkMemory(b *testing.B) {
	b.Run("fess", func(b *testing.B) {
		p := startFess(b).stdio(b)
		p.rest(b)
	})
	b.Run("serve", func(b *testing.B) {
		p := generated(b).indexed(b).serve(b)
		search(b, p, tool(b, p, "search"), map[string]any{"query": "folder token"})
		p.rest(b)
	})
}

// rest waits until p has come to rest and reports its memory.
func (p *process) rest(b *testing.B) {
	for b.Loop() {
		// A ping's answer comes after what was asked before.
		p.call("ping", nil)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p.memory("VmRSS"), "MB")
}
