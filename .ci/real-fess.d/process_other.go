//go:build !linux

package main

import "syscall"

// endWithParent makes a process the first of a group of its own. There is no
// means here to end it with ours, other than stop.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
