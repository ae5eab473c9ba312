//go:build unix

package indexing

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/ingest"
)

// A named pipe in place of the journal is not read, which would wait for ever.
func TestJournalIsAPipe(t *testing.T) {
	dir := t.TempDir()
	openJournal(dir, "docs", discard).close()
	files, err := filepath.Glob(filepath.Join(dir, journalFolder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("journals: %v, %v, want one", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(files[0], 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	var log strings.Builder
	j := openJournal(dir, "docs", slog.New(slog.NewTextHandler(&log, nil)))
	defer j.close()
	j.Begin(ref("a"), stamp)(ingest.Past{Deaths: 1})
	checkPast(t, j, map[string]ingest.Past{"a": {Deaths: 1}})
	if !strings.Contains(log.String(), files[0]) {
		t.Errorf("the log does not name the file:\n%s", log.String())
	}
}
