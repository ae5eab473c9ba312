//go:build !unix

package configfile

import "os"

// keepOwner does nothing: the system has no owners that a program sets.
func keepOwner(*os.File, string) error { return nil }
