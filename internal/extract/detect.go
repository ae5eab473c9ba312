package extract

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"mime"
	"path"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/charset"
	"github.com/knowhow-mcp/knowhow/internal/extract/office"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
	"github.com/knowhow-mcp/knowhow/internal/extract/unpack"
)

// sniffLen is the number of bytes that determine whether a file is text.
const sniffLen = 512

// formatOf determines the format by magic numbers, the media type from the
// origin, the extension of the name, and whether the bytes look like text, in
// this order. That of a typed text is the media type alone.
func formatOf(in Input) (format, error) {
	media := plain.MediaType(in.MediaType)
	if in.Typed {
		return byMedia[media], nil
	}
	head := in.Data[:min(len(in.Data), sniffLen)]
	ext := extension(in.Name)
	if f, ok := byMagic(in.Data, head, ext, media); ok {
		if f.kind == unreadFile {
			return format{}, plain.Unsupported(f.name)
		}
		return f, nil
	}
	undeclared := media == "" || media == "application/octet-stream"
	f := byExtension[ext]
	known := f.isText()
	switch {
	case undeclared, media == "text/plain" && known:
		if what := unread(ext); what != "" {
			return format{}, plain.Unsupported(what)
		}
	case media == "text/x-markdown":
		f, known = byMedia["text/markdown"], true
	case isText(media):
		if f, known = byMedia[media]; !known {
			f, known = format{asWritten: true}, true
		}
		f.media = media
	default:
		if what := binaryMedia(media); what != "" {
			return format{}, plain.Unsupported(what)
		}
	}
	if !charset.LooksLikeText(head, known && ext != ".ts", len(in.Data) > len(head) || len(head) == sniffLen) {
		if what := binaryName(in.Name); what != "" {
			return format{}, plain.Damaged(what)
		}
		return format{}, plain.Unsupported("binary data of unknown format")
	}
	if !known {
		f = plainText
		if undeclared {
			f = sniffed(head, ext)
		}
	}
	if f.check != nil && !f.check(head) {
		return plainText, nil
	}
	return f, nil
}

// extension returns the extension of a name in lower case.
func extension(name string) string {
	return strings.ToLower(path.Ext(path.Base(strings.ReplaceAll(name, `\`, "/"))))
}

// isLock reports whether a name is that of a file by which Word and others lock a
// document, such as ~$a.docx.
func isLock(name string) bool {
	return strings.HasPrefix(path.Base(strings.ReplaceAll(name, `\`, "/")), "~$")
}

// TypeOf returns the media type of files with the extension of a name and Fess's name
// of their type, as in [Text]. Both are "" if the extension is not known.
func TypeOf(name string) (mediaType, fileType string) {
	f, ok := byExtension[extension(name)]
	if !ok {
		return "", ""
	}
	return f.media, cmp.Or(f.group, "others")
}

// IsDocument reports whether a name has the extension of a document for people,
// such as .pdf or .docx. Users expect to find such a file, so it should be named
// if it cannot be read. The files by which programs lock a document are no documents.
func IsDocument(name string) bool {
	return byExtension[extension(name)].isDocument() && !isLock(name)
}

// binaryName names the format of files whose name has this extension, if they are
// damaged when they look like another one; otherwise it returns "".
func binaryName(name string) string {
	f := byExtension[extension(name)]
	switch f.kind {
	case packageFile, zipFile, gzipFile, binaryFile:
		if f.media != mediaPDF && !isLock(name) {
			return f.name
		}
	}
	return ""
}

// notPDF is what a file is that should be a PDF document by its name or its media type.
const notPDF = "file that is not a PDF document, whatever its name is: save or download it again"

// unread returns what a file with this extension is that is not opened, unless it is
// a document; otherwise it returns "".
func unread(ext string) string {
	switch f := byExtension[ext]; {
	case f.media == mediaPDF:
		return notPDF
	case f.kind == unreadFile:
		return f.name
	}
	return ""
}

// byMagic returns the format of a file with magic bytes. ok is false if it has none.
func byMagic(data, head []byte, ext, media string) (f format, ok bool) {
	if isPDF(head, ext == ".pdf" || media == mediaPDF) {
		return byMedia[mediaPDF], true
	}
	for i := range formats {
		f := &formats[i]
		switch {
		case !f.hasMagic(head):
			continue
		case f.kind == zipFile && unread(ext) != "": // the form of another kind of file, such as a program
			return format{kind: unreadFile, name: f.name}, true
		case f.kind == zipFile && bytes.HasPrefix(head, []byte("PK\x03\x04")) &&
			(byExtension[ext].isDocument() || office.IsPackage(data)):
			return format{kind: packageFile}, true
		}
		return *f, true
	}
	return format{}, false
}

// isPDF reports whether head is the beginning of a PDF. In a file with the
// extension of a PDF, bytes of mail or web servers may precede it, as PDF
// readers have always permitted (ISO 32000-1, Annex H, implementation note 13).
func isPDF(head []byte, named bool) bool {
	i := bytes.Index(head, []byte("%PDF-"))
	return i == 0 || i > 0 && named
}

// sniffed returns the format of a text by its first bytes.
func sniffed(head []byte, ext string) format {
	for i := range formats {
		f := &formats[i]
		if f.sniff != nil && f.sniff(head, ext) {
			return *f
		}
	}
	return plainText
}

// charsetParam returns the charset in a media type, or "" if there is none.
func charsetParam(s string) string {
	_, params, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// isText reports whether documents of a media type are texts.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") && media != "text/rtf" || strings.HasSuffix(media, "+json") ||
		strings.HasSuffix(media, "+xml") || byMedia[media].isText()
}

// binaryMedia names the format of a media type that is not text.
func binaryMedia(media string) string {
	kind, _, _ := strings.Cut(media, "/")
	switch {
	case media == mediaPDF:
		return notPDF
	case kind == "image", kind == "audio", kind == "video", kind == "font":
		return media
	case strings.HasPrefix(media, "application/vnd."), media == "application/msword",
		media == office.RTF, media == "text/rtf":
		return "office document"
	case media == "application/zip", media == "application/gzip", media == "application/x-tar":
		return "archive"
	}
	return ""
}

// Supported reports whether Extract supports a file with this name whose first
// bytes, up to 512, are head. A file with an unknown extension is supported if
// it looks like text. So are an empty file, and a damaged one of a format that
// Extract reads.
func Supported(name string, head []byte) bool {
	f, err := formatOf(Input{Name: name, Data: head[:min(len(head), sniffLen)]})
	if err == nil && f.kind == gzipFile {
		data, ok := unpack.GzipHead(head, sniffLen)
		if !ok {
			return true
		}
		_, err = formatOf(Input{Name: unpack.GzipName(name), Data: data})
	}
	return err == nil || errors.Is(err, errkind.Corrupt)
}

// Language returns the language of a text of which head is the beginning, an ISO
// 639-1 code, or "" if it is unknown or the file is no plain text. name is as in
// [Input].
func Language(ctx context.Context, name string, head []byte) string {
	f, err := formatOf(Input{Name: name, Data: head})
	if err != nil || f.kind != textFile {
		return ""
	}
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)/2 {
		head = head[:i] // the rest may end inside a character
	}
	return charset.Language(charset.Decode(ctx, head, charset.Options{HTML: f.page}), "")
}
