package extract

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"knowhow/internal/errkind"
)

// Limits on documents that are ZIP archives. A small archive may expand to
// gigabytes, so the unpacked bytes that are read are limited too. They are
// streamed and never kept.
const (
	maxPackageParts     = 50000     // entries of an archive
	minPackageBytes     = 64 << 20  // bytes that are read of any archive
	packageBytesPerByte = 100       // and in addition for each byte of the archive
	maxPackageBytes     = 512 << 20 // at most
	maxSmallPart        = 1 << 20   // bytes of a part that is read into memory
	maxRelationships    = 100000    // of one part
)

// An archive contains the parts of a document that is a ZIP archive. It is used
// in one call only.
type archive struct {
	ctx     context.Context
	parts   map[string]*zip.File // by partKey
	left    int64                // bytes that may still be unpacked; negative after more
	damaged bool                 // a part is missing or could not be read to its end
}

// openArchive reads the directory of an archive. what names the document in
// errors.
func openArchive(ctx context.Context, data []byte, what string) (*archive, error) {
	files, err := openZip(data, what, maxPackageParts)
	if err != nil {
		return nil, err
	}
	a := &archive{
		ctx: ctx, parts: make(map[string]*zip.File, len(files)),
		left: min(minPackageBytes+packageBytesPerByte*int64(len(data)), maxPackageBytes),
	}
	for _, f := range files {
		if key := partKey(f.Name); a.parts[key] == nil {
			a.parts[key] = f
		}
	}
	return a, nil
}

// partKey returns the key of a part's name: names of parts are equal regardless
// of case (ECMA-376, part 2, 6.2.2.3). Keys are never used as paths of files.
func partKey(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "/"))
}

func (a *archive) has(name string) bool { return a.parts[partKey(name)] != nil }

// open returns a reader of a part. A part that is missing is empty.
func (a *archive) open(name string) io.Reader {
	f := a.parts[partKey(name)]
	if f == nil {
		return strings.NewReader("")
	}
	r, err := f.Open()
	if err != nil {
		a.damaged = true
		return strings.NewReader("")
	}
	// Close of these readers releases nothing but memory.
	return &partReader{a, unpacker{a.ctx, r, &a.left}}
}

// read returns a small part, such as a list of parts.
func (a *archive) read(name string) string {
	b, _ := io.ReadAll(io.LimitReader(a.open(name), maxSmallPart))
	return string(b)
}

// xml returns a reader of the elements of a part.
func (a *archive) xml(name string) *xmlReader { return newXMLReader(a.open(name)) }

// required returns a reader of the elements of a part that the document must
// contain.
func (a *archive) required(name string) *xmlReader {
	a.damaged = a.damaged || !a.has(name)
	return a.xml(name)
}

// A partReader reads one part within the limits of the archive.
type partReader struct {
	a *archive
	unpacker
}

// Read implements [io.Reader].
func (p *partReader) Read(b []byte) (int, error) {
	n, err := p.unpacker.Read(b)
	if err != nil && err != io.EOF && p.a.left >= 0 && p.a.ctx.Err() == nil {
		p.a.damaged = true
	}
	return n, err
}

// err returns the error of a document with the text f, after all parts were
// read: an exceeded limit, or damage that left nothing to read.
func (a *archive) err(f *flow, what string) error {
	switch {
	case f.err != nil:
		return fmt.Errorf("%s: %w", what, f.err)
	case a.left < 0:
		return fmt.Errorf("%s: %w", what, errUnpacked)
	case a.damaged && len(f.buf) == 0:
		return damaged(what)
	}
	return nil
}

// A relationship leads from one part to another.
type relationship struct {
	kind   string // last element of the type's URL, in lower case, such as "notesslide"
	target string // name of the part
}

// relationships returns the relationships of a part, by id, in the order of the
// file, without those to targets outside of the archive.
func (a *archive) relationships(part string) (byID map[string]relationship, all []relationship) {
	byID = map[string]relationship{}
	dir, base := path.Split(part)
	x := a.xml(dir + "_rels/" + base + ".rels")
	for x.next() && len(all) < maxRelationships {
		if !x.starts("relationship") || strings.EqualFold(x.attr("targetmode"), "external") {
			continue
		}
		target := strings.ReplaceAll(x.attr("target"), `\`, "/")
		if !strings.HasPrefix(target, "/") {
			target = dir + target
		}
		r := relationship{strings.ToLower(path.Base(x.attr("type"))), strings.TrimPrefix(path.Clean("/"+target), "/")}
		byID[x.attr("id")] = r
		all = append(all, r)
	}
	return byID, all
}

// utf8Reader returns r, decoded from UTF-16 if it begins with its byte order
// mark. Other charsets do not occur in parts of documents.
func utf8Reader(head []byte, r io.Reader) io.Reader {
	if len(head) < 2 || head[0] != 0xff && head[0] != 0xfe || head[0]^head[1] != 1 {
		return r
	}
	return transform.NewReader(r, unicode.BOMOverride(encoding.Nop.NewDecoder()))
}

// damaged returns the error for a document that cannot be read.
func damaged(what string) error {
	return fmt.Errorf("damaged %s: save or download it again: %w", what, errkind.Corrupt)
}

// tooLarge returns the error for a document that exceeds a limit.
func tooLarge(what, limit string) error {
	return fmt.Errorf("%s with %s: split it: %w", what, limit, errkind.TooLarge)
}

// ErrLocked is wrapped by the errors for documents with a password or with copy
// protection. It is of kind [errkind.Unsupported].
var ErrLocked error = lockedError{}

type lockedError struct{}

// Error returns the text of the kind.
func (lockedError) Error() string { return errkind.Unsupported.Error() }

// Unwrap returns the kind.
func (lockedError) Unwrap() error { return errkind.Unsupported }

// errProtected is the error for a book with digital rights management.
var errProtected = fmt.Errorf("its text is encrypted (copy protection), which cannot be read: %w", ErrLocked)

// locked returns the error for an encrypted document.
func locked(what string) error {
	return fmt.Errorf("%s with a password: save a copy without it: %w", what, ErrLocked)
}
