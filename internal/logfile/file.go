package logfile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// FileOptions configure a File.
type FileOptions struct {
	Path string // its folder must exist

	// MaxBytes is the size at which the file is renamed and a new one is begun. With
	// 0 it is never renamed. Otherwise it is also renamed when it is of another day.
	MaxBytes int64

	// Exclusive keeps other processes from opening the same file, also under its
	// future names, as long as this one has it open. So a part of a line can be
	// removed.
	Exclusive bool
}

// A File is a file of lines that is looked up by its name before each line, because
// others may rename or remove it at any time. Unless it is exclusive, other processes
// may append to it.
//
// Every line is one write to a file opened for appending, which the system does not
// split. If only a part of it is written, for example because the disk is full, the part
// is removed, or the next line begins on a line of its own. A line that is being written
// during a rename ends up in the renamed file, but is not lost.
//
// A renamed file is named after its last change: server.log becomes
// server-2026-11-21_23-59-01.log. The methods are safe for concurrent use.
type File struct {
	path      string
	maxBytes  int64
	exclusive *flock.Flock // held while the file is open; nil if others may append

	mu     sync.Mutex
	file   *os.File // nil until it is opened
	torn   bool     // the file ends with a part of a line
	closed bool
}

// OpenFile opens or creates a file. The error is of kind Conflict if another process has
// opened it as its own. The caller must close the File.
func OpenFile(o FileOptions) (*File, error) {
	f := &File{path: o.Path, maxBytes: o.MaxBytes}
	if o.Exclusive {
		f.exclusive = flock.New(f.path+lockSuffix, flock.SetPermissions(0o600))
		if ok, err := f.exclusive.TryLock(); err != nil {
			return nil, err
		} else if !ok {
			return nil, fmt.Errorf("another process writes %s: %w", f.path, errkind.Conflict)
		}
	}
	err := f.open()
	if err == nil {
		_, err = f.follow(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockSuffix is the end of the name of the file that is locked to rename a file, or to
// own it.
const lockSuffix = ".lock"

// open opens the file and closes the previous one.
func (f *File) open() error {
	file, err := openFile(f.path)
	if err != nil {
		return err
	}
	if f.file != nil {
		f.file.Close()
	}
	f.file, f.torn = file, false
	if f.exclusive == nil {
		return nil // the end may be a line that another process is writing
	}
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		_, err := file.ReadAt(last, info.Size()-1)
		f.torn = err == nil && last[0] != '\n'
	}
	return nil
}

// Write appends one line, which must end with a line feed.
func (f *File) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, err := f.follow(len(line))
	if err != nil {
		return 0, err
	}
	out := line
	if f.torn {
		out = append([]byte{'\n'}, line...)
	}
	n, err := f.file.Write(out)
	if err == nil {
		f.torn = false
		return len(line), nil
	}
	if n > 0 && (f.exclusive == nil || f.file.Truncate(size) != nil) {
		f.torn = true
	}
	return 0, err
}

// Check returns the reason if a line of at most 64 KiB could not be written now, as far
// as that can be found without writing one: it looks for the file, and creates and
// removes a file of that size beside it.
func (f *File) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.follow(0); err != nil {
		return err
	}
	room, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".check-*")
	if err != nil {
		return err
	}
	defer os.Remove(room.Name())
	_, err = room.Write(make([]byte, longestLine))
	return cmp.Or(err, room.Close())
}

// follow makes f.file the file with the configured name, and returns its size. It first
// renames that file if n more bytes would exceed the limit or if the file is of another
// day. Errors of renaming are ignored: the file then grows beyond the limit.
func (f *File) follow(n int) (int64, error) {
	if f.closed {
		return 0, os.ErrClosed
	}
	mine, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	named, err := os.Stat(f.path)
	if err != nil || !os.SameFile(mine, named) {
		if err := f.open(); err != nil {
			return 0, err
		}
		if named, err = f.file.Stat(); err != nil {
			return 0, err
		}
	}
	if !f.due(named, n) || !f.rename(n) {
		return named.Size(), nil
	}
	return 0, f.open()
}

// due reports whether the file must be renamed before n more bytes are written.
func (f *File) due(file os.FileInfo, n int) bool {
	if f.maxBytes == 0 || file.Size() == 0 {
		return false
	}
	return file.Size()+int64(n) > f.maxBytes || file.ModTime().Format(time.DateOnly) < time.Now().Format(time.DateOnly)
}

// rename renames the file after its last change, and reports whether it did. It
// does nothing if another process has renamed it or is renaming it.
func (f *File) rename(n int) bool {
	if f.exclusive == nil {
		lock := flock.New(f.path + lockSuffix)
		if ok, err := lock.TryLock(); !ok || err != nil {
			return false
		}
		defer lock.Close()
	}
	file, err := os.Stat(f.path)
	if err != nil || !f.due(file, n) {
		return false
	}
	extension := filepath.Ext(f.path)
	base := strings.TrimSuffix(f.path, extension)
	stamp := file.ModTime().Format(stampLayout)
	for i := 1; ; i++ {
		target := fmt.Sprintf("%s-%s%s", base, stamp, extension)
		if i > 1 {
			target = fmt.Sprintf("%s-%s-%d%s", base, stamp, i, extension)
		}
		if _, err := os.Lstat(target); os.IsNotExist(err) {
			return os.Rename(f.path, target) == nil
		} else if err != nil {
			return false
		}
	}
}

// Close closes the file. A Write after that fails.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	if f.exclusive != nil {
		err = cmp.Or(err, f.exclusive.Close())
	}
	return err
}
