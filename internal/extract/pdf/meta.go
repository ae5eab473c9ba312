package pdf

import (
	"bytes"
	"encoding/xml"
	"path"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// pdfDoc80 contains the characters of PDFDocEncoding from 0x80 on that differ
// from Latin-1 (ISO 32000-1, D.2).
var pdfDoc80 = []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\ufffd€")

// textString decodes a text string (ISO 32000-1, 7.9.2.2).
func textString(s string) string {
	switch {
	case strings.HasPrefix(s, "\xfe\xff"), strings.HasPrefix(s, "\xff\xfe"):
		u := make([]uint16, 0, len(s)/2)
		hi := 0
		if s[0] == 0xff {
			hi = 1
		}
		for i := 2; i+1 < len(s); i += 2 {
			u = append(u, uint16(s[i+hi])<<8|uint16(s[i+1-hi]))
		}
		return stripLanguage(string(utf16.Decode(u)))
	case strings.HasPrefix(s, "\xef\xbb\xbf"):
		return stripLanguage(strings.ToValidUTF8(s[3:], ""))
	case utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) >= 0:
		return s // against the standard, but there is no other interpretation
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		r := rune(c)
		if i := int(c) - 0x80; i >= 0 && i < len(pdfDoc80) {
			r = pdfDoc80[i]
		}
		b.WriteRune(r)
	}
	return b.String()
}

// stripLanguage removes the escapes that declare the language inside a string.
func stripLanguage(s string) string {
	if strings.Count(s, "\x1b") < 2 {
		return s
	}
	var b strings.Builder
	for {
		text, rest, _ := strings.Cut(s, "\x1b")
		_, after, closed := strings.Cut(rest, "\x1b")
		if !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(text)
		s = after
	}
}

// Limits on metadata, in bytes. Longer metadata is cut.
const (
	maxMeta = 8192    // of a string
	maxXMP  = 1 << 20 // of an XMP packet
)

// metaString decodes a text string of the metadata.
func metaString(s string) string { return textString(s[:min(len(s), maxMeta)]) }

// langOf returns the language that the document declares.
func langOf(f *cos.File) string { return metaString(f.Text(f.Root()["Lang"])) }

// title returns the title of the document, or "" if there is none that was
// written by a person.
func title(f *cos.File) string {
	if t := cleanTitle(metaString(f.Info("Title"))); t != "" {
		return t
	}
	if s := f.Stream(f.Root()["Metadata"]); s != nil {
		if data, err := f.Decode(s); err == nil {
			defer f.Budget.Free(len(data))
			return cleanTitle(xmpTitle(data[:min(len(data), maxXMP)], f.Budget))
		}
	}
	return ""
}

// cleanTitle removes substitutes of a title that programs write: file names and
// "untitled".
func cleanTitle(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 2000)], "")
	isBlank := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	s = strings.Join(strings.FieldsFunc(s, isBlank), " ")
	for _, p := range []string{"Microsoft Word - ", "Microsoft PowerPoint - ", "Microsoft Excel - "} {
		s = strings.TrimPrefix(s, p)
	}
	switch strings.ToLower(s) {
	case "(anonymous)", "(unspecified)", "untitled", "(untitled)", "powerpoint presentation", "document1", "title",
		"print":
		return ""
	}
	if strings.HasPrefix(strings.ToLower(s), "untitled ") || strings.IndexFunc(s, unicode.IsLetter) < 0 {
		return ""
	}
	ext := path.Ext(s)
	if len(ext) >= 3 && len(ext) <= 6 && !strings.Contains(s, " ") && strings.IndexFunc(ext[1:], notAlnum) < 0 {
		return ""
	}
	switch strings.ToLower(ext) {
	case ".doc", ".docx", ".ppt", ".pptx", ".xls", ".xlsx", ".pdf", ".odt", ".tex", ".dvi", ".indd", ".qxd", ".rtf",
		".ps",
		".fm", ".p65":
		return ""
	}
	return s
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func notAlnum(r rune) bool { return !isAlnum(r) }

// xmpTitle returns dc:title of XMP metadata: the text of its first rdf:li.
func xmpTitle(data []byte, b *cos.Budget) string {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	inTitle, inItem := false, false
	for {
		at := d.InputOffset()
		t, err := d.Token()
		if err != nil || !b.Spend(50+8*int(d.InputOffset()-at)) {
			return ""
		}
		switch t := t.(type) {
		case xml.StartElement:
			inTitle = inTitle || t.Name.Local == "title"
			inItem = inTitle && t.Name.Local == "li"
		case xml.EndElement:
			inTitle = inTitle && t.Name.Local != "title"
			inItem = false
		case xml.CharData:
			if inItem && len(bytes.TrimSpace(t)) > 0 {
				return string(t)
			}
		}
	}
}
