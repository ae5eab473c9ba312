//go:build !linux

package dataset

import "errors"

// exchange exchanges two folders in one step, which this system cannot do.
func exchange(a, b string) error { return errors.ErrUnsupported }
