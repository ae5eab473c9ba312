package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// dataChecks returns the checks of the data folder.
func (e *examiner) dataChecks() []check {
	return []check{{"data folder", e.data}, {"disk", e.disk}, {"index", e.index}}
}

// data checks whether the data folder can be used.
func (e *examiner) data(context.Context) []Finding {
	const subject = "data folder"
	if e.Data == "" {
		return []Finding{{Level: Error, Subject: subject, Message: "it is not known, because the home folder is not",
			Fix: "Set HOME, or name a data folder with --data or KNOWHOW_DATA."}}
	}
	info, err := os.Stat(e.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{e.missingData()}
	case err != nil:
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s cannot be read: %s", e.Data,
			pathReason(err)),
			Fix: "Change the permissions of the folders above it, or name another one with --data or KNOWHOW_DATA."}}
	case !info.IsDir():
		return []Finding{{Level: Error, Subject: subject, Message: fmt.Sprintf("%s is a file, where a folder should be",
			e.Data),
			Fix: "Move it away, or name a folder with --data or KNOWHOW_DATA."}}
	}
	findings := e.permissions(info)
	for _, name := range []string{index.FileName, index.FileName + "-wal", index.FileName + "-shm"} {
		if f := e.indexFile(filepath.Join(e.Data, name)); f != nil {
			findings = append(findings, *f)
		}
	}
	if len(findings) == 0 {
		findings = append(findings, ok(subject, "%s can be read and written", e.Data))
	}
	return findings
}

// pathReason returns the error of a system call without the path.
func pathReason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// missingData checks whether a data folder that does not exist can be made.
func (e *examiner) missingData() Finding {
	const subject = "data folder"
	if link, err := os.Lstat(e.Data); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		return Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("%s is a link to a folder that does not exist", e.Data),
			Fix:     "Connect the disk that it leads to, or remove the link."}
	}
	dir := filepath.Dir(e.Data)
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Finding{Level: Error, Subject: subject,
				Message: fmt.Sprintf("%s cannot be made, because %s is not a folder that can be read", e.Data, dir),
				Fix:     "Name another folder with --data or KNOWHOW_DATA."}
		}
		if err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	if err := e.machine.writable(dir); err != nil {
		return Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("%s does not exist and cannot be made in %s: %v", e.Data, dir, err),
			Fix: fmt.Sprintf("Change the permissions of %s, or name another data folder with --data or KNOWHOW_DATA.",
				dir)}
	}
	return ok(subject, "%s does not exist yet; %q makes it", e.Data, e.Program+" serve FOLDER")
}

// Permissions of the data folder and its files.
const (
	ownFolder  = 0o700 // what the owner needs
	ownFile    = 0o600
	forOthers  = 0o007
	groupWrite = 0o020
)

// permissions checks the permissions of the data folder.
func (e *examiner) permissions(info fs.FileInfo) (findings []Finding) {
	const subject = "data folder"
	if e.GOOS == "windows" { // its permissions are others
		return nil
	}
	mode := info.Mode().Perm()
	repair := func(context.Context) (string, error) {
		if err := os.Chmod(e.Data, ownFolder); err != nil {
			return "", errors.New(pathReason(err))
		}
		return fmt.Sprintf("the permissions of %s are %04o now", e.Data, ownFolder), nil
	}
	command := fmt.Sprintf("chmod %o %s", ownFolder, e.word(e.Data))
	if err := e.machine.writable(e.Data); err != nil || mode&ownFolder != ownFolder {
		what := "its owner may not read and write it"
		f := Finding{Level: Error, Subject: subject,
			Fix: "Name another one with --data or KNOWHOW_DATA, or type: " + command}
		if mode&ownFolder != ownFolder {
			f.repair = repair
		} else {
			what = err.Error()
			f.Fix = fmt.Sprintf("Make this user its owner, make the disk writable, or name another one with %s.",
				"--data or KNOWHOW_DATA")
		}
		f.Message = fmt.Sprintf("%s cannot be used: %s", e.Data, what)
		return []Finding{f}
	}
	if mode&(forOthers|groupWrite) != 0 {
		return []Finding{{Level: Warning, Subject: subject, repair: repair, Fix: "Type: " + command,
			Message: fmt.Sprintf("other users of this machine may use %s (permissions %04o), which contains the texts of all indexed documents",
				e.Data, mode)}}
	}
	return nil
}

// indexFile returns a finding if a file of the index cannot be used.
func (e *examiner) indexFile(path string) *Finding {
	const subject = "data folder"
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || e.GOOS == "windows" {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil // the check of the index reports it
	}
	if info.Mode().Perm()&ownFile == ownFile {
		return nil
	}
	return &Finding{Level: Error, Subject: subject,
		Message: fmt.Sprintf("its owner may not read and write %s (permissions %04o)", path, info.Mode().Perm()),
		Fix:     fmt.Sprintf("Type: chmod u+rw %s", e.word(path)),
		repair: func(context.Context) (string, error) {
			if err := os.Chmod(path, info.Mode().Perm()|ownFile); err != nil {
				return "", errors.New(pathReason(err))
			}
			return fmt.Sprintf("the permissions of %s are %04o now", path, info.Mode().Perm()|ownFile), nil
		}}
}

// Limits of the free space.
const (
	fullDisk   = 50 << 20  // below, indexing fails soon
	scarceDisk = 500 << 20 // below, it may fail
	fewFiles   = 1000
)

// disk checks the file system of the data folder.
func (e *examiner) disk(context.Context) []Finding {
	const subject = "disk"
	if e.Data == "" {
		return nil
	}
	dir := e.Data
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	s, err := e.machine.disk(dir)
	if err != nil {
		return []Finding{ok(subject, "the free space is not known on this system")}
	}
	var findings []Finding
	free := terminal.Bytes(int64(min(s.free, 1<<62)))
	switch {
	case s.free < fullDisk:
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("the disk of the data folder %s has only %s left, so nothing can be indexed", e.Data,
				free),
			Fix: "Free space on it, or move the data folder to another disk and name it with --data or KNOWHOW_DATA."})
	case s.free < scarceDisk:
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("the disk of the data folder %s has only %s left", e.Data, free),
			Fix:     "Free space on it before more is indexed."})
	}
	if s.limited && s.files < fewFiles {
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("the disk of the data folder %s has room for only %d more files", e.Data, s.files),
			Fix:     "Remove files that are not needed from it."})
	}
	if s.network != "" {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("the data folder %s is on another machine (%s), where locks are not reliable: an index that several machines use is damaged sooner or later",
				e.Data, s.network),
			Fix: "Name a data folder on a local disk with --data or KNOWHOW_DATA. The indexed folders may stay where they are."})
	}
	if len(findings) == 0 {
		findings = append(findings, ok(subject, "%s are free", free))
	}
	return findings
}
