//go:build unix && !linux && !darwin

package doctor

import "errors"

// disk returns an error: the state of the file system is not known.
func disk(string) (diskState, error) { return diskState{}, errors.ErrUnsupported }

// quarantined returns false: only macOS marks programs.
func quarantined(string) bool { return false }
