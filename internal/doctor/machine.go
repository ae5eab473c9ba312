package doctor

import "os"

// A machine is what the checks ask of the operating system besides files. Tests replace
// its functions, because the faults that they report cannot be made everywhere.
type machine struct {
	// writable returns an error unless this process may make files in a folder.
	writable func(dir string) error

	// disk describes the file system of a folder.
	disk func(dir string) (diskState, error)

	// alive reports whether a process of this machine runs.
	alive func(pid int) bool

	// listener describes the process that listens on a port of this machine, or returns "".
	listener func(port int) string

	// quarantined reports whether macOS has marked a program as downloaded.
	quarantined func(path string) bool

	// watches returns how many folders this user may watch for changes; 0 if it is not
	// known or not limited.
	watches func() int

	host string // name of the machine
}

// A diskState is the state of a file system.
type diskState struct {
	free    uint64 // bytes that this user may still use
	files   uint64 // files that can still be made; meaningless without limited
	limited bool   // the number of files is limited
	network string // name of the kind of a file system on another machine; "" for others
}

// orThis returns the machine with the functions of the real one where it has none.
func (m machine) orThis() machine {
	if m.writable == nil {
		m.writable = writable
	}
	if m.disk == nil {
		m.disk = disk
	}
	if m.alive == nil {
		m.alive = alive
	}
	if m.listener == nil {
		m.listener = listener
	}
	if m.quarantined == nil {
		m.quarantined = quarantined
	}
	if m.watches == nil {
		m.watches = watches
	}
	if m.host == "" {
		m.host, _ = os.Hostname()
	}
	return m
}
