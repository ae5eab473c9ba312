//go:build unix

package repository

import (
	"os/exec"
	"syscall"
)

// detach lets git and the programs that it starts run without a terminal, so that
// none can ask a question, and end together.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
