package extract

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode/utf8"
)

// sniffLen is the number of bytes that determine whether a file is text.
const sniffLen = 512

type kind int

const (
	kindText kind = iota
	kindMarkdown
	kindHTML
	kindPDF
	kindPackage // Office Open XML, OpenDocument or EPUB; its parts determine which
	kindRTF
	kindOLE // office documents before 2007, and later ones with a password
	kindCSV
	kindGzip
	kindZip
	kindMail
	kindMailbox
	kindNotebook
	kindRST
	kindAsciiDoc
	kindOrg
	kindLaTeX
	kindMan
	kindJSON
	kindYAML
	kindTOML
	kindCode
	kindSubtitles
	kindSVG
)

// binary reports whether files of this kind are not read as a text in a charset.
func (k kind) binary() bool {
	switch k {
	case kindPDF, kindGzip, kindZip, kindMail, kindMailbox, kindPackage, kindRTF, kindOLE:
		return true
	}
	return false
}

// asWritten reports whether the text of files of this kind is the file as it is.
// Such files have no title.
func (k kind) asWritten() bool {
	switch k {
	case kindText, kindCode, kindJSON, kindYAML, kindTOML, kindCSV:
		return true
	}
	return false
}

// A format determines how a document is read and how its type is named.
type format struct {
	kind  kind
	media string
}

// fileType is Fess's name (Fess 15.4, FileTypeHelper). Its own table has only
// text/plain as txt. Markdown and similar formats are added here, because users
// mean them too by text.
func (f format) fileType() string {
	switch f.media {
	case "text/html", "application/xhtml+xml":
		return "html"
	case mediaPDF:
		return "pdf"
	case "text/plain", "text/markdown", "text/x-rst", "text/asciidoc", "text/org", "application/x-tex", "text/troff",
		"message/rfc822", "application/mbox", "application/x-subrip", "text/vtt":
		return "txt"
	case mediaDOCX, mediaRTF:
		return "word"
	case mediaXLSX:
		return "excel"
	case mediaPPTX:
		return "powerpoint"
	case mediaODT:
		return "odt"
	case mediaODS:
		return "ods"
	case mediaODP:
		return "odp"
	}
	return "others"
}

// formatOf determines the format by magic numbers, the media type from the
// origin, the extension of the name, and whether the bytes look like text, in
// this order.
func formatOf(in Input) (format, error) {
	head := in.Data[:min(len(in.Data), sniffLen)]
	media := mediaType(in.MediaType)
	ext := extension(in.Name)
	if isPDF(head, ext == ".pdf" || media == mediaPDF) {
		return format{kindPDF, mediaPDF}, nil
	}
	if f, ok := documentFormat(in.Data, ext); ok {
		return f, nil
	}
	if f, ok := packed(head, ext); ok {
		return f, nil
	}
	if what := magic(head); what != "" {
		return format{}, unsupported(what)
	}
	f, known := byExtension(ext)
	switch {
	case media == "text/html", media == "application/xhtml+xml":
		f, known = format{kindHTML, media}, true
	case media == "text/markdown", media == "text/x-markdown":
		f, known = format{kindMarkdown, "text/markdown"}, true
	case media == "" || media == "application/octet-stream" || media == "text/plain" && known:
		if what, ok := binaryExtensions[ext]; ok {
			return format{}, unsupported(what)
		}
	case isTextMedia(media):
		f, known = format{mediaKinds[media], media}, true
	default:
		if what := binaryMedia(media); what != "" {
			return format{}, unsupported(what)
		}
	}
	if !looksLikeText(head, known && ext != ".ts", len(in.Data) > len(head) || len(head) == sniffLen) {
		if what := documentNames[ext]; what != "" && IsDocument(in.Name) {
			return format{}, damaged(what)
		}
		if what := packedNames[ext]; what != "" {
			return format{}, damaged(what)
		}
		return format{}, unsupported("binary data of unknown format")
	}
	if !known {
		f = format{kindText, "text/plain"}
		if media == "" || media == "application/octet-stream" {
			f = sniffText(head, ext)
		}
	}
	if f.kind == kindMail && !isMail(head, true) || f.kind == kindMailbox && !isMailbox(head) ||
		f.kind == kindSVG && !bytes.Contains(head, []byte("<")) {
		f = format{kindText, "text/plain"}
	}
	return f, nil
}

