package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"knowhow/internal/errkind"
)

// zipEntry is the signature of an entry in the directory of a ZIP archive.
var zipEntry = []byte("PK\x01\x02")

// openZip reads the directory of a ZIP archive with at most max files. what names
// the file in errors.
func openZip(data []byte, what string, max int) ([]*zip.File, error) {
	// The directory is read at once, so its size is checked before. This counts
	// its entries, and very rarely more.
	if bytes.Count(data, zipEntry) > max {
		return nil, tooLarge(what, fmt.Sprintf("more than %d files", max))
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, damaged(what)
	}
	return z.File, nil
}

// An unpacker reads packed data while its context is not done and the limit is
// not exceeded.
type unpacker struct {
	ctx  context.Context
	r    io.Reader
	left *int64 // bytes that may still be unpacked; negative after more
}

// errUnpacked reports that packed data expands to more bytes than are read.
var errUnpacked = fmt.Errorf("it expands to far more bytes than documents of its size: %w", errkind.TooLarge)

// Read implements [io.Reader].
func (u *unpacker) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	if *u.left < 0 {
		return 0, errUnpacked
	}
	n, err := u.r.Read(b[:min(int64(len(b)), pieceLen, *u.left+1)])
	if *u.left -= int64(n); *u.left < 0 {
		err = errUnpacked
	}
	return n, err
}

// zipped calls yield for the files in a ZIP archive for whose names keep returns
// true, in the order of the archive: with their data, or with the reason why they
// cannot be read. The names are clean relative paths. Only the first of several
// files with the same name counts.
func (in *Input) zipped(ctx context.Context, keep func(name string) bool, yield func(name string, data []byte, err error) error) error {
	files, err := openZip(in.Data, "ZIP archive", maxParts)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		name := zipName(f)
		if name == "" || seen[name] || !f.Mode().IsRegular() || !keep(name) {
			continue
		}
		seen[name] = true
		data, err := in.unzip(ctx, f)
		if err != nil && (ctx.Err() != nil || in.budget().spent()) {
			return err
		}
		if err := yield(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// unzip returns the data of a file in an archive.
func (in *Input) unzip(ctx context.Context, f *zip.File) ([]byte, error) {
	const what = "file in an archive"
	if f.Flags&1 != 0 {
		return nil, locked(what)
	}
	r, err := f.Open()
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		return nil, unsupported(what + " that is packed by an unknown method: unpack the archive")
	case err != nil:
		return nil, damaged(what)
	}
	defer r.Close()
	data, cut, err := in.unpack(ctx, r)
	if cut {
		return nil, damaged(what)
	}
	return data, err
}

// zipName returns the name of a file in an archive as a clean relative path, or
// "" if there is none.
func zipName(f *zip.File) string {
	name := f.Name
	if !utf8.ValidString(name) {
		name, _ = charmap.CodePage437.NewDecoder().String(name) // APPNOTE.TXT, appendix D; it never fails
	}
	name = strings.Map(func(r rune) rune {
		if isControl(r) || r == '\n' || r == '\t' {
			return -1
		}
		return r
	}, strings.ReplaceAll(name, `\`, "/"))
	if strings.HasSuffix(name, "/") || len(name) > 1000 {
		return ""
	}
	return path.Clean("/" + name)[1:]
}
