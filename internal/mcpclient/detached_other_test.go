//go:build !linux

package mcpclient

import "os/exec"

// detach does nothing: only on Linux are processes found that have left their
// group.
func detach(*exec.Cmd) {}
