package main

import "syscall"

// endWithParent makes a process the first of a group of its own, and ends it with
// ours however ours ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
