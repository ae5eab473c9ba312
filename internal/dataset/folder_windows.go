package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

// lockFolder locks a folder, also under another name, until release is called or
// the process ends. ok is false if another process has locked it. The error is
// one of the file system: it is on another machine, or the folder does not exist.
//
// Windows has no locks for folders: the lock is a mutex that is named after the
// identity of the folder. It exists as long as a process has it open.
func lockFolder(path string) (release func(), ok bool, err error) {
	release = func() {}
	id, err := folderID(path)
	if err != nil {
		return release, false, err
	}
	name, err := windows.UTF16PtrFromString(`Global\knowhow-folder-` + id)
	if err != nil {
		return release, false, err
	}
	mutex, err := windows.CreateMutex(nil, false, name)
	switch {
	case errors.Is(err, windows.ERROR_ALREADY_EXISTS):
		return release, false, windows.CloseHandle(mutex)
	case errors.Is(err, windows.ERROR_ACCESS_DENIED): // that of another user
		return release, false, nil
	case err != nil:
		return release, false, err
	}
	return sync.OnceFunc(func() { _ = windows.CloseHandle(mutex) }), true, nil
}

// folderID returns the number of a folder on this machine.
func folderID(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return "", err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "", errors.ErrUnsupported
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	// The folder can be renamed meanwhile.
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	folder, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer windows.CloseHandle(folder)
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(folder, &info); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fmt.Sprintf("%08x-%08x%08x", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow), nil
}

// rename renames a folder. Windows refuses that as long as a file in the folder is
// open, for example while another process loads the dataset or looks for viruses,
// so it is tried again for about two seconds.
func rename(from, to string) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := os.Rename(from, to)
		inUse := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !inUse || wait > time.Second {
			return err
		}
		time.Sleep(wait)
	}
}
