package logfile

import (
	"os"

	"golang.org/x/sys/windows"
)

// openFile opens or creates the file at path for appending and reading. Unlike one that package
// os opens, it can be renamed meanwhile.
func openFile(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	const (
		access = windows.FILE_APPEND_DATA | windows.FILE_READ_DATA | windows.FILE_READ_ATTRIBUTES | windows.SYNCHRONIZE
		share  = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	)
	file, err := windows.CreateFile(name, access, share, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(file), path), nil
}
