package ingest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"knowhow/internal/document"
)

// nullSink forgets everything.
type nullSink struct{}

func (nullSink) Apply(context.Context, []document.Change) error { return nil }
func (nullSink) Stamps(context.Context, string) (map[string]document.Stamp, error) {
	return nil, nil
}

func manyFiles(b *testing.B, n int) (root string, size int64) {
	files := map[string]string{}
	text := strings.Repeat("Some words make a sentence, and this is one of them.\n\n", 60)
	for i := range n {
		name := fmt.Sprintf("dir%02d/file%04d.md", i%50, i)
		files[name] = fmt.Sprintf("# File %d\n\n%s## More\n\n%s", i, text, text)
		size += int64(len(files[name]))
	}
	return folder(b, files), size
}

func BenchmarkSync(b *testing.B) {
	root, size := manyFiles(b, 1000)
	g := New(Options{Sink: nullSink{}})
	b.SetBytes(size)
	for b.Loop() {
		if _, err := g.Sync(b.Context(), docs(root)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSyncUnchanged is what a look at 10,000 files costs that finds
// nothing new.
func BenchmarkSyncUnchanged(b *testing.B) {
	root, _ := manyFiles(b, 10_000)
	g := New(Options{Sink: &memorySink{}})
	if _, err := g.Sync(b.Context(), docs(root)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := g.Sync(b.Context(), docs(root)); err != nil {
			b.Fatal(err)
		}
	}
}
