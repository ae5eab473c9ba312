//go:build !linux

package main

import "syscall"

// endWithParent makes a process the leader of a new group. On this system only
// stop ends it.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
