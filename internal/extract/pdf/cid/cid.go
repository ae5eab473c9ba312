// Package cid knows the characters of Adobe's character collections for
// Japanese, Chinese and Korean. A font of such a collection numbers its
// characters (CIDs) as the collection does, so its text can be read although the
// file does not contain it.
//
// The files are made by the program in the folder make from Adobe's CMaps; see
// LICENSE.
package cid

import (
	"bytes"
	"compress/flate"
	"embed"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// data has a file for each collection: a stream of DEFLATE whose numbers are as
// [encoding/binary.Uvarint] reads them. For each CID it contains the difference
// of its first character to the one of the CID before it plus one, as
// [encoding/binary.Varint] reads it. U+FFFD stands for a CID without a text. The
// number of CIDs precedes them. The CIDs with more characters follow: their
// number, and for each the difference to the CID before it, the length of the
// other characters in bytes, and these in UTF-8.
//
//go:embed Adobe-CNS1 Adobe-GB1 Adobe-Japan1 Adobe-Korea1
var data embed.FS

// A Collection contains the texts of the characters of a collection.
type Collection struct {
	first []rune         // of each CID; U+FFFD if there is no text
	rest  map[int]string // the other characters of texts with more than one
}

// Size is an upper bound of the memory that loading a collection takes, in bytes.
const Size = 512 << 10

// Load returns the collection with a registry and an ordering, such as "Adobe" and
// "Japan1", or nil if the package does not have it. It takes about a millisecond.
func Load(registry, ordering string) *Collection {
	packed, err := data.ReadFile(registry + "-" + ordering)
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic("cid: damaged program: " + err.Error())
	}
	r := reader{plain}
	c := &Collection{first: make([]rune, r.count()), rest: map[int]string{}}
	var last rune
	for i := range c.first {
		last += r.difference() + 1
		c.first[i] = last
	}
	at := 0
	for range r.count() {
		at += r.count()
		c.rest[at] = r.text(r.count())
	}
	return c
}

// Text returns the text of a character, or "" if it has none.
func (c *Collection) Text(cid int) string {
	if cid < 0 || cid >= len(c.first) || c.first[cid] == utf8.RuneError {
		return ""
	}
	return string(c.first[cid]) + c.rest[cid]
}

// A reader reads the values of a file, which the tests have read to its end.
type reader struct{ b []byte }

func (r *reader) count() int {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return int(v)
}

func (r *reader) difference() rune {
	v, n := binary.Varint(r.b)
	r.b = r.b[n:]
	return rune(v)
}

func (r *reader) text(n int) string {
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
