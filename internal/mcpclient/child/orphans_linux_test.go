package child

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// everything is what endOrphans must never be asked for in earnest.
func everything([]byte) bool { return true }

// TestOrphansAreNotStolen starts and waits for programs while orphans are ended
// all the time: every Wait has its status.
func TestOrphansAreNotStolen(t *testing.T) {
	g := &Guard{}
	defer g.Close()
	if mark, running := g.ready(); !running || mark == "" {
		t.Skip("no shell here, or no descriptors of processes")
	}
	stop := make(chan struct{})
	var sweeping, waiting sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				endOrphans(everything)
			}
		}
	})
	for i := range 4 {
		waiting.Go(func() {
			for range 10 {
				cmd := exec.Command("/bin/sh", "-c", fmt.Sprint("exit ", i))
				if err := cmd.Start(); err != nil {
					t.Error(err)
					continue
				}
				_ = awaitZombie(cmd.Process.Pid) // the zombie lies there for a while
				endOrphans(everything)
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != i {
					t.Errorf("exit status %d (%v), want %d", got, cmd.ProcessState, i)
				}
			}
		})
	}
	waiting.Wait()
	close(stop)
	sweeping.Wait()
}

// TestZombiesAreReaped leaves an orphan of a family that still runs, which ends.
func TestZombiesAreReaped(t *testing.T) {
	g := &Guard{}
	defer g.Close()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	in, end := pipe()
	orphanIn, endOrphan := pipe()
	out, w := pipe()
	cmd, err := Command("sh", []string{"-c",
		"p=$(sh -c 'sh -c \"read x <&3\" >/dev/null & echo $!'); echo $p; read y 3<&-"}, "",
		[]string{"PATH=/bin:/usr/bin"})
	if err != nil {
		t.Skip("no shell here")
	}
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = in, w, []*os.File{orphanIn}
	f, err := Start(cmd, g)
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 20)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	// Its parent has closed its output and is about to end.
	for deadline := time.Now().Add(10 * time.Second); !slices.Contains(processes()[os.Getpid()],
		pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is not our child", pid)
		}
	}
	endOrphan.Close()
	if !awaitZombie(pid) {
		t.Fatalf("process %d did not become a zombie", pid)
	}
	endOrphans(func([]byte) bool { return false })
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		t.Errorf("the zombie was not reaped: %s", stat)
	}
	end.Close()
	f.Reap(cmd)
}
