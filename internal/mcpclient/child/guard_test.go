//go:build unix

package child

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// start starts a program that ignores SIGTERM, guarded by g, and waits until it
// does.
func start(t *testing.T, g *Guard) (*Family, *exec.Cmd) {
	t.Helper()
	cmd, err := Command("sh", []string{"-c", "trap '' TERM; echo; sleep 100 >/dev/null & wait; wait"}, "",
		[]string{"PATH=/bin:/usr/bin"})
	if err != nil {
		t.Skip("no shell here")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	f, err := Start(cmd, g)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatalf("waiting for the program: %v", err)
	}
	return f, cmd
}

// TestGuardIsReplaced kills the guard: the next one hears of all the groups, and
// of the right ones.
func TestGuardIsReplaced(t *testing.T) {
	g := &Guard{}
	defer g.Close()
	f1, cmd1 := start(t, g)
	f2, cmd2 := start(t, g)
	f3, cmd3 := start(t, g)
	f2.Kill()
	if got := f2.Reap(cmd2); got != "signal: killed" {
		t.Errorf("Reap() = %q", got)
	}
	first := g.cmd
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	f4, cmd4 := start(t, g)
	if g.cmd == first || g.cmd == nil {
		t.Fatal("the guard was not replaced")
	}
	// The guard's input ends, as it does when we are killed.
	if err := g.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	for i, c := range []*exec.Cmd{cmd1, cmd3, cmd4} {
		if got := []*Family{f1, f3, f4}[i].Reap(c); got != "signal: killed" {
			t.Errorf("family %d ended with %q, want the guard to kill it", i, got)
		}
	}
}

// TestGuardLeavesStrangers removes a group before the guard's end.
func TestGuardLeavesStrangers(t *testing.T) {
	g := &Guard{}
	f, cmd := start(t, g)
	g.remove(f.pgid)
	guard := g.cmd
	g.Close()
	if state := guard.ProcessState; state == nil || !state.Success() {
		t.Errorf("the guard ended with %v", state)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a group that was removed is gone: %v", err)
	}
	f.Kill()
	f.Reap(cmd)
	g.Close()
}

// TestCommand finds commands as the child's environment says.
func TestCommand(t *testing.T) {
	tests := []struct {
		name, dir string
		env       []string
		found     bool
	}{
		{"sh", "", []string{"PATH=/nowhere:/bin:/usr/bin"}, true},
		{"sh", "", []string{"PATH=/bin:/usr/bin", "PATH=/nowhere"}, false},
		{"sh", "/bin", []string{"PATH=:."}, false},
		{"/bin/sh", "", nil, true},
		{"./sh", "/bin", nil, true},
		{"./sh", "/nowhere", nil, false},
		{"bin", "", []string{"PATH=/"}, false},
		{"/etc/passwd", "", nil, false},
	}
	for _, tt := range tests {
		cmd, err := Command(tt.name, []string{"a b"}, tt.dir, tt.env)
		if (err == nil) != tt.found {
			t.Errorf("Command(%q, dir %q, %q) = %v, want found: %v", tt.name, tt.dir, tt.env, err, tt.found)
		}
		if err == nil && !slices.Equal(cmd.Args, []string{tt.name, "a b"}) {
			t.Errorf("Command(%q) has arguments %q", tt.name, cmd.Args)
		}
	}
}
