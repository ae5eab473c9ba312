//go:build !windows

package logfile

import "os"

// openFile opens or creates the file at path for appending and reading.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}
