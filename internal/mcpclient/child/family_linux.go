package child

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitZombie waits until the child has ended and leaves it to be reaped. It is
// false where the kernel does not let us.
func awaitZombie(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// dieWithUs is what remains where there is no guard: the kernel ends the child,
// not what it started, when we end.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
