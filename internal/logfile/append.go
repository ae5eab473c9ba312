package logfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// An appendFile appends lines to a file that other processes may append to,
// rename and replace at the same time.
//
// Every line is one write to a file opened for appending, which the system does
// not split. Before each line, the file is looked up by its name, so that a
// process notices when another one has renamed it. A line that is being written
// during a rename ends up in the renamed file, but is not lost.
type appendFile struct {
	path     string
	maxBytes int64 // the size at which the file is renamed; 0 means never
	fallback io.Writer

	mu     sync.Mutex
	f      *os.File // nil after close
	closed bool
}

// openAppend opens or creates the file at path.
func openAppend(path string, maxBytes int64, fallback io.Writer) (*appendFile, error) {
	a := &appendFile{path: path, maxBytes: maxBytes, fallback: fallback}
	if err := a.open(); err != nil {
		return nil, err
	}
	if err := a.follow(0); err != nil {
		return nil, err
	}
	return a, nil
}

// open opens the file and closes the previous one.
func (a *appendFile) open() error {
	f, err := openFile(a.path)
	if err != nil {
		return err
	}
	if a.f != nil {
		a.f.Close()
	}
	a.f = f
	return nil
}

// Write appends one line. If that fails, the line is written to the fallback.
func (a *appendFile) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return a.fallback.Write(line)
	}
	err := a.follow(len(line))
	if err == nil {
		_, err = a.f.Write(line)
	}
	if err != nil {
		return a.fallback.Write(line)
	}
	return len(line), nil
}

// follow makes a.f the file with the configured name. It first renames that
// file if n more bytes would exceed the limit or if the file is of another day.
// Errors of renaming are ignored: the file then grows beyond the limit.
func (a *appendFile) follow(n int) error {
	mine, err := a.f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(a.path)
	if err != nil || !os.SameFile(mine, named) {
		if err := a.open(); err != nil {
			return err
		}
		if named, err = a.f.Stat(); err != nil {
			return err
		}
	}
	if !a.due(named, n) || !a.rename(n) {
		return nil
	}
	return a.open()
}

// due reports whether the file must be renamed before n more bytes are written.
func (a *appendFile) due(file os.FileInfo, n int) bool {
	if a.maxBytes == 0 || file.Size() == 0 {
		return false
	}
	return file.Size()+int64(n) > a.maxBytes || file.ModTime().Format(time.DateOnly) < time.Now().Format(time.DateOnly)
}

// rename renames the file after its last change, and reports whether it did. It
// does nothing if another process has renamed it or is renaming it.
func (a *appendFile) rename(n int) bool {
	lock := flock.New(a.path + ".lock")
	if ok, err := lock.TryLock(); !ok || err != nil {
		return false
	}
	defer lock.Close()
	file, err := os.Stat(a.path)
	if err != nil || !a.due(file, n) {
		return false
	}
	base := strings.TrimSuffix(filepath.Base(a.path), ".log")
	stamp := file.ModTime().Format(stampLayout)
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s-%s.log", base, stamp)
		if i > 1 {
			name = fmt.Sprintf("%s-%s-%d.log", base, stamp, i)
		}
		target := filepath.Join(filepath.Dir(a.path), name)
		if _, err := os.Lstat(target); os.IsNotExist(err) {
			return os.Rename(a.path, target) == nil
		} else if err != nil {
			return false
		}
	}
}

// close closes the file.
func (a *appendFile) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.f.Close()
}
