package logfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alone makes a test run in a process of its own, which changes limits of the process. It
// reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const variable = "LOGFILE_TEST_ALONE"
	if os.Getenv(variable) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

// limitFiles forbids files of more than n bytes until the returned function is called. A
// write beyond that is cut, as on a full disk.
func limitFiles(t *testing.T, n uint64) (undo func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
}

// A line of which only a part can be written is removed, or the next one begins on a new
// line if other processes may have written meanwhile.
func TestCutLine(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, exclusive := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "lines.jsonl")
		f, err := OpenFile(FileOptions{Path: path, Exclusive: exclusive})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func(line string, ok bool) {
			t.Helper()
			if _, err := f.Write([]byte(line)); (err == nil) != ok {
				t.Errorf("exclusive=%t: Write(%q) = %v", exclusive, line, err)
			}
		}
		write("first\n", true)
		undo := limitFiles(t, 9)
		write("second\n", false)
		if err := f.Check(); err == nil {
			t.Errorf("exclusive=%t: Check() = nil while nothing can be written", exclusive)
		}
		write("third\n", false)
		undo()
		if err := f.Check(); err != nil {
			t.Errorf("exclusive=%t: Check() = %v", exclusive, err)
		}
		write("fourth\n", true)
		write("fifth\n", true)
		want := "first\nsec\nfourth\nfifth\n"
		if exclusive {
			want = "first\nfourth\nfifth\n"
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(data)); diff != "" {
			t.Errorf("exclusive=%t: file differs (-want +got):\n%s", exclusive, diff)
		}
		if left, _ := filepath.Glob(path + ".check*"); left != nil {
			t.Errorf("exclusive=%t: %v are left", exclusive, left)
		}
	}
}
