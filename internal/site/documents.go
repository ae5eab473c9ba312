package site

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"path/filepath"
	"strings"
)

// A Document is a page that is a document.
type Document struct {
	Path      string // see Site.path
	URL       string
	MediaType string // as declared by the server, with a charset if it is believed
}

// A Snapshot is the documents of a mirror at one time. It does not change.
type Snapshot struct {
	Root string // the folder with their files
	Host string

	documents map[string]Document // by the name of the file in Root
	byPath    map[string]Document
	repeated  map[uint64]bool
}

// Document returns the document in a file of Root. ok is false if the file is none,
// for example because another page has the same text.
func (s *Snapshot) Document(file string) (d Document, ok bool) {
	d, ok = s.documents[file]
	return d, ok
}

// DocumentAt returns the document with a path.
func (s *Snapshot) DocumentAt(path string) Document { return s.byPath[path] }

// Len returns the number of documents.
func (s *Snapshot) Len() int { return len(s.documents) }

// Version changes when Cut cuts other parts.
func (s *Snapshot) Version() string {
	var sum uint64
	for text := range s.repeated {
		sum += text // in any order
	}
	return fmt.Sprintf("%d-%x", len(s.repeated), sum)
}

// File returns the folder with the pages of a mirror in a data folder, and the name of the
// file that the document with a path and an address has there. ok is false if the path
// is not that of the page at the address, for example because the document is a part of
// the page.
func (s Site) File(data, path, address string) (folder, name string, ok bool) {
	ok = s.contains(address) && s.path(address) == path
	return filepath.Join(s.Dir(data), pagesFolder), fileOf(address), ok
}

// Cut returns a page without the parts that many pages of the site have.
func (s *Snapshot) Cut(d Document, data []byte) []byte {
	if isHTML(d.MediaType) {
		return cut(data, s.repeated)
	}
	return data
}

// snapshot returns the documents of the pages that are known. Not included are pages
// that another page has the text of, and those that name another page as theirs.
func (m *Mirror) snapshot() *Snapshot {
	s := &Snapshot{Root: filepath.Join(m.state.dir, pagesFolder), Host: m.site.host, documents: map[string]Document{},
		byPath: map[string]Document{}, repeated: map[uint64]bool{}}
	for _, text := range m.state.repeated {
		s.repeated[text] = true
	}
	best := map[string]*page{} // by text
	for _, p := range m.state.pages {
		if p.Size == 0 || !m.rules.included(m.site.path(p.Address)) {
			continue
		}
		if other := best[p.Text]; other == nil || better(p, other) {
			best[p.Text] = p
		}
	}
	for _, p := range best {
		if c := m.state.pages[p.Canonical]; c != nil && c != p && best[c.Text] == c && isCopy(p, c) {
			continue
		}
		d := Document{Path: m.site.path(p.Address), URL: p.Address, MediaType: p.Type}
		s.documents[p.file()], s.byPath[d.Path] = d, d
	}
	return s
}

// isCopy reports whether the page p, which names c as its canonical page, is believed:
// c must be a page that names no other one, and have the title of p or the end of its
// path. Some sites name the same page everywhere by mistake.
func isCopy(p, c *page) bool {
	if c.Size == 0 || c.Canonical != "" && c.Canonical != c.Address {
		return false
	}
	end := func(a string) string {
		a, _, _ = strings.Cut(a, "?")
		return path.Base(a)
	}
	return p.Title == c.Title && p.Title != "" || end(p.Address) == end(c.Address)
}

// better reports whether p is to be the document, and not q, which has the same text.
func better(p, q *page) bool {
	rank := func(p *page) (n int) {
		if p.Canonical != p.Address {
			n += 2
		}
		if strings.Contains(p.Address, "?") {
			n++
		}
		return n
	}
	return cmp.Or(rank(p)-rank(q), len(p.Address)-len(q.Address), strings.Compare(p.Address, q.Address)) < 0
}

// nanoseconds returns the part of a second in the time of a page's file: a number
// from its content, so that a page that has changed has another time, whatever the
// server says about it. It is a multiple of what file systems can store.
func nanoseconds(data []byte) int64 {
	h := fnv.New64a()
	h.Write(data)
	return int64(h.Sum64()%10_000_000) * 100
}
