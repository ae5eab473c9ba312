package source

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

// A folder has one path, also if it is named by the short names of MS-DOS.
func TestShortNames(t *testing.T) {
	long, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	long = filepath.Join(long, "A folder with a long name")
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := windows.UTF16PtrFromString(long)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]uint16, windows.MAX_PATH)
	if _, err := windows.GetShortPathName(path, &buf[0], uint32(len(buf))); err != nil {
		t.Fatal(err)
	}
	short := windows.UTF16ToString(buf)
	if filepath.Base(short) == filepath.Base(long) {
		t.Skip("the file system has no short names")
	}
	if got, err := Resolve(short); err != nil || got != long {
		t.Errorf("Resolve(%s) = %s, %v, want %s", short, got, err, long)
	}
}
