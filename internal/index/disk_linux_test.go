package index

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
)

// TestPrepareOnFullDisk fills the disk before the words of documents are gathered.
func TestPrepareOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("needs the permission to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	// Parts of the words are written to files.
	x, err := open(t.Context(), Options{Dir: dir}, setup{schema: schema,
		segments: segments.Options{BuildLimit: 64 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, x)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	_, err = x.Prepare(t.Context(), large(2000))
	if !errors.Is(err, errkind.DiskFull) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("Prepare() on a full disk = %v, want an error of kind DiskFull", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	apply(t, x, document.Change{Put: &document.Document{ID: "new", Label: "docs", Path: "new", Title: "Walrus",
		Text: "walrus"}})
}
