//go:build !unix

package atomicfile

import "os"

// keepOwner does nothing: the system has no owners that a program sets.
func keepOwner(*os.File, string) error { return nil }

// inheritOwner does nothing.
func inheritOwner(*os.File) error { return nil }
