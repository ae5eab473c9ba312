package office

import (
	"archive/zip"
	"context"
	"io"
	"path"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/knowhow-mcp/knowhow/internal/extract/unpack"
)

// Limits on documents that are ZIP archives. A small archive may expand to
// gigabytes, so the unpacked bytes that are read are limited too. They are
// streamed and never kept.
const (
	maxParts         = 50000     // entries of an archive
	minBytes         = 64 << 20  // bytes that are read of any archive
	bytesPerByte     = 100       // and in addition for each byte of the archive
	maxBytes         = 512 << 20 // at most
	maxSmallPart     = 1 << 20   // bytes of a part that is read into memory
	maxRelationships = 100000    // of one part
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
	files, err := unpack.Zip(data, what, maxParts)
	if err != nil {
		return nil, err
	}
	a := &archive{
		ctx: ctx, parts: make(map[string]*zip.File, len(files)),
		left: min(minBytes+bytesPerByte*int64(len(data)), maxBytes),
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
	return &partReader{a, unpack.NewReader(a.ctx, r, &a.left)}
}

// A partReader reads one part within the limits of the archive.
type partReader struct {
	a *archive
	*unpack.Reader
}

// Read implements [io.Reader].
func (p *partReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && err != io.EOF && p.a.left >= 0 && p.a.ctx.Err() == nil {
		p.a.damaged = true
	}
	return n, err
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

// A relationship leads from one part to another.
type relationship struct {
	kind   string // last element of the type's URL, in lower case, such as "notesslide"
	target string // name of the part
}

// isDrawing reports whether the target is a chart or a diagram.
func (r relationship) isDrawing() bool { return r.kind == "chart" || r.kind == "diagramdata" }

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
		target = strings.TrimPrefix(path.Clean("/"+target), "/")
		r := relationship{strings.ToLower(path.Base(x.attr("type"))), target}
		byID[x.attr("id")] = r
		all = append(all, r)
	}
	return byID, all
}

// related returns the part of a kind that a part leads to, the last one if there
// are several, or "".
func (a *archive) related(part, kind string) string {
	target := ""
	_, all := a.relationships(part)
	for _, r := range all {
		if r.kind == kind {
			target = r.target
		}
	}
	return target
}

// utf8Reader returns r, decoded from UTF-16 if it begins with its byte order
// mark. Other charsets do not occur in parts of documents.
func utf8Reader(head []byte, r io.Reader) io.Reader {
	if len(head) < 2 || head[0] != 0xff && head[0] != 0xfe || head[0]^head[1] != 1 {
		return r
	}
	return transform.NewReader(r, unicode.BOMOverride(encoding.Nop.NewDecoder()))
}