// extension returns the extension of a name in lower case.
func extension(name string) string {
	return strings.ToLower(path.Ext(path.Base(strings.ReplaceAll(name, `\`, "/"))))
}

// documentFormat returns the format of an office document or a book by its
// content. The name only excludes archives, whose files may be documents.
func documentFormat(data []byte, ext string) (format, bool) {
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && binaryExtensions[ext] == "":
		if documentNames[ext]+unreadDocuments[ext] != "" {
			return format{kind: kindPackage}, true
		}
		files, err := openZip(data, "", maxPackageParts)
		for i := 0; err == nil && i < len(files); i++ {
			switch partKey(files[i].Name) {
			case "[content_types].xml", "mimetype", "meta-inf/container.xml", "meta-inf/manifest.xml":
				return format{kind: kindPackage}, true
			}
		}
	case bytes.HasPrefix(data, []byte(`{\rtf`)):
		return format{kindRTF, mediaRTF}, true
	case bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return format{kind: kindOLE}, true
	}
	return format{}, false
}

// packed returns the format of a gzip file, and of a ZIP archive that is not the
// form of another kind of file, such as a program.
func packed(head []byte, ext string) (format, bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b\b")):
		return format{kindGzip, "application/gzip"}, true
	case (bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))) &&
		(ext == ".zip" || binaryExtensions[ext] == ""):
		return format{kindZip, "application/zip"}, true
	}
	return format{}, false
}

// IsDocument reports whether a name has the extension of a document for people,
// such as .pdf or .docx. Users expect to find such a file, so it should be named
// if it cannot be read. The files by which Word and others lock a document, such
// as ~$a.docx, are no documents.
func IsDocument(name string) bool {
	ext := extension(name)
	if strings.HasPrefix(path.Base(strings.ReplaceAll(name, `\`, "/")), "~$") {
		return false
	}
	return ext == ".pdf" || documentNames[ext] != "" || unreadDocuments[ext] != ""
}

// mediaPDF is the media type of PDF (RFC 8118).
const mediaPDF = "application/pdf"

// isPDF reports whether head is the beginning of a PDF. In a file with the
// extension of a PDF, bytes of mail or web servers may precede it, as PDF
// readers have always permitted (ISO 32000-1, Annex H, implementation note 13).
func isPDF(head []byte, named bool) bool {
	i := bytes.Index(head, []byte("%PDF-"))
	return i == 0 || i > 0 && named
}

// byExtension returns the format of a name with a known text extension.
func byExtension(ext string) (format, bool) {
	media, ok := textExtensions[ext]
	if !ok {
		return format{}, false
	}
	return format{mediaKinds[media], media}, true
}

// mediaType returns the lower-case type without parameters, or "" if s contains
// none.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.Count(s, "/") != 1 || len(s) > 100 || strings.ContainsAny(s, " \t,\"") {
		return ""
	}
	return s
}

// charsetParam returns the charset in a media type, or "" if there is none.
func charsetParam(s string) string {
	_, params, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return params["charset"]
}

func isTextMedia(media string) bool {
	if strings.HasPrefix(media, "text/") && media != "text/rtf" || strings.HasSuffix(media, "+json") ||
		strings.HasSuffix(media, "+xml") {
		return true
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/sql",
		"application/x-sh", "application/x-ndjson", "application/x-tex", "message/rfc822", "application/mbox", "application/x-subrip":
		return true
	}
	return false
}

// binaryMedia names the format of a media type that is not text.
func binaryMedia(media string) string {
	switch {
	case media == mediaPDF:
		return "PDF document"
	case strings.HasPrefix(media, "image/"), strings.HasPrefix(media, "audio/"),
		strings.HasPrefix(media, "video/"), strings.HasPrefix(media, "font/"):
		return media
	case strings.HasPrefix(media, "application/vnd."), media == "application/msword",
		media == "application/rtf", media == "text/rtf":
		return "office document"
	case media == "application/zip", media == "application/gzip", media == "application/x-tar":
		return "archive"
	}
	return ""
}

// sniffText distinguishes HTML, SVG, mail, notebooks and manual pages from other
// text by their first bytes, for documents without a declared type and a known
// extension.
func sniffText(head []byte, ext string) format {
	switch {
	case isMailbox(head):
		return format{kindMailbox, "application/mbox"}
	case isMail(head, false):
		return format{kindMail, "message/rfc822"}
	case isManual(head, ext):
		return format{kindMan, "text/troff"}
	case bytes.HasPrefix(head, []byte("#!")):
		if media := scriptMedia(head); media != "" {
			return format{kindCode, media}
		}
	}
	s := strings.ToLower(string(bytes.ReplaceAll(head, []byte{0}, nil)))
	s = strings.TrimLeft(strings.TrimPrefix(s, "\ufeff"), " \t\r\n")
	for strings.HasPrefix(s, "<!--") {
		_, rest, ok := strings.Cut(s, "-->")
		if !ok {
			break
		}
		s = strings.TrimLeft(rest, " \t\r\n")
	}
	if strings.HasPrefix(s, "<!doctype html") || strings.HasPrefix(s, "<html") ||
		strings.HasPrefix(s, "<?xml") && strings.Contains(s, "<html") {
		return format{kindHTML, "text/html"}
	}
	if strings.HasPrefix(s, "<svg") || strings.HasPrefix(s, "<?xml") && strings.Contains(s, "<svg") {
		return format{kindSVG, "image/svg+xml"}
	}
	return format{kindText, "text/plain"}
}

// scriptMedia returns the media type of a script by its first line, which names
// its interpreter, or "".
func scriptMedia(head []byte) string {
	line, _, _ := bytes.Cut(head[len("#!"):], []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) > 1 && path.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 1 && (words[0][0] == '-' || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return ""
	}
	switch strings.TrimRight(path.Base(words[0]), "0123456789.") {
	case "sh", "bash", "dash", "zsh", "ksh":
		return "application/x-sh"
	case "python", "pypy":
		return "text/x-python"
	case "node", "deno", "bun":
		return "text/javascript"
	case "ruby":
		return "text/x-ruby"
	case "php":
		return "text/x-php"
	}
	return ""
}

// looksLikeText reports whether head can be the beginning of a text. A file
// with a text extension may contain a few stray control bytes. With cut, the
// text continues after head, which may then end inside a character.
func looksLikeText(head []byte, known, cut bool) bool {
	if bomOf(head) != "" || utf16Without(head) != "" {
		return true
	}
	nul, control, high := 0, 0, 0
	for _, b := range head {
		switch {
		case b == 0:
			nul++
		case b < 0x20 && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\b' && b != 0x1b, b == 0x7f:
			control++
		case b >= 0x80:
			high++
		}
	}
	if known {
		return (nul+control)*10 <= len(head)
	}
	if nul > 0 || control*50 > len(head) {
		return false
	}
	// Text that is not UTF-8 may be in an old charset, in which any other
	// control byte is unlikely.
	return high == 0 || validUTF8(head, cut) || control == 0
}

// validUTF8 reports whether b is UTF-8. If it was cut, its last character may
// be incomplete.
func validUTF8(b []byte, cut bool) bool {
	if cut {
		for i := 1; i <= utf8.UTFMax-1 && i <= len(b); i++ {
			if c := b[len(b)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(b[len(b)-i:]) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(b)
}

// magic names the binary format that head begins with, or returns "".
func magic(head []byte) string {
	for _, m := range magics {
		if len(head) >= m.at+len(m.bytes) && string(head[m.at:m.at+len(m.bytes)]) == m.bytes {
			return m.what
		}
	}
	return ""
}
