//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// awaitZombie returns false: these systems have no reliable way to wait for a
// child without reaping it. The rest of the group is killed right afterwards.
func awaitZombie(int) bool { return false }

// dieWithUs does nothing: these systems do not signal the death of the parent.
func dieWithUs(*syscall.SysProcAttr) {}

// becomeSubreaper returns false: on these systems, init adopts orphans.
func becomeSubreaper(*os.Process) bool { return false }

// endOrphans does nothing.
func endOrphans(func([]byte) bool) {}
