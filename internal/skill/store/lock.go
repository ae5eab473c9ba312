package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"knowhow/internal/errkind"
)

const (
	lockVersion = 1
	maxLock     = 64 << 20 // bytes
)

// A lock is the content of the lock file: the result of the last sync, from
// which the next one determines which files were generated.
type lock struct {
	Hash       string            `json:"hash"`        // of all SKILL.md files, see Sync
	ConfigHash string            `json:"config_hash"` // Options.ConfigHash
	Version    int               `json:"version"`
	OutputDir  string            `json:"output_dir"` // relative to the lock with slashes, or absolute
	LinkDirs   []string          `json:"link_dirs"`
	Failed     []string          `json:"failed,omitempty"` // servers that did not answer
	Skills     map[string]*entry `json:"skills"`
}

// An entry is one skill of a lock.
type entry struct {
	Server     string            `json:"server"`
	Tools      []string          `json:"tools"`
	SourceHash string            `json:"source_hash"` // of the tool, from the server
	Files      map[string]string `json:"files"`       // path to SHA-256 of the written content

	// WrittenDescription is the SHA-256 of the frontmatter's description as
	// written. A description with another hash was edited.
	WrittenDescription string   `json:"written_description"`
	DescriptionEdited  bool     `json:"description_edited,omitempty"` // the written description was edited by the user
	Links              []string `json:"links,omitempty"`              // the folders of LinkDirs in which it has a link or copy
	Copied             bool     `json:"copied,omitempty"`             // some of them are copies
}

// readLock reads the lock file. A file that is not a lock of this version is
// ignored, and so are bad entries.
func (s *syncer) readLock() error {
	name := filepath.Join(s.base.path, lockName)
	info, err := s.base.root.Stat(lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return explain("reading", name, err)
	case info.IsDir():
		return fmt.Errorf("reading %s: a folder is in the way of the lock file: move it: %w", name, errkind.Conflict)
	case info.Size() > maxLock:
		return fmt.Errorf("reading %s: the lock file has more than %d bytes: move it: %w", name, maxLock, errkind.TooLarge)
	}
	raw, err := s.base.root.ReadFile(lockName)
	if err != nil {
		return explain("reading", name, err)
	}
	var bad []string
	s.raw = raw
	if s.prev, bad, err = parseLock(raw); err != nil {
		s.prev, s.raw = &lock{}, nil
		s.warn("%s is not a lock file that can be read (%v): it is treated as if there was none", lockName, err)
	}
	for _, name := range bad {
		s.warn("%s has a bad entry %.80q: the entry is ignored", lockName, name)
	}
	return nil
}

// parseLock parses a lock file's content. The returned names are slugs and the
// files are inside of their folders, so they are safe in paths. Other entries
// are left out and named in bad.
func parseLock(raw []byte) (l *lock, bad []string, err error) {
	var loose struct {
		lock
		Skills map[string]json.RawMessage `json:"skills"`
	}
	if err := json.Unmarshal(raw, &loose); err != nil {
		return nil, nil, err
	}
	if loose.Version != lockVersion {
		return nil, nil, fmt.Errorf("version %d, want %d", loose.Version, lockVersion)
	}
	l = &loose.lock
	l.Skills = map[string]*entry{}
	if l.OutputDir != "" && !validPath(l.OutputDir) {
		return nil, nil, errors.New("the output folder is not a path")
	}
	l.LinkDirs = slices.DeleteFunc(l.LinkDirs, func(d string) bool { return !validPath(d) })
	if len(l.LinkDirs) > 100 {
		return nil, nil, errors.New("more than 100 folders of links")
	}
	for name, raw := range loose.Skills {
		var e *entry
		if json.Unmarshal(raw, &e) != nil || e == nil || !validName(name) || !e.valid() {
			bad = append(bad, name)
			continue
		}
		l.Skills[name] = e
	}
	slices.Sort(bad)
	return l, bad, nil
}

// valid reports whether all paths and hashes of an entry are valid.
func (e *entry) valid() bool {
	for p, hash := range e.Files {
		if _, err := hex.DecodeString(hash); err != nil || len(hash) != 64 || !validFile(p) {
			return false
		}
	}
	return e.Files[skillFile] != ""
}

// paths returns the paths of an entry's files, sorted.
func (e *entry) paths() []string {
	paths := []string{}
	for p := range e.Files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// linked reports whether the last sync made a link or copy in f.
func (e *entry) linked(f *folder) bool { return e != nil && slices.Contains(e.Links, f.key) }

// encode returns the content of the lock file; equal locks have equal content.
func (l *lock) encode() []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// Strings, numbers and maps of them can always be encoded.
	_ = enc.Encode(l)
	return buf.Bytes()
}

// without returns the lock as if all servers had answered.
func (l *lock) without() *lock {
	c := *l
	c.Failed = nil
	return &c
}

// writeLock replaces the lock file if it differs. A server that is temporarily
// down does not make anything stale.
func (s *syncer) writeLock() error {
	data := s.next.encode()
	if bytes.Equal(data, s.raw) {
		return nil
	}
	if s.raw == nil || !bytes.Equal(s.next.without().encode(), s.prev.without().encode()) {
		s.report.Stale = true
	}
	if s.o.DryRun {
		return nil
	}
	path := filepath.Join(s.base.path, lockName)
	mode := fs.FileMode(0o644)
	if info, _ := s.base.lstat(lockName); info != nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	temp := tempName()
	defer s.base.root.Remove(temp)
	if err := s.write(s.base.root, temp, data, true); err != nil {
		return explain("writing", path, err)
	}
	if err := s.base.root.Chmod(temp, mode); err != nil {
		return explain("writing", path, err)
	}
	if err := s.base.root.Rename(temp, lockName); err != nil {
		return explain("writing", path, err)
	}
	s.log.Debug("wrote the lock file", "path", path, "hash", s.next.Hash, "config_hash", s.next.ConfigHash)
	return nil
}

// A writeFunc writes a new file. With flush, its content is synced to the disk.
type writeFunc func(root *os.Root, name string, data []byte, flush bool) error

func writeFile(root *os.Root, name string, data []byte, flush bool) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if flush {
		return f.Sync()
	}
	return nil
}
