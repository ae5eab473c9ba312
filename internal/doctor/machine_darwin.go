package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// networks are the names of file systems of other machines.
var networks = map[string]string{"nfs": "NFS", "smbfs": "SMB", "afpfs": "AFP", "webdav": "WebDAV"}

// disk describes the file system of a folder.
func disk(dir string) (diskState, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return diskState{}, err
	}
	if s.Blocks == 0 { // a file system without a disk, such as /proc
		return diskState{}, errors.ErrUnsupported
	}
	return diskState{free: s.Bavail * uint64(s.Bsize), files: s.Ffree, limited: s.Files > 0,
		network: networks[unix.ByteSliceToString(s.Fstypename[:])]}, nil
}

// quarantined reports whether a program is marked as downloaded.
func quarantined(path string) bool {
	n, err := unix.Getxattr(path, "com.apple.quarantine", nil)
	return err == nil && n > 0
}
