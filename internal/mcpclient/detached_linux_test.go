package mcpclient

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// detach makes a command start in a separate session, and so outside the
// process group of its server.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// TestDetachedGrandchildren ends servers whose grandchildren have left the
// process group: by closing the pool, by a crash of the server, and by killing
// the program.
func TestDetachedGrandchildren(t *testing.T) {
	for _, behaviour := range []string{
		"grandchild detached",
		"grandchild detached stubborn",
		"grandchild detached orphaned",
		"grandchild detached orphaned nameless",
	} {
		t.Run(behaviour, func(t *testing.T) {
			if !strings.HasSuffix(behaviour, "nameless") { // every pool of this process ends such a child when it is closed
				t.Parallel()
			}
			p, grand := detachedPool(t, behaviour)
			pid := lines(t, grand)[0]
			if !alive(pid) {
				t.Errorf("process %s is not alive while its server is used", pid)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v", err)
			}
			if alive(pid) {
				t.Errorf("process %s is alive after Close", pid)
			}
		})
	}
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		p, grand := detachedPool(t, "grandchild detached")
		other, otherGrand := detachedPool(t, "grandchild detached")
		if _, err := p.Call(t.Context(), "fake", "tools/call", toolCall("crash", "1")); err == nil {
			t.Error("the server did not crash")
		}
		until(t, func() bool { return !alive(lines(t, grand)[0]) })
		mustCall(t, other, "fake", "echo", "1")
		if pid := lines(t, otherGrand)[0]; !alive(pid) {
			t.Errorf("process %s of another server ended with the server that crashed", pid)
		}
	})
	t.Run("parent is killed", func(t *testing.T) {
		t.Parallel()
		grand := filepath.Join(t.TempDir(), "grand")
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), "KNOWHOW_FAKE=parent", "FAKE_DETACHED=1", "FAKE_GRANDCHILD="+grand)
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 100)
		n, err := out.Read(line)
		if got := string(line[:n]); got != "ready\n" {
			t.Errorf("the parent says %q, %v", got, err)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = parent.Wait()
		pids := lines(t, grand)
		if len(pids) != 1 {
			t.Errorf("%d grandchildren were started, want 1", len(pids))
		}
		for _, pid := range pids {
			until(t, func() bool { return !alive(pid) })
		}
	})
}

// detachedPool returns a pool whose server runs and has a grandchild, and the
// file with the grandchild's process id.
func detachedPool(t *testing.T, behaviour string) (*Pool, string) {
	t.Helper()
	grand := filepath.Join(t.TempDir(), "grand")
	p := newPool(t, Options{}, fakeSettings("fake", behaviour, "FAKE_GRANDCHILD", grand))
	mustCall(t, p, "fake", "echo", "1")
	until(t, func() bool { return len(lines(t, grand)) > 0 })
	return p, grand
}
