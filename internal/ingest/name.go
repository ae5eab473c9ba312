package ingest

import (
	"net/url"
	"path/filepath"
	"strings"
)

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
