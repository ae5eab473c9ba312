package main

import "syscall"

// endWithParent makes a process the leader of a new group, and ends it when
// this process ends for any reason.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
