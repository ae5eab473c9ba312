package ingest

import (
	"io/fs"
	"syscall"
)

// Attributes of files whose content OneDrive and the like have not stored on this
// machine; see winnt.h.
const (
	offline            = 0x00001000 // FILE_ATTRIBUTE_OFFLINE
	recallOnOpen       = 0x00040000 // FILE_ATTRIBUTE_RECALL_ON_OPEN
	recallOnDataAccess = 0x00400000 // FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS
)

// inCloud reports whether reading a file would download it.
func inCloud(info fs.FileInfo) bool {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	return ok && data.FileAttributes&(offline|recallOnOpen|recallOnDataAccess) != 0
}
