//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// awaitZombie is false: these systems have no dependable way to wait for a child
// without reaping it. What is left of the group is killed right afterwards.
func awaitZombie(int) bool { return false }

// dieWithUs does nothing: these systems have no signal at the parent's death.
func dieWithUs(*syscall.SysProcAttr) {}

// becomeSubreaper is false: these systems give orphans to init.
func becomeSubreaper(*os.Process) bool { return false }

// endOrphans does nothing.
func endOrphans(func([]byte) bool) {}
