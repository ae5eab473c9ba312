package indexing

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// BenchmarkIndex indexes the documentation in the folder DEBIAN_DOCS, which
// bench/debian-docs fills.
func BenchmarkIndex(b *testing.B) {
	source := os.Getenv("DEBIAN_DOCS")
	if source == "" {
		b.Skip("DEBIAN_DOCS is not set: run bench/debian-docs FOLDER and set it to the folder")
	}
	for b.Loop() {
		dir := b.TempDir()
		x, err := index.Open(b.Context(), index.Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := x.AddSource(b.Context(), document.Source{Label: "debian",
			Path: filepath.Join(source, "usr")}); err != nil {
			b.Fatal(err)
		}
		err = New(Options{Index: x, Dir: dir, Lines: terminal.NewLines(io.Discard, nil), Once: true}).Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		s, err := x.Stats(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(s.TextBytes)
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
