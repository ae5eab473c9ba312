//go:build unix

package repository

import (
	"os/exec"
	"syscall"
)

// detach lets git and the programs that it starts run without a terminal, so that
// none can ask a question, and end together. kill ends those of them that ignore the
// request to end; it must be called after cmd has run.
func detach(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error means that all have ended
		}
	}
}
