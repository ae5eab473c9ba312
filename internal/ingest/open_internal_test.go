package ingest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inside, outside := write("docs/sub/a.txt"), write("secret/a.txt")
	folder := filepath.Join(dir, "docs")
	for link, target := range map[string]string{"in.txt": inside, "out.txt": outside, "rel.txt": "sub/a.txt",
		"folder": filepath.Dir(inside), "away": filepath.Dir(outside), "circle": "circle"} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Skip("links cannot be made:", err)
		}
	}
	for name, found := range map[string]bool{
		"sub/a.txt": true, "sub/b.txt": false, "sub": false, "sub/": false, "": false, ".": false,
		"sub/a.txt/member.txt": false, "../secret/a.txt": false, "sub/../../secret/a.txt": false, outside: false,
		"in.txt": false, "out.txt": false, "rel.txt": false, "folder/a.txt": false, "away/a.txt": false, "circle": false,
		"sub/a.txt\x00": false, "sub//a.txt": false, `..\secret\a.txt`: false,
	} {
		f, err := Open(folder, name)
		if found != (err == nil) || err != nil && !errors.Is(err, errkind.NotFound) {
			t.Errorf("Open(%q) = %v", name, err)
		}
		if err != nil {
			continue
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != "docs/"+name {
			t.Errorf("%q contains %q, %v", name, data, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(filepath.Join(dir, "gone"), "a.txt"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("in a folder that is gone: %v", err)
	}
}
