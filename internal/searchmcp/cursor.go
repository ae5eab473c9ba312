package searchmcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A cursor is a position in a list of documents or in a text. Its string is
// opaque and about 30 characters long, because agents copy cursors by hand. The
// bytes are version, kind, 6 bytes of the scope's hash, 6 of the mark's, the
// offset as a uvarint, and 4 bytes of the hash of all preceding bytes, which
// detects copying errors. A cursor contains no secret, and the server keeps no
// state for it, so it survives a restart.
type cursor struct {
	kind   byte
	scope  string // the list or the text that it belongs to
	mark   string // the text's hash; "" for lists
	offset int64  // of the next document or byte; not negative
}

const (
	cursorVersion = 1
	listCursor    = 'l'
	textCursor    = 't'

	sumLen   = 6 // bytes of a hash that distinguish scopes or marks
	checkLen = 4
	scopeEnd = 2 + sumLen
	markEnd  = scopeEnd + sumLen
)

var cursorCoding = base64.RawURLEncoding.Strict()

// String returns the cursor in the form that callers receive.
func (c cursor) String() string {
	b := append([]byte{cursorVersion, c.kind}, sum(c.scope, sumLen)...)
	b = append(b, sum(c.mark, sumLen)...)
	b = binary.AppendUvarint(b, uint64(c.offset))
	return cursorCoding.EncodeToString(append(b, sum(string(b), checkLen)...))
}

// A place is the content of a parsed cursor.
type place struct {
	offset int64
	mark   []byte
}

// isIn reports whether the cursor was made with the given mark.
func (p place) isIn(mark string) bool { return bytes.Equal(p.mark, sum(mark, sumLen)) }

// parseCursor parses a cursor of the given kind and scope. If s is not such a
// cursor, the error is an *errkind.Argument named "cursor".
func parseCursor(s string, kind byte, scope string) (place, error) {
	want := "the nextCursor of an answer for this document, or none to start from the beginning"
	if kind == listCursor {
		want = "the nextCursor of this server's resources/list, or none to start from the beginning"
	}
	bad := &errkind.Argument{Name: "cursor", Value: s, Want: want}
	b, err := cursorCoding.DecodeString(s)
	// The decoder ignores line ends, which no cursor contains.
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
