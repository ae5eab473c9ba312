package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"knowhow/internal/errkind"
)

// zipEntry is the signature of an entry in the directory of a ZIP archive.
var zipEntry = []byte("PK\x01\x02")

// zipped calls yield for the files in a ZIP archive for whose names keep returns
// true, in the order of the archive. The names are clean relative paths. It
// leaves out encrypted and damaged files, and files with a name that occurred
// before.
func (in *Input) zipped(ctx context.Context, yield func(name string, data []byte) error, keep func(name string) bool) error {
	// The directory is read at once, so its size is checked before.
	if bytes.Count(in.Data, zipEntry) > maxParts {
		return fmt.Errorf("it contains more than %d files: split it: %w", maxParts, errkind.TooLarge)
	}
	z, err := zip.NewReader(bytes.NewReader(in.Data), int64(len(in.Data)))
	if err != nil {
		return fmt.Errorf("damaged ZIP archive: %w", errkind.Corrupt)
	}
	encrypted, found := false, false
	seen := map[string]bool{}
	for _, f := range z.File {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		name := zipName(f)
		switch {
		case name == "" || seen[name] || !f.Mode().IsRegular() || !keep(name):
			continue
		case f.Flags&1 != 0:
			encrypted = true
			continue
		}
		seen[name] = true
		r, err := f.Open()
		if err != nil {
			continue
		}
		data, damaged, err := in.unpack(ctx, r)
		r.Close()
		if err != nil {
			return err
		}
		if damaged {
			continue
		}
		found = true
		if err := yield(name, data); err != nil {
			return err
		}
	}
	if encrypted && !found {
		return unsupported("ZIP archive with a password")
	}
	return nil
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
