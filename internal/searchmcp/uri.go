package searchmcp

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
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

// Schemes of resource URIs.
const (
	fessScheme   = "fess"
	folderScheme = "knowhow"
)

// schemes returns the schemes of the URIs of a server: the one in lists, and others
// that can be read.
func (w Wording) schemes() []string {
	if w == OfFolders {
		return []string{folderScheme, fessScheme} // fess is that of earlier versions
	}
	return []string{fessScheme}
}

// An address is a resource URI.
type address struct {
	scheme  string
	domain  string // ID
	id      string // of the document
	content bool   // true for the text, false for the metadata
}

// String returns the URI (FRS 8.1).
func (a address) String() string {
	uri := a.scheme + "://" + a.domain + "/doc/" + a.id
	if a.content {
		uri += "/content"
	}
	return uri
}

// address returns the URI of the metadata of a document, as in lists.
func (t *Tools) address(id string) address {
	return address{scheme: t.wording.schemes()[0], domain: t.domain.ID, id: id}
}

// contentAddress returns the URI of the text of a document.
func (t *Tools) contentAddress(id string) address {
	a := t.address(id)
	a.content = true
	return a
}

// parseURI parses uri. If uri is not a resource of the domain, the error is of
// kind NotFound. This includes a URI with a query, because package mcpserver
// has removed the cursor.
func (t *Tools) parseURI(uri string) (address, error) {
	for _, scheme := range t.wording.schemes() {
		a := address{scheme: scheme, domain: t.domain.ID}
		rest, ok := strings.CutPrefix(uri, a.String())
		if !ok {
			continue
		}
		rest, a.content = strings.CutSuffix(rest, "/content")
		id, err := url.PathUnescape(rest)
		if err != nil || !isID(id) {
			break
		}
		a.id = id
		return a, nil
	}
	return address{}, fmt.Errorf("%w: resource %q; this server's resources are %s and %s", errkind.NotFound,
		sanitize.Short(uri, 200, 300), t.address("DOC_ID"), t.contentAddress("DOC_ID"))
}
