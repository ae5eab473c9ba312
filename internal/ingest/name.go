package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"
)

// DocID returns the ID of the document with a path inside the source with a
// label: 32 hex digits that never change.
func DocID(label, path string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + path))
	return hex.EncodeToString(sum[:16])
}

// fileURL returns the file: URL (RFC 8089) of an absolute path, including paths
// with a drive letter or a Windows share. Bytes that are not UTF-8 are
// percent-encoded unchanged, so that the URL identifies the file whatever its
// name.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	u := url.URL{Scheme: "file", Path: path}
	if share, ok := strings.CutPrefix(path, "//"); ok {
		host, rest, _ := strings.Cut(share, "/")
		u.Host, u.Path = host, "/"+rest
	} else if !strings.HasPrefix(path, "/") {
		u.Path = "/" + path
	}
	return u.String()
}

// documentPath returns the path that identifies a file: with U+FFFD for each
// run of bytes that is not UTF-8.
func documentPath(name string) string { return strings.ToValidUTF8(name, "\ufffd") }
