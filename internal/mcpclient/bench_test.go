package mcpclient

import (
	"testing"
)

// BenchmarkCall calls a tool of a child process, one call after the other.
func BenchmarkCall(b *testing.B) {
	p := newPool(b, Options{}, fakeSettings("fake", "inline"))
	mustCall(b, p, "fake", "echo", "1")
	b.ReportAllocs()
	for b.Loop() {
		mustCall(b, p, "fake", "echo", `{"message":"hello"}`)
	}
}

// BenchmarkCallParallel calls it from many goroutines; use -cpu and
// SetParallelism's 8 on two cores make 16.
func BenchmarkCallParallel(b *testing.B) {
	p := newPool(b, Options{}, fakeSettings("fake", "inline"))
	mustCall(b, p, "fake", "echo", "1")
	params := toolCall("echo", `{"message":"hello"}`)
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Call(b.Context(), "fake", "tools/call", params); err != nil {
				b.Error(err)
			}
		}
	})
}
