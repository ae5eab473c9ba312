package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	lockName    = "mcp_settings.lock" // in [Options].Base
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
	Links              []string `json:"links,omitempty"`              // the folders in which it has a link or copy
	Copied             bool     `json:"copied,omitempty"`             // some of them are copies
}

// parseLock parses a lock file's content. The names of skills are slugs and the
// files are inside of their folders, so they are safe in paths.
func parseLock(raw []byte) (*lock, error) {
	l := &lock{}
	if err := json.Unmarshal(raw, l); err != nil {
		return nil, err
	}
	if l.Version != lockVersion {
		return nil, fmt.Errorf("version %d, want %d", l.Version, lockVersion)
	}
	for _, dir := range append([]string{l.OutputDir}, l.LinkDirs...) {
		if dir != "" && !validPath(dir) {
			return nil, fmt.Errorf("%.80q is not the path of a folder", dir)
		}
	}
	if len(l.LinkDirs) > 100 {
		return nil, errors.New("more than 100 folders of links")
	}
	for name, e := range l.Skills {
		if !validName(name) || !e.valid() {
			return nil, fmt.Errorf("bad entry %.80q", name)
		}
	}
	return l, nil
}

var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// validName reports whether name is the name of a skill, and so a safe folder
// name.
func validName(name string) bool { return len(name) <= 64 && slug.MatchString(name) }

// validPath reports whether p can be the path of a folder.
func validPath(p string) bool {
	return p != "" && len(p) <= 4096 && !strings.ContainsRune(p, 0) && utf8.ValidString(p)
}

// validFile reports whether p is a path inside of a skill's folder on every
// system.
func validFile(p string) bool {
	return len(p) <= 255 && utf8.ValidString(p) && fs.ValidPath(p) && p != "." && !strings.ContainsAny(p, "\\:\x00") &&
		filepath.IsLocal(filepath.FromSlash(p)) && !strings.HasPrefix(p, tempPrefix)
}

// valid reports whether an entry has a server and a SKILL.md, and all its paths
// and hashes are valid.
func (e *entry) valid() bool {
	if e == nil || e.Server == "" || e.Files[skillFile] == "" {
		return false
	}
	for p, hash := range e.Files {
		if _, err := hex.DecodeString(hash); err != nil || len(hash) != 64 || !validFile(p) {
			return false
		}
	}
	return true
}

// paths returns the paths of an entry's files, sorted; none for nil.
func (e *entry) paths() []string {
	if e == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(e.Files))
}

// linked reports whether the last sync made a link or copy in the folder with
// that key.
func (e *entry) linked(key string) bool { return e != nil && slices.Contains(e.Links, key) }

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

// sameAs reports whether two locks are equal except for failed servers: a
// server that is temporarily down does not make anything stale. No lock is
// equal to nil.
func (l *lock) sameAs(other *lock) bool {
	if other == nil {
		return false
	}
	a, b := *l, *other
	a.Failed, b.Failed = nil, nil
	return bytes.Equal(a.encode(), b.encode())
}
