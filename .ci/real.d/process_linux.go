package main

import "syscall"

// endWithParent makes a process the leader of a new group, and ends it when
// this process ends for any reason.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// newNetwork is endWithParent with a network namespace of its own.
func newNetwork() *syscall.SysProcAttr {
	attr := endWithParent()
	attr.Cloneflags = syscall.CLONE_NEWNET
	return attr
}

// ownNamespaces returns attributes of a process that ends with this one and has
// namespaces for the network and the mounts of its own.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
}
