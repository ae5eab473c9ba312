package child

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitZombie waits until the child has ended, without reaping it. It returns
// false if the kernel does not permit it.
func awaitZombie(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// dieWithUs is used if there is no guard: the kernel ends the child, but not
// its descendants, when this program ends.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
