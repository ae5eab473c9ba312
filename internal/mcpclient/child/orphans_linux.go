package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sweepTime = time.Second            // time limit for finding orphans
	deathTime = 100 * time.Millisecond // how long to wait for the death of a killed orphan

	// nonblock distinguishes our descriptors from those of package os, and
	// makes waiting return at once.
	nonblock = unix.PIDFD_NONBLOCK
)

// becomeSubreaper makes orphans among our descendants our children, in any
// group and session (PR_SET_CHILD_SUBREAPER in prctl(2)). It reports whether it
// did. started is any process that package os has started. If it cannot be
// distinguished from an orphan, no orphan could be. This requires Linux 5.10
// and /proc.
func becomeSubreaper(started *os.Process) bool {
	fd, err := unix.PidfdOpen(started.Pid, nonblock)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return slices.Contains(processes()[os.Getpid()], started.Pid) && slices.Contains(waitedFor(), started.Pid) &&
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// An orphan is a child that this program did not start.
type orphan struct{ pid, fd int }

// reap reaps the zombie of an orphan. It returns false if the orphan has not
// ended.
func (o orphan) reap() bool {
	err := unix.Waitid(unix.P_PIDFD, o.fd, nil, unix.WEXITED, nil) // EAGAIN: nonblock
	return err == nil || errors.Is(err, unix.ECHILD)
}

// environ returns the environment with which the orphan was started, or nil if
// it cannot be read.
func (o orphan) environ() []byte {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", o.pid))
	if err != nil {
		return nil
	}
	return env
}

// kill ends the orphan and waits briefly until it has ended.
func (o orphan) kill() {
	_ = unix.PidfdSendSignal(o.fd, unix.SIGKILL, nil, 0)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}, int(deathTime.Milliseconds()))
	o.reap()
}

// orphans calls do for every orphan.
//
// Package os keeps a descriptor of each process that it started until its Wait
// has returned. So a child without such a descriptor is an orphan. Our own
// descriptor is opened first: it refers to the same process even if the process
// ends and its number is reused.
func orphans(children []int, do func(orphan)) {
	var found []orphan
	for _, pid := range children {
		if fd, err := unix.PidfdOpen(pid, nonblock); err == nil {
			found = append(found, orphan{pid, fd})
			defer unix.Close(fd)
		}
	}
	if len(found) == 0 {
		return
	}
	waited := waitedFor()
	for _, o := range found {
		if !slices.Contains(waited, o.pid) {
			do(o)
		}
	}
}

// waitedFor returns the processes of which package os has a descriptor.
func waitedFor() []int {
	var pids []int
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		pid, flags := 0, 0
		for line := range strings.Lines(string(info)) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
			case "Pid":
				pid, _ = strconv.Atoi(strings.TrimSpace(value))
			case "flags":
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 8, 64)
				flags = int(n)
			}
		}
		if pid > 0 && flags&nonblock == 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes returns all processes by their parents.
func processes() map[int][]int {
	tree := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		// The name of the program, in parentheses, may contain any characters.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			tree[parent] = append(tree[parent], pid)
		}
	}
	return tree
}

// endOrphans ends the orphans whose environment is accepted by theirs, and all
// of their descendants. It also reaps the zombies of all orphans.
func endOrphans(theirs func(environ []byte) bool) {
	kin := map[int]bool{} // descendants of the killed processes
	for limit, again := time.Now().Add(sweepTime), true; again && time.Now().Before(limit); {
		again = false
		tree := processes()
		orphans(tree[os.Getpid()], func(o orphan) {
			if o.reap() || !kin[o.pid] && !theirs(o.environ()) {
				return
			}
			again = true // its children are now children of this program
			for todo := tree[o.pid]; len(todo) > 0; todo = todo[1:] {
				kin[todo[0]] = true
				todo = append(todo, tree[todo[0]]...)
			}
			o.kill()
		})
	}
}
