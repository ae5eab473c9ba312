package site

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files of a mirror.
const (
	stateFile   = "state.jsonl" // an entry on each line
	pagesFolder = "pages"       // bodies of pages, by page.file
)

// A page is what a mirror knows of an address.
type page struct {
	Address string `json:"url"`
	Depth   int    `json:"depth,omitempty"` // links from the first page
	Round   int    `json:"round"`           // in which it was last asked for

	// The last answer.
	Status int    `json:"status,omitempty"` // 200 also for 304; 0 means none
	To     string `json:"to,omitempty"`     // target of a redirect
	Left   Reason `json:"left,omitempty"`   // why it is no document although the answer is a page
	Gone   int    `json:"gone,omitempty"`   // rounds in a row in which it was gone

	// The last page, which is kept when a later answer is a failure.
	Size      int64     `json:"size,omitempty"` // of its file in bytes; 0 means that there is none
	Type      string    `json:"type,omitempty"` // media type, with a charset if it is believed
	ETag      string    `json:"etag,omitempty"`
	Modified  string    `json:"modified,omitempty"` // as in Last-Modified
	Fetched   time.Time `json:"fetched,omitzero"`   // zero if there was never a page, or it was removed
	Text      string    `json:"text,omitempty"`     // hash of its visible text
	Links     string    `json:"links,omitempty"`    // hash of its links
	Title     string    `json:"title,omitempty"`
	Canonical string    `json:"canonical,omitempty"`
}

// file returns the name of the file of a page.
func (p *page) file() string { return fileOf(p.Address) }

// fileOf returns the name of the file of the page at an address.
func fileOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:16])
}

// dropBody forgets the page of an address, but not its last answer.
func (p *page) dropBody() {
	p.Size, p.Type, p.ETag, p.Modified, p.Fetched = 0, "", "", "", time.Time{}
	p.Text, p.Links, p.Title, p.Canonical = "", "", "", ""
}

// conditions returns the header of a request for a page that may have changed.
func (p *page) conditions() http.Header {
	if p == nil || p.Fetched.IsZero() {
		return nil
	}
	h := http.Header{}
	if p.ETag != "" {
		h.Set("If-None-Match", p.ETag)
	}
	if p.Modified != "" {
		h.Set("If-Modified-Since", p.Modified)
	} else if p.ETag == "" {
		// Servers that know no time of the page ignore it (RFC 9110, section 13.1.3).
		h.Set("If-Modified-Since", p.Fetched.UTC().Format(http.TimeFormat))
	}
	return h
}

// A roundState is the state of the last round.
type roundState struct {
	Number int       `json:"number"`
	Began  time.Time `json:"began"`
	Ended  bool      `json:"ended,omitempty"`
	Rules  string    `json:"rules,omitempty"` // of the round, see rulesKey
}

// An entry is a line of the state. One of its fields is set. A later entry replaces an
// earlier one about the same.
type entry struct {
	Page     *page       `json:"page,omitempty"`
	Forget   string      `json:"forget,omitempty"` // an address
	Round    *roundState `json:"round,omitempty"`
	Ignored  string      `json:"ignored,omitempty"` // a parameter of queries that changes no text
	Repeated *[]uint64   `json:"repeated,omitempty"`
	Left     *[]Left     `json:"left,omitempty"`
}

// A state is what a mirror knows. Each change is appended to a file at once, so that
// it survives the end of the process.
type state struct {
	dir      string
	pages    map[string]*page // by address
	round    roundState
	ignored  map[string]bool
	repeated []uint64 // hashes of parts that many pages have
	left     []Left   // at the end of the last round

	log *os.File
}

// openState reads the state of the mirror in a folder, which is created. Lines that
// cannot be read are ignored: the last one may be cut. The state does not contain
// pages whose files are missing.
func openState(dir string) (*state, error) {
	s := &state{dir: dir, pages: map[string]*page{}, ignored: map[string]bool{}}
	if err := os.MkdirAll(filepath.Join(dir, pagesFolder), 0o700); err != nil {
		return nil, fmt.Errorf("creating the mirror of a site: %w", err)
	}
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err == nil {
		err = s.read(f)
		f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the mirror of a site: %w", err)
	}
	for _, p := range s.pages {
		if p.Size == 0 {
			continue
		}
		if info, err := os.Stat(s.path(p)); err != nil || info.Size() != p.Size {
			p.dropBody()
			p.Round = 0
		}
	}
	return s, s.compact()
}

// read reads entries.
func (s *state) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e entry
		if json.Unmarshal(line, &e) == nil {
			s.apply(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *state) apply(e entry) {
	switch {
	case e.Page != nil && e.Page.Address != "":
		s.pages[e.Page.Address] = e.Page
	case e.Forget != "":
		delete(s.pages, e.Forget)
	case e.Round != nil:
		s.round = *e.Round
	case e.Ignored != "":
		s.ignored[e.Ignored] = true
	case e.Repeated != nil:
		s.repeated = *e.Repeated
	case e.Left != nil:
		s.left = *e.Left
	}
}

// compact writes a new file with one entry for each page, and opens it.
func (s *state) compact() (err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	entries := []entry{{Round: &s.round}, {Repeated: &s.repeated}, {Left: &s.left}}
	for _, p := range sorted(s.ignored) {
		entries = append(entries, entry{Ignored: p})
	}
	for _, a := range sorted(s.pages) {
		entries = append(entries, entry{Page: s.pages[a]})
	}
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("writing the mirror of a site: %w", err)
		}
	}
	s.close()
	name := filepath.Join(s.dir, stateFile)
	if err := os.WriteFile(name+".new", b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the mirror of a site: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("writing the mirror of a site: %w", err)
	}
	if s.log, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("writing the mirror of a site: %w", err)
	}
	return nil
}

// add applies an entry and appends it to the file.
func (s *state) add(e entry) error {
	s.apply(e)
	line, err := json.Marshal(e)
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the mirror of a site: %w", err)
	}
	return nil
}

func (s *state) close() {
	if s.log != nil {
		s.log.Close() // what matters has been written
		s.log = nil
	}
}

// path returns the path of the file of a page.
func (s *state) path(p *page) string { return filepath.Join(s.dir, pagesFolder, p.file()) }

// write writes the file of a page, whole or not at all, with a time. The time must be
// in the past, so that it is certain that the file is not being changed.
func (s *state) write(p *page, data []byte, at time.Time) error {
	name := filepath.Join(s.dir, "page.new")
	err := os.WriteFile(name, data, 0o600)
	if err == nil {
		err = os.Chtimes(name, at, at)
	}
	if err == nil {
		err = os.Rename(name, s.path(p))
	}
	if err != nil {
		return fmt.Errorf("writing a page of a site: %w", err)
	}
	return nil
}

// body reads the file of a page. It returns nil if there is none.
func (s *state) body(p *page) []byte {
	if p.Size == 0 {
		return nil
	}
	data, err := os.ReadFile(s.path(p))
	if err != nil {
		return nil
	}
	return data
}

// removeBody removes the file of a page.
func (s *state) removeBody(p *page) error {
	if err := os.Remove(s.path(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a page of a site: %w", err)
	}
	return nil
}

// removeOrphans removes the files of pages that are not known.
func (s *state) removeOrphans() error {
	known := map[string]bool{}
	for _, p := range s.pages {
		if p.Size > 0 {
			known[p.file()] = true
		}
	}
	dir := filepath.Join(s.dir, pagesFolder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the mirror of a site: %w", err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("removing a page of a site: %w", err)
			}
		}
	}
	return nil
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
