package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/atomicfile"
)

// TestCrash checks that a program that ends before the new file is in its place
// leaves the old one.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte("{}"), 0o640); err != nil {
		t.Fatal(err)
	}
	temporary, err := atomicfile.Prepare(path, []byte(`{"a": 1}`), 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{}" {
		t.Errorf("before the end, the file has %q, %v", data, err)
	}
	if err := temporary.Commit(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != `{"a": 1}` {
		t.Errorf("at the end, the file has %q, %v", data, err)
	}
}
