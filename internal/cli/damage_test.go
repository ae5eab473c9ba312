package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDamageIsReported damages a segment of a data folder. The next process, of
// each server in turn, reports it, names the file, and builds the segment again.
func TestDamageIsReported(t *testing.T) {
	if testing.Short() {
		t.Skip("indexes a large document")
	}
	data, docs := t.TempDir(), t.TempDir()
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, "word%d ", i)
	}
	if err := os.WriteFile(filepath.Join(docs, "large.txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"serve", "--addr", "127.0.0.1:0", "--data", data, "--no-watch", docs}
	awaitOutput(t, args, "1 document indexed")
	engine := []string{"engine", "--addr", "127.0.0.1:0", "--data", data, "--embedder", "none"}
	kb := []string{"kb", "--addr", "127.0.0.1:0", "--data", data, "--embedder", "none"}
	for _, next := range [][]string{args, engine, kb} {
		file := wholeSegment(t, data)
		if err := os.Truncate(file, 1000); err != nil {
			t.Fatal(err)
		}
		awaitOutput(t, next, "a search segment is damaged", filepath.Base(file), "words of all documents are indexed")
	}
}

// wholeSegment returns the only segment in a file that was not truncated.
func wholeSegment(t *testing.T, data string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "segments", "*.segment"))
	files = slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || info.Size() <= 1000
	})
	if err != nil || len(files) != 1 {
		t.Fatalf("the segments in files are %v, %v, want one", files, err)
	}
	return files[0]
}
