//go:build unix

package index

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Opening a named pipe would block until another program opens it.
func TestOpenIrregularFiles(t *testing.T) {
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	socket := func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	}
	tests := []struct {
		file string
		make func(path string) error
		kind string
	}{
		{"knowhow.db", pipe, "a named pipe"},
		{"knowhow.db-wal", pipe, "a named pipe"},
		{"knowhow.db-shm", pipe, "a named pipe"},
		{"knowhow.db-journal", pipe, "a named pipe"},
		{"knowhow.db", socket, "a socket"},
		{"knowhow.db", func(path string) error { return os.Mkdir(path, 0o700) }, "a folder"},
		{"knowhow.db", func(path string) error { return os.Symlink("/dev/null", path) }, "a device"},
		{"segments", func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }, "a file"},
		{"segments", pipe, "a named pipe"},
		{"segments", func(path string) error { return os.Symlink("segments", path) }, "a link"},
	}
	for _, test := range tests {
		t.Run(test.file+" is "+test.kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			if err := test.make(path); err != nil {
				t.Skipf("not supported here: %v", err)
			}
			x, err := Open(t.Context(), Options{Dir: dir})
			if err == nil {
				closeIt(t, x)
			}
			if !errors.Is(err, errkind.Corrupt) {
				t.Fatalf("Open() = %v, want an error of kind Corrupt", err)
			}
			for _, want := range []string{path, test.kind, "choose another data folder"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open() = %v, want it to contain %q", err, want)
				}
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("the file has changed: %v", err)
			}
		})
	}
}

// TestIrregularSegments puts something else in place of the file of a segment,
// before the index is opened and while it is open. Opening a named pipe would
// block.
func TestIrregularSegments(t *testing.T) {
	tests := map[string]func(path string) error{
		"a named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":     func(path string) error { return os.MkdirAll(filepath.Join(path, "inside"), 0o700) },
		"a link":       func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
	}
	made := largeFolder(t)
	for kind, make := range tests {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, open %v", kind, open), func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
					t.Fatal(err)
				}
				x := openIn(t, dir)
				total(t, x, "happy") // maps the file
				file := segmentFiles(t, dir)[0]
				if !open {
					closeIt(t, x)
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				if err := make(file); err != nil {
					t.Skipf("not supported here: %v", err)
				}
				if !open {
					x = openIn(t, dir)
				}
				if _, err := x.Search(t.Context(), search.Query{Text: query.MustParse("happy"), Num: 10}); err != nil {
					t.Errorf("Search(happy) = %v", err)
				}
				maintain(t, x)
				if n := total(t, x, "happy"); n != 301 {
					t.Errorf("after Maintain, Search(happy) = %d, want 301", n)
				}
				closeIt(t, x)
			})
		}
	}
}
