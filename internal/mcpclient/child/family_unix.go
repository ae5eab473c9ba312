//go:build unix

package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// A Family is a child and all of its descendants: a process group with the
// child as its leader.
type Family struct {
	pgid  int
	guard *Guard
	mark  string // in the environment of all members; "" for none

	mu   sync.Mutex
	gone bool // the leader is reaped, and its number may be reused
}

// Command finds a command on the PATH of env, for running in dir, and returns
// it ready for [Start]. The error states what to do and is final.
func Command(name string, args []string, dir string, env []string) (*exec.Cmd, error) {
	file := name
	if !strings.Contains(name, "/") {
		file = search(name, lookIn(env, "PATH", func(a, b string) bool { return a == b }))
	} else if !runnable(at(dir, name)) {
		file = ""
	}
	if file == "" {
		return nil, notFound(name)
	}
	return &exec.Cmd{Path: file, Args: append([]string{name}, args...), Env: env, Dir: dir}, nil
}

// at returns the path relative to dir.
func at(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// search looks for a command in the folders of a PATH. Relative folders are
// ignored, because they depend on the working directory.
func search(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(file) {
			return file
		}
	}
	return ""
}

func runnable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// Start starts cmd as the leader of a new process group and adds it to the
// guard.
func Start(cmd *exec.Cmd, g *Guard) (*Family, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	mark, running := g.ready()
	if !running {
		dieWithUs(cmd.SysProcAttr)
	}
	if mark != "" {
		cmd.Env = append(cmd.Environ(), markName+"="+mark)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &Family{pgid: cmd.Process.Pid, guard: g, mark: mark}
	g.add(f.pgid)
	return f, nil
}

// Reap waits for the end of the leader, kills the rest of the group and (on
// Linux only) the processes that have left the group, and returns how the
// leader ended.
func (f *Family) Reap(cmd *exec.Cmd) string {
	// Until the leader is reaped its number is not reused, so that the signal
	// and the guard cannot hit the group of another program.
	zombie := awaitZombie(f.pgid)
	if !zombie {
		_ = cmd.Wait() // the state contains the result
	}
	f.Kill()
	f.guard.remove(f.pgid)
	f.mu.Lock()
	f.gone = true
	f.mu.Unlock()
	if zombie {
		_ = cmd.Wait()
	}
	if f.mark != "" {
		endOrphans(func(environ []byte) bool { return hasMark(environ, f.mark) })
	}
	if cmd.ProcessState == nil {
		return "in an unknown way"
	}
	return cmd.ProcessState.String()
}

// Terminate asks all members of the group to end.
func (f *Family) Terminate() { f.signal(syscall.SIGTERM) }

// Kill ends all members of the group.
func (f *Family) Kill() { f.signal(syscall.SIGKILL) }

func (f *Family) signal(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone {
		_ = syscall.Kill(-f.pgid, sig) // an error means that the group has ended
	}
}
