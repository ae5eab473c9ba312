package doctor

import (
	"strings"

	"golang.org/x/sys/windows"
)

// writable returns nil: the rights of Windows cannot be asked for without a change.
func writable(string) error { return nil }

// alive reports whether a process runs.
func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return err == windows.ERROR_ACCESS_DENIED
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err != nil || event == uint32(windows.WAIT_TIMEOUT)
}

// disk describes the file system of a folder.
func disk(dir string) (diskState, error) {
	var s diskState
	if strings.HasPrefix(dir, `\\`) && !strings.HasPrefix(dir, `\\?\`) || strings.HasPrefix(dir, `\\?\UNC\`) {
		s.network = "a shared folder"
	}
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return s, err
	}
	return s, windows.GetDiskFreeSpaceEx(path, &s.free, nil, nil)
}

// listener returns "": the process is not known.
func listener(int) string { return "" }

// quarantined returns false: only macOS marks programs.
func quarantined(string) bool { return false }

// watches returns 0: the number of folders is not limited.
func watches() int { return 0 }
