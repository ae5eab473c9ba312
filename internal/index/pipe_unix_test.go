//go:build unix

package index

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"knowhow/internal/errkind"
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
