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
// namespaces for processes, the network and the mounts of its own. When it ends,
// so does every process that it has started.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS}
}
