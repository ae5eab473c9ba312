// Package unpack reads ZIP archives and gzip files within limits: a small file may
// expand to gigabytes.
package unpack

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// zipEntry is the signature of an entry in the directory of a ZIP archive.
var zipEntry = []byte("PK\x01\x02")

// Zip reads the directory of a ZIP archive with at most max files. what names the
// file in errors.
func Zip(data []byte, what string, max int) ([]*zip.File, error) {
	// The directory is read at once, so its size is checked before. This counts
	// its entries, and very rarely more.
	if bytes.Count(data, zipEntry) > max {
		return nil, plain.TooLarge(what, fmt.Sprintf("more than %d files", max))
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, plain.Damaged(what)
	}
	return z.File, nil
}

// ErrTooLong reports that packed data expands to more bytes than are read.
var ErrTooLong = fmt.Errorf("it expands to far more bytes than documents of its size: %w", errkind.TooLarge)

// A Reader reads packed data while its context is not done and a limit is not
// exceeded.
type Reader struct {
	ctx  context.Context
	r    io.Reader
	left *int64
}

// NewReader returns a reader of r. left is the number of bytes that may still be
// unpacked; it becomes negative if there are more.
func NewReader(ctx context.Context, r io.Reader, left *int64) *Reader { return &Reader{ctx, r, left} }

// Read implements [io.Reader].
func (u *Reader) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	if *u.left < 0 {
		return 0, ErrTooLong
	}
	n, err := u.r.Read(b[:min(int64(len(b)), plain.CheckLen, *u.left+1)])
	if *u.left -= int64(n); *u.left < 0 {
		err = ErrTooLong
	}
	return n, err
}

// ZipName returns the name of a file in an archive as a clean relative path, or
// "" if there is none.
func ZipName(f *zip.File) string {
	name := f.Name
	if !utf8.ValidString(name) {
		name, _ = charmap.CodePage437.NewDecoder().String(name) // APPNOTE.TXT, appendix D; it never fails
	}
	name = strings.Map(func(r rune) rune {
		if plain.IsControl(r) || r == '\n' || r == '\t' {
			return -1
		}
		return r
	}, strings.ReplaceAll(name, `\`, "/"))
	if strings.HasSuffix(name, "/") || len(name) > 1000 {
		return ""
	}
	return path.Clean("/" + name)[1:]
}

// GzipName returns the name of the file in a gzip file.
func GzipName(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".gz":
		return name[:len(name)-len(ext)]
	case ".tgz":
		return name[:len(name)-len(ext)] + ".tar"
	case ".svgz":
		return name[:len(name)-1]
	}
	return name
}

// GzipHead returns the first max bytes of the file in a gzip file that begins with
// head. ok is false if that is damaged.
func GzipHead(head []byte, max int64) (data []byte, ok bool) {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil, false
	}
	data, _ = io.ReadAll(io.LimitReader(z, max)) // head ends in the middle
	return data, true
}
