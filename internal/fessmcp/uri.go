package fessmcp

import (
	"fmt"
	"net/url"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/sanitize"
)

const maxIDLen = 128

// isID reports whether s can be the id of a document: ^[A-Za-z0-9_-]{1,128}$.
// Fess uses hex digits. The restricted characters prevent an id from being read
// as a query.
func isID(s string) bool {
	if s == "" || len(s) > maxIDLen {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// documentURI and contentURI return the two URIs of a document (FRS 8.1).
func (d Domain) documentURI(id string) string { return "fess://" + d.ID + "/doc/" + id }
func (d Domain) contentURI(id string) string  { return d.documentURI(id) + "/content" }

// An address is a parsed resource URI.
type address struct {
	id      string
	content bool // true for the text, false for the metadata
}

// parseURI parses uri. If uri is not a resource of this domain, the error is of
// kind NotFound. This includes a URI with a query, because package mcpserver
// has removed the cursor.
func (d Domain) parseURI(uri string) (address, error) {
	notFound := fmt.Errorf("%w: resource %q; this server's resources are %s and %s", errkind.NotFound,
		sanitize.Short(uri, 200, 300), d.documentURI("DOC_ID"), d.contentURI("DOC_ID"))
	var a address
	rest, ok := strings.CutPrefix(uri, d.documentURI(""))
	if !ok {
		return a, notFound
	}
	rest, a.content = strings.CutSuffix(rest, "/content")
	id, err := url.PathUnescape(rest)
	if err != nil || !isID(id) {
		return a, notFound
	}
	a.id = id
	return a, nil
}
