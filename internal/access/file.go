package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// runtimeIsWindows reports whether files have no mode bits, and cannot be replaced while
// they are open.
const runtimeIsWindows = runtime.GOOS == "windows"

// A File is an access file that a server follows: each call answers with what the file
// contains when it is called. While the file is damaged, empty or gone, nobody is
// admitted. The methods are safe for concurrent use.
//
// A file that is replaced in one step, as [Edit] does it, always has its old or its new
// content. While an editor truncates and writes it, the part that is there is not valid,
// because it lacks the closing brace, and nobody is admitted.
type File struct {
	path string
	log  *slog.Logger

	now   atomic.Pointer[reading] // the last one
	begun atomic.Uint64           // readings

	mu     sync.Mutex // held while the file is read
	warned bool       // that others can read the file
}

// A reading is what was found at one time. It does not change.
type reading struct {
	info    fs.FileInfo // of the file; nil if it was not read
	missing bool
	settled bool // a later change of the file changes info
	data    []byte
	err     error   // why nobody is admitted
	people  *people // nil if err is not nil
	version uint64
}

// digest is the hash of a token.
type digest = [sha256.Size]byte

// people are the users and groups of a file.
type people struct {
	version uint64             // of the content
	tokens  map[digest]*Caller // users with a token
	ids     map[string]*Caller // the same, by ID
	users   map[string]Rights  // users of an issuer
	groups  map[string]Rights
}

// Open returns the access file at path. It is read by the call, but need not exist: what
// is wrong is logged, once for each state of the file, except that it does not exist yet. A nil log discards.
func Open(path string, log *slog.Logger) *File {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File{path: path, log: log}
	f.current()
	return f
}

// ByToken returns the user who has a token. nil means that nobody has it: the request must
// be refused, because the nil Caller may do everything.
func (f *File) ByToken(token string) *Caller {
	p := f.current().people
	if p == nil {
		return nil
	}
	// The time of the lookup may depend on how much of the hash is that of a user, which
	// does not help to find a token: its hash cannot be chosen.
	return p.tokens[sha256.Sum256([]byte(token))]
}

// OfIssuer returns the user of an issuer, with the rights of the subject and of the groups
// together. The caller may have no right at all. nil means that nobody is admitted: the
// request must be refused, because the nil Caller may do everything.
func (f *File) OfIssuer(subject string, groups []string) *Caller {
	p := f.current().people
	if p == nil || subject == "" {
		return nil
	}
	rights := p.users[subject]
	for _, g := range groups {
		if r, ok := p.groups[g]; ok {
			rights = rights.Plus(r)
		}
	}
	return &Caller{ID: issuerID + subject, Name: subject, Groups: union(groups, nil), Rights: rights, Version: p.version}
}

// issuerID is the beginning of the IDs of users of an issuer. IDs of other users begin
// with a name, which has no colon.
const issuerID = "oauth:"

// Now returns a caller with the rights that the user has now, or nil if the user has
// none any more. For the nil Caller it returns nil.
func (f *File) Now(c *Caller) *Caller {
	if c == nil {
		return nil
	}
	if subject, ok := strings.CutPrefix(c.ID, issuerID); ok {
		if now := f.OfIssuer(subject, c.Groups); now != nil && now.Any() {
			return now
		}
		return nil
	}
	p := f.current().people
	if p == nil {
		return nil
	}
	return p.ids[c.ID]
}

// Version returns a number that is greater after each change of what the file contains.
// It reads the file if that has changed.
func (f *File) Version() uint64 { return f.current().version }

// Err returns why nobody is admitted, nil if the file is well.
func (f *File) Err() error { return f.current().err }

// current returns what is in the file. Concurrent calls share a reading.
func (f *File) current() *reading {
	info, err := os.Stat(f.path)
	if r := f.now.Load(); r != nil && r.holds(info, err) {
		return r
	}
	begun := f.begun.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun.Load() > begun { // a reading that began after this call
		return f.now.Load()
	}
	f.begun.Add(1)
	r := f.read(f.now.Load())
	f.now.Store(r)
	return r
}

// holds reports whether the file is still as it was read, by its present state.
func (r *reading) holds(info fs.FileInfo, err error) bool {
	if err != nil {
		return r.missing && errors.Is(err, fs.ErrNotExist)
	}
	return r.settled && os.SameFile(r.info, info) && r.info.Size() == info.Size() && r.info.Mode() == info.Mode() &&
		r.info.ModTime().Equal(info.ModTime())
}

// granularity is the maximum difference between the times of two changes that a file
// system does not distinguish: the two seconds of FAT.
const granularity = 2 * time.Second

// read reads the file. last is the reading before it, nil if there is none.
func (f *File) read(last *reading) *reading {
	r := &reading{version: 1}
	if last != nil {
		r.version = last.version + 1
	}
	began := time.Now()
	r.data, r.info, r.err = readFile(f.path)
	switch {
	case r.err != nil:
		r.missing = errors.Is(r.err, fs.ErrNotExist)
		if last != nil && last.err != nil && last.err.Error() == r.err.Error() {
			r.version = last.version
			return r
		}
	default:
		r.settled = began.Sub(r.info.ModTime()) > granularity
		f.warn(r.info)
		if last != nil && last.info != nil && bytes.Equal(last.data, r.data) {
			r.err, r.people, r.version = last.err, last.people, last.version
			return r
		}
		var c *Content
		if c, r.err = parse(f.path, r.data); r.err == nil {
			r.people = c.people(r.version)
		}
	}
	switch {
	case r.missing && last == nil: // it may be made later
	case r.err != nil && (last == nil || last.err == nil || last.err.Error() != r.err.Error()):
		f.log.Error("nobody is admitted, because the access file cannot be used", "error", r.err)
	case r.err == nil && last != nil && last.err != nil:
		f.log.Info("the access file can be used again", "path", f.path)
	case r.err == nil && last != nil:
		f.log.Info("the access file has changed", "path", f.path)
	}
	return r
}

// warn logs that others can read the file, once until it is corrected.
func (f *File) warn(info fs.FileInfo) {
	open := info.Mode()&0o077 != 0 && !runtimeIsWindows
	if open && !f.warned {
		f.log.Warn("other users of this machine can use the access file; change its mode to 0600", "path", f.path,
			"mode", info.Mode().Perm().String())
	}
	f.warned = open
}

// idDigits is how many digits of the hash of the token are in the ID of a user, so that a
// later user of the same name does not get what belongs to the former one.
const idDigits = 12

// people returns the users and groups of a content that was checked, with its version.
func (c *Content) people(version uint64) *people {
	p := &people{version: version, tokens: map[digest]*Caller{}, ids: map[string]*Caller{}, users: map[string]Rights{},
		groups: map[string]Rights{}}
	for _, u := range c.Users {
		rights := Rights{Read: u.Read, Write: u.Write}.Plus(Rights{Admin: u.Admin})
		if u.SHA256 == "" {
			p.users[u.Name] = rights
			continue
		}
		var d digest
		_, _ = hex.Decode(d[:], []byte(u.SHA256)) // it was checked
		c := &Caller{ID: u.Name + " " + strings.ToLower(u.SHA256[:idDigits]), Name: u.Name, Rights: rights, Version: version}
		p.tokens[d], p.ids[c.ID] = c, c
	}
	for _, g := range c.Groups {
		p.groups[g.Name] = Rights{Read: g.Read, Write: g.Write}.Plus(Rights{})
	}
	return p
}
