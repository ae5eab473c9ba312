package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeReportsDamage damages a segment of a data folder. The next process
// says so, names the file, and builds the segment again.
func TestServeReportsDamage(t *testing.T) {
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
	awaitOutput(t, args, "1 document (1 new)")
	files, err := filepath.Glob(filepath.Join(data, "segments", "*.segment"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the segments in files are %v, %v, want one", files, err)
	}
	if err := os.Truncate(files[0], 1000); err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, args, "a search segment is damaged", filepath.Base(files[0]), "words of all documents are indexed")
}
