package fessmcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"knowhow/internal/errkind"
)

// A cursor says where to go on: in a list of documents or in a text. Outside it
// is opaque and about 30 characters long, because agents copy cursors by hand.
// Its bytes are version, kind, 6 bytes of the scope's hash, 6 of the mark's,
// the offset as a uvarint, and 4 bytes of the hash of all that, which catches
// slips of the copying hand. Nothing in it is secret and nothing is kept for
// it, so that it outlives the server.
type cursor struct {
	kind   byte
	scope  string // what the list or the text belongs to
	mark   string // the text's hash; "" for lists
	offset int64  // of the next document or byte; not negative
}

const (
	cursorVersion = 1
	listCursor    = 'l'
	textCursor    = 't'

	sumLen   = 6 // bytes of a hash that tell one scope or mark from another
	checkLen = 4
	scopeEnd = 2 + sumLen
	markEnd  = scopeEnd + sumLen
)

var cursorCoding = base64.RawURLEncoding.Strict()

// String returns the cursor as callers see it.
func (c cursor) String() string {
	b := append([]byte{cursorVersion, c.kind}, sum(c.scope, sumLen)...)
	b = append(b, sum(c.mark, sumLen)...)
	b = binary.AppendUvarint(b, uint64(c.offset))
	return cursorCoding.EncodeToString(append(b, sum(string(b), checkLen)...))
}

// A place is what a cursor that came back says.
type place struct {
	offset int64
	mark   []byte
}

// isIn reports whether the cursor was made with the given mark.
func (p place) isIn(mark string) bool { return bytes.Equal(p.mark, sum(mark, sumLen)) }

// parseCursor returns what the cursor s of the given kind and scope says.
// Anything that is no such cursor is an *errkind.Argument named "cursor".
func parseCursor(s string, kind byte, scope string) (place, error) {
	want := "the nextCursor of an answer for this document, or none to begin anew"
	if kind == listCursor {
		want = "the nextCursor of this server's resources/list, or none to begin anew"
	}
	bad := &errkind.Argument{Name: "cursor", Value: s, Want: want}
	b, err := cursorCoding.DecodeString(s)
	// The decoder skips line ends, which no cursor has.
	if err != nil || len(b) < markEnd+1+checkLen || cursorCoding.EncodeToString(b) != s {
		return place{}, bad
	}
	b, check := b[:len(b)-checkLen], b[len(b)-checkLen:]
	if !bytes.Equal(check, sum(string(b), checkLen)) ||
		b[0] != cursorVersion || b[1] != kind || !bytes.Equal(b[2:scopeEnd], sum(scope, sumLen)) {
		return place{}, bad
	}
	n, size := binary.Uvarint(b[markEnd:])
	if size != len(b)-markEnd || n > 1<<62 {
		return place{}, bad
	}
	return place{offset: int64(n), mark: b[scopeEnd:markEnd]}, nil
}

func sum(s string, n int) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:n]
}
