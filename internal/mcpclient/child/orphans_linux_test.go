package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
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
	cmd, err := Command("sh", []string{"-c", "p=$(sh -c 'sh -c : >/dev/null & echo $!'); echo $p; read y"}, "", []string{"PATH=/bin:/usr/bin"})
	if err != nil {
		t.Skip("no shell here")
	}
	in, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = in, w
	f, err := Start(cmd, g)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	w.Close()
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
	for deadline := time.Now().Add(10 * time.Second); !awaitZombie(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is not our child", pid)
		}
	}
	stat := func() []byte { b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); return b }
	if !bytes.Contains(stat(), []byte(") Z ")) {
		t.Errorf("process %d is no zombie: %s", pid, stat())
	}
	endOrphans(func([]byte) bool { return false })
	if s := stat(); s != nil {
		t.Errorf("the zombie was not reaped: %s", s)
	}
	end.Close()
	f.Reap(cmd)
}
