package ingest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// nullSink forgets everything.
type nullSink struct{}

func (nullSink) Apply(context.Context, []document.Change) error { return nil }
func (nullSink) Stamps(context.Context, string) (map[string]document.Stamp, error) {
	return nil, nil
}

func (nullSink) Generation(context.Context) (string, error) { return "", nil }

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

// BenchmarkSyncUnchanged measures a look at 10,000 files that finds nothing new.
func BenchmarkSyncUnchanged(b *testing.B) {
	for _, tt := range []struct {
		name string
		path func(i int) string
	}{
		{"flat", func(i int) string { return fmt.Sprintf("file%05d.md", i) }},
		{"nested", func(i int) string { // 2,047 folders on ten levels
			return strings.Join(strings.Split(fmt.Sprintf("%010b", i%1024), ""), "/") + fmt.Sprintf("/file%05d.md", i)
		}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			files := map[string]string{}
			for i := range 10_000 {
				files[tt.path(i)] = "# Title"
			}
			root := folder(b, files)
			g := New(Options{Sink: &memorySink{}})
			for range 2 {
				if _, err := g.Sync(b.Context(), docs(root)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := g.Sync(b.Context(), docs(root)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
