package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/atomicfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Options say how [Change] changes a file.
type Options struct {
	// First means that the file has no entry of this program before the change: a
	// backup that is there is from earlier, and is replaced.
	First bool

	// Last means that the file has no entry of this program after the change: the
	// backup is removed.
	Last bool

	// Secret means that the file will contain a secret: its mode becomes 0600.
	Secret bool
}

// backupSuffix is the end of the name of a backup. Users have files FILE.bak of their
// own, which must not be overwritten.
const backupSuffix = ".knowhow.bak"

// noFile is how a backup begins that stands for a missing file. No format reads it as
// an object, so no file with entries begins like it. The number of folders that were
// made for the file follows.
const noFile = "There was no file before knowhow added an entry.\n"

// missing returns the backup that stands for a missing file for which folders are made.
func missing(folders int) []byte {
	return fmt.Appendf(nil, "%sFolders made for it: %d\n", noFile, folders)
}

// isMissing reports whether a backup stands for a missing file, and how many folders
// were made for it.
func isMissing(backup []byte) (ok bool, folders int) {
	rest, ok := strings.CutPrefix(string(backup), noFile)
	if _, err := fmt.Sscanf(rest, "Folders made for it: %d\n", &folders); err != nil {
		folders = 0
	}
	return ok, folders
}

// Read returns the contents of the file at path; nil if there is none. Links are
// followed. What is no file, such as a pipe, is an error, as is a file of more than
// MaxSize bytes.
func Read(path string) ([]byte, error) {
	data, _, err := read(path)
	return data, err
}

// Backup returns the backup of the file at path, for [Undo]; nil if there is none.
func Backup(path string) ([]byte, error) {
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	data, _, err := read(real + backupSuffix)
	return data, err
}

// Change changes the file at path: it calls change with the bytes of the file,
// nil if there is none, and writes the result. A result of nil removes the file.
// If the result is what the file has, nothing is written.
//
// Links are followed. The file is replaced in one step, so that it has the old
// bytes or the new ones at any time. It keeps its permissions; a new file has
// mode 0600. If another program writes the file at the same time, Change begins
// again. Errors in the file, of type [Error], get its name.
func Change(path string, o Options, change func(old []byte) ([]byte, error)) error {
	const attempts = 5
	for range attempts {
		err := tryChange(path, o, change)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("writing %s: another program is writing the file; close it and try again: %w", path,
		errkind.Conflict)
}

// errChanged means that a file was changed after it was read.
var errChanged = errors.New("the file was changed")

// tryChange changes a file, or returns errChanged.
func tryChange(path string, o Options, change func(old []byte) ([]byte, error)) error {
	real, err := resolve(path)
	if err != nil {
		return err
	}
	old, mode, err := read(real)
	if err != nil {
		return err
	}
	backup, backupMode, err := read(real + backupSuffix)
	if err != nil {
		return err
	}
	changed, err := change(old)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.File == "" {
			named := *e
			named.File = path
			return &named
		}
		return fmt.Errorf("changing %s: %w", path, err)
	}
	if bytes.Equal(old, changed) && (old == nil) == (changed == nil) {
		if backup != nil && o.Last && !onlyCopy(old, backup) {
			return removeBackup(path, real)
		}
		return nil
	}
	if mode&0o200 == 0 {
		return fmt.Errorf("writing %s: the file is read-only: %w", path, errkind.Denied)
	}
	folders, err := makeFolders(filepath.Dir(real))
	if err != nil {
		return writeError(path, err)
	}
	wasMissing, made := isMissing(backup)
	done := backup != nil && (changed != nil && bytes.Equal(backup, changed) || changed == nil && wasMissing ||
		o.Last && !onlyCopy(changed, backup))
	// Without the file, the backup may be the last copy of one that someone removed.
	if !done && changed != nil && (backup == nil || o.First && (old != nil || wasMissing)) {
		if backup != nil && backupMode&0o200 == 0 {
			return fmt.Errorf("writing %s%s: the file is read-only: %w", path, backupSuffix, errkind.Denied)
		}
		was := old
		if old == nil {
			was = missing(folders)
		}
		if err := replace(real+backupSuffix, backup, was, mode); err != nil {
			return writeError(path+backupSuffix, err)
		}
	}
	if o.Secret {
		mode = 0o600
	}
	if err := replace(real, old, changed, mode); err != nil {
		return writeError(path, err)
	}
	if !done {
		return nil
	}
	if err := removeBackup(path, real); err != nil {
		return err
	}
	if changed == nil {
		for dir := filepath.Dir(real); made > 0; dir, made = filepath.Dir(dir), made-1 {
			if os.Remove(dir) != nil { // not empty
				break
			}
		}
	}
	return nil
}

// removeBackup removes the backup of the file at path, which links lead to real.
func removeBackup(path, real string) error {
	if err := os.Remove(real + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writeError(path+backupSuffix, err)
	}
	return nil
}

// onlyCopy reports whether a backup has values and the file has none, so that the
// backup may be the last copy of them.
func onlyCopy(data, backup []byte) bool {
	if ok, _ := isMissing(backup); ok {
		return false
	}
	empty := func(data []byte) bool { return len(bytes.Trim(data, "{} \t\r\n")) == 0 }
	return empty(data) && !empty(backup)
}

// makeFolders makes a folder and its parents, and returns how many were missing.
func makeFolders(dir string) (made int, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(d) == d {
			break
		}
		made++
	}
	return made, os.MkdirAll(dir, 0o700)
}

// replace replaces the bytes of a file, which must still be old.
func replace(path string, old, changed []byte, mode fs.FileMode) error {
	var t *atomicfile.Temporary
	if changed != nil {
		var err error
		if t, err = atomicfile.Prepare(path, changed, mode); err != nil {
			return err
		}
		defer t.Remove()
	}
	now, _, err := read(path)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(now, old) || (now == nil) != (old == nil):
		return errChanged
	case changed == nil:
		return os.Remove(path)
	}
	return t.Commit()
}

// resolve follows links, also to a file that does not exist yet.
func resolve(path string) (string, error) {
	real, err := atomicfile.Resolve(path)
	if err != nil {
		return "", readError(path, err)
	}
	return real, nil
}

// read returns the bytes and the permissions of a file; nil and 0600 if there is
// none.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, readError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("reading %s: not a file: %w", path, errkind.Invalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, readError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, 0, readError(path, err)
	}
	if len(data) > MaxSize {
		return nil, 0, &Error{File: path, Reason: tooLarge}
	}
	return data, info.Mode().Perm(), nil
}

// readError returns the error for a file that cannot be read.
func readError(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("reading %s: permission denied; change the permissions of the file or its folder: %w", path,
			errkind.Denied)
	}
	return fmt.Errorf("reading %s: %w", path, err)
}

// writeError returns the error for a file that cannot be written.
func writeError(path string, err error) error {
	switch {
	case errors.Is(err, errChanged):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("writing %s: permission denied; change the permissions of its folder: %w", path,
			errkind.Denied)
	}
	return fmt.Errorf("writing %s: %w", path, err)
}
