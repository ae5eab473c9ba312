//go:build !darwin && !windows

package ingest

import "io/fs"

// inCloud returns false: it is not known on this system.
func inCloud(fs.FileInfo) bool { return false }
