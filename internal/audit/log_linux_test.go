package audit_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A line of which only a part can be written leaves nothing.
func TestCutLine(t *testing.T) {
	// The limit is that of a process, so the test runs in one of its own.
	const alone = "AUDIT_TEST_ALONE"
	if os.Getenv(alone) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	l, path := open(t, audit.Options{})
	write(t, l, &audit.Call{User: "first"})
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = 200
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full, _ := open(t, audit.Options{})
	if err := full.Check(); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Check() before the first Write = %v, want Unavailable", err)
	}
	failed, checked := l.Write(&audit.Call{User: "second"}), l.Check()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(failed, errkind.Unavailable) || !errors.Is(checked, errkind.Unavailable) {
		t.Errorf("Write() = %v, Check() = %v, want Unavailable", failed, checked)
	}
	if err := full.Check(); err != nil {
		t.Error(err)
	}
	write(t, l, &audit.Call{User: "third"})
	if got := lines(t, path); len(got) != 2 || !strings.Contains(got[0], `"first"`) ||
		!strings.Contains(got[1], `"third"`) {
		t.Errorf("the file has %q", got)
	}
}
