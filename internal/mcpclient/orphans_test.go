//go:build unix

package mcpclient

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive reports whether a process runs. A process that is not yet reaped is dead.
func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true // no /proc here, and the signal got through
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z"))
}

// TestNoOrphans closes servers that do not want to end, and one whose leader
// ends and leaves others behind.
func TestNoOrphans(t *testing.T) {
	for _, behaviour := range []string{"normal", "grandchild", "stubborn grandchild"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			starts, grand := filepath.Join(dir, "starts"), filepath.Join(dir, "grand")
			p := newPool(t, Options{}, fakeSettings("fake", behaviour, "FAKE_STARTS", starts, "FAKE_GRANDCHILD", grand))
			mustCall(t, p, "fake", "echo", "1")
			pids := append(lines(t, starts), lines(t, grand)...)
			for _, pid := range pids {
				if !alive(pid) {
					t.Errorf("process %s is not alive while it is used", pid)
				}
			}
			begin := time.Now()
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v", err)
			}
			if took := time.Since(begin); took > time.Minute { // a child that is not killed sleeps for 5 minutes
				t.Errorf("Close() took %v", took)
			}
			until(t, func() bool { return !alive(pids[len(pids)-1]) }) // the grandchild is reaped by init
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %s is alive after Close", pid)
				}
			}
		})
	}
}

// TestCloseInAHurry ends the context of Close before a stubborn child does.
func TestCloseInAHurry(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	p := newPool(t, Options{}, fakeSettings("fake", "stubborn", "FAKE_STARTS", starts))
	mustCall(t, p, "fake", "echo", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if err := p.Close(ctx); err == nil {
		t.Error("Close() with an ended context = nil, want its error")
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("Close() took %v", took)
	}
	if pid := lines(t, starts)[0]; alive(pid) {
		t.Errorf("process %s is alive after Close", pid)
	}
}

// TestLeaderDies kills a server whose grandchild keeps its output open.
func TestLeaderDies(t *testing.T) {
	grand := filepath.Join(t.TempDir(), "grand")
	p := newPool(t, Options{}, fakeSettings("fake", "grandchild", "FAKE_GRANDCHILD", grand))
	if _, err := p.Call(t.Context(), "fake", "tools/call", toolCall("crash", "1")); err == nil ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a crash gave %v, want the exit status", err)
	}
	until(t, func() bool { return !alive(lines(t, grand)[0]) })
}

// TestParentIsKilled kills a program that uses a pool, which then cannot end its
// children itself.
func TestParentIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	starts, grand := filepath.Join(dir, "starts"), filepath.Join(dir, "grand")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "KNOWHOW_FAKE=parent", "FAKE_STARTS="+starts, "FAKE_GRANDCHILD="+grand)
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
	pids := append(lines(t, starts), lines(t, grand)...)
	if len(pids) != 4 {
		t.Errorf("%d processes were started, want 4", len(pids))
	}
	for _, pid := range pids {
		until(t, func() bool { return !alive(pid) })
	}
}
