// Package filelock locks files against other processes.
package filelock

import "errors"

// ErrLocked reports that a file is locked already.
var ErrLocked = errors.New("the file is locked")
