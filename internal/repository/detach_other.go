//go:build !unix

package repository

import "os/exec"

// detach does nothing: without a console window, git cannot ask a question.
func detach(*exec.Cmd) (kill func()) { return func() {} }
