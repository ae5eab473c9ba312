package ingest

import (
	"io/fs"
	"syscall"
)

// dataless is the flag SF_DATALESS of sys/stat.h: the file system has the name of a file
// and not its content, as iCloud leaves it when the disk is full.
const dataless = 0x40000000

// inCloud reports whether reading a file would download it.
func inCloud(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Flags&dataless != 0
}
