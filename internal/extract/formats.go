package extract

import (
	"bytes"
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/extract/code"
	"github.com/knowhow-mcp/knowhow/internal/extract/data"
	"github.com/knowhow-mcp/knowhow/internal/extract/mail"
	"github.com/knowhow-mcp/knowhow/internal/extract/markup"
	"github.com/knowhow-mcp/knowhow/internal/extract/office"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A kind is a way to read files.
type kind int

const (
	textFile    kind = iota // a text in some charset
	binaryFile              // not a text
	packageFile             // a ZIP archive whose parts determine the format of the document
	zipFile
	gzipFile
	mailFile
	mailboxFile
	unreadDocument // a document for people that is not read
	unreadFile
)

// A format is a format of files.
type format struct {
	kind  kind
	name  string // for messages; of a document that is not read with what to do
	ext   string // extensions of its files
	media string // media type; "" if the file has to be read for that, or has none
	alias string // other media types

	// group is Fess's name of the type (FileTypeHelper of Fess 15.4, in which only
	// text/plain is txt); "" means "others".
	group string

	magic []signature                        // a file that begins so has the format
	sniff func(head []byte, ext string) bool // so has one with an unknown extension and type that begins so
	check func(head []byte) bool             // a file with its extension or type that does not begin so is plain text

	parse func(ctx context.Context, t *plain.Text, src string)     // reads a text; nil keeps it as it is
	read  func(ctx context.Context, t *plain.Text, in Input) error // reads a binary file
	limit *limit                                                   // of parse; a longer text is kept as it is

	page      bool   // parse gets a text with control characters, which may declare its charset as HTML does
	asWritten bool   // the text is the file as it is, and has no title
	sheets    bool   // the document consists of sheets, whose headings are no titles
	empty     string // what a file without text is, for the error; "" if there is none
}

// A signature is bytes of a file that no text contains there by chance.
type signature struct {
	at    int
	bytes string
}

// starts returns the signatures of files that begin with one of these strings.
func starts(with ...string) (list []signature) {
	for _, s := range with {
		list = append(list, signature{0, s})
	}
	return list
}

// A limit is a limit on the source of a text in a markup language. A reader takes
// several times as much memory, and more for each line. People do not write so much
// in one file.
type limit struct{ bytes, lines int }

var (
	textLimit  = &limit{16 << 20, 500_000}
	imageLimit = &limit{32 << 20, math.MaxInt} // of a text that may contain images
)

// mediaPDF is the media type of PDF (RFC 8118).
const mediaPDF = "application/pdf"

// plainText is the format of texts of no other one.
var plainText = format{name: "plain text", ext: ".txt .text .log", media: "text/plain", group: "txt",
	parse: markup.PlainText, limit: textLimit, asWritten: true}

// formats are all formats. The first one counts that a file can have by its magic
// bytes or its first bytes.
var formats = []format{
	// Documents.
	{kind: binaryFile, name: "PDF document", ext: ".pdf", media: mediaPDF, group: "pdf", read: readPDF},
	{kind: packageFile, name: "Word document", ext: ".docx .docm .dotx .dotm", media: office.DOCX, group: "word"},
	{kind: packageFile, name: "Excel workbook", ext: ".xlsx .xlsm .xltx .xltm", media: office.XLSX, group: "excel",
		sheets: true},
	{kind: packageFile, name: "PowerPoint presentation", ext: ".pptx .pptm .ppsx .potx", media: office.PPTX,
		group: "powerpoint"},
	{kind: packageFile, name: "OpenDocument text", ext: ".odt .ott", media: office.ODT, group: "odt"},
	{kind: packageFile, name: "OpenDocument spreadsheet", ext: ".ods .ots", media: office.ODS, group: "ods",
		sheets: true},
	{kind: packageFile, name: "OpenDocument presentation", ext: ".odp .otp", media: office.ODP, group: "odp"},
	{kind: packageFile, name: "OpenDocument drawing", ext: ".odg"},
	{kind: packageFile, name: "EPUB book", ext: ".epub", media: office.EPUB},
	{kind: binaryFile, name: "RTF document", ext: ".rtf", media: office.RTF, group: "word", magic: starts(`{\rtf`),
		read: readRTF},
	{kind: binaryFile, name: "old office document", magic: starts("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), read: readOLE},
	{kind: unreadDocument, name: office.OldWord, ext: ".doc"},
	{kind: unreadDocument, name: office.OldExcel, ext: ".xls"},
	{kind: unreadDocument, name: office.OldPowerPoint, ext: ".ppt"},
	{kind: unreadDocument, name: office.OldOutlook, ext: ".msg"},
	{kind: unreadDocument, name: office.BinaryExcel, ext: ".xlsb"},
	{kind: unreadDocument, name: office.Visio, ext: ".vsd .vsdx"},
	{kind: unreadDocument, name: "Pages document: export it as .docx", ext: ".pages"},
	{kind: unreadDocument, name: "Numbers spreadsheet: export it as .xlsx", ext: ".numbers"},
	{kind: unreadDocument, name: "Mobipocket book: convert it to .epub", ext: ".mobi"},

	// Files with other files, and mail.
	{kind: zipFile, name: "ZIP archive", ext: ".zip", media: "application/zip",
		magic: starts("PK\x03\x04", "PK\x05\x06")},
	{kind: gzipFile, name: "gzip file", ext: ".gz .svgz", media: "application/gzip", magic: starts("\x1f\x8b\b")},
	{kind: mailboxFile, name: "mailbox", ext: ".mbox .mbx", media: "application/mbox", group: "txt",
		sniff: func(head []byte, _ string) bool { return mail.IsMailbox(head) }, check: mail.IsMailbox},
	{kind: mailFile, name: "mail", ext: ".eml .mht .mhtml", media: "message/rfc822", group: "txt",
		sniff: func(head []byte, _ string) bool { return mail.IsMail(head, false) },
		check: func(head []byte) bool { return mail.IsMail(head, true) }},

	// Texts with markup.
	plainText,
	{name: "Markdown", ext: ".md .markdown .mdown .mkd .mdx .qmd", media: "text/markdown", group: "txt",
		parse: markup.Markdown},
	{name: "manual page", ext: ".man .mdoc", media: "text/troff", group: "txt", sniff: markup.IsManual,
		parse: markup.Man, limit: textLimit, empty: "manual page that only refers to another one"},
	{name: "HTML", ext: ".html .htm .shtml", media: "text/html", group: "html", sniff: startsHTML, page: true,
		parse: markup.HTML},
	{name: "XHTML", ext: ".xhtml .xht", media: "application/xhtml+xml", group: "html", page: true, parse: markup.HTML},
	{name: "SVG", ext: ".svg", media: "image/svg+xml", sniff: startsSVG, check: hasTag, parse: markup.SVG,
		limit: imageLimit, empty: "image without text"},
	{name: "Jupyter notebook", ext: ".ipynb", media: "application/x-ipynb+json", parse: markup.Notebook,
		limit: imageLimit},
	{name: "reStructuredText", ext: ".rst .rest", media: "text/x-rst", group: "txt", parse: markup.RST,
		limit: textLimit},
	{name: "AsciiDoc", ext: ".adoc .asciidoc .asc", media: "text/asciidoc", group: "txt", parse: markup.AsciiDoc,
		limit: textLimit},
	{name: "Org", ext: ".org", media: "text/org", group: "txt", parse: markup.Org, limit: textLimit},
	{name: "LaTeX", ext: ".tex .ltx", media: "application/x-tex", group: "txt", parse: markup.LaTeX, limit: textLimit},
	{name: "XML", ext: ".xml .xsd .xsl", media: "application/xml", asWritten: true},
	{name: "CSS", ext: ".css", media: "text/css", asWritten: true},

	// Data.
	{name: "CSV", ext: ".csv", media: "text/csv", parse: data.CSV, asWritten: true},
	{name: "TSV", ext: ".tsv", media: "text/tab-separated-values", parse: data.CSV, asWritten: true},
	{name: "JSON", ext: ".json .jsonc .json5", media: "application/json", parse: data.JSON, asWritten: true},
	{name: "GeoJSON", ext: ".geojson", media: "application/geo+json", parse: data.JSON, asWritten: true},
	{name: "JSON lines", ext: ".jsonl .ndjson", media: "application/x-ndjson", parse: data.JSON, asWritten: true},
	{name: "YAML", ext: ".yaml .yml", media: "application/yaml", alias: "application/x-yaml",
		parse: data.YAML, asWritten: true},
	{name: "TOML", ext: ".toml", media: "application/toml", parse: data.TOML, asWritten: true},
	{name: "INI", ext: ".ini .cfg", media: "text/x-ini", parse: data.TOML, asWritten: true},
	{name: "properties", ext: ".properties", media: "text/x-java-properties", asWritten: true},
	{name: "SubRip", ext: ".srt", media: "application/x-subrip", group: "txt", parse: data.Subtitles, limit: textLimit},
	{name: "WebVTT", ext: ".vtt", media: "text/vtt", group: "txt", parse: data.Subtitles, limit: textLimit},

	// Source code.
	{name: "Go", ext: ".go", media: "text/x-go", parse: code.Read, asWritten: true},
	{name: "Python", ext: ".py .pyi", media: "text/x-python", sniff: script("python pypy"),
		parse: code.Read, asWritten: true},
	{name: "Java", ext: ".java", media: "text/x-java", parse: code.Read, asWritten: true},
	{name: "Kotlin", ext: ".kt .kts", media: "text/x-kotlin", parse: code.Read, asWritten: true},
	{name: "Scala", ext: ".scala", media: "text/x-scala", parse: code.Read, asWritten: true},
	{name: "Swift", ext: ".swift", media: "text/x-swift", parse: code.Read, asWritten: true},
	{name: "C", ext: ".c .h", media: "text/x-c", parse: code.Read, asWritten: true},
	{name: "C++", ext: ".cc .cpp .cxx .hpp .hh .hxx", media: "text/x-c++", parse: code.Read, asWritten: true},
	{name: "C#", ext: ".cs", media: "text/x-csharp", parse: code.Read, asWritten: true},
	{name: "Rust", ext: ".rs", media: "text/x-rust", parse: code.Read, asWritten: true},
	{name: "Ruby", ext: ".rb", media: "text/x-ruby", sniff: script("ruby"), parse: code.Read, asWritten: true},
	{name: "Perl", ext: ".pl", media: "text/x-perl", asWritten: true},
	{name: "PHP", ext: ".php", media: "text/x-php", sniff: script("php"), parse: code.Read, asWritten: true},
	{name: "JavaScript", ext: ".js .mjs .cjs .jsx", media: "text/javascript",
		alias: "application/javascript application/x-javascript", sniff: script("node deno bun"),
		parse: code.Read, asWritten: true},
	{name: "TypeScript", ext: ".ts .mts .cts .tsx", media: "text/x-typescript", parse: code.Read, asWritten: true},
	{name: "shell", ext: ".sh .bash .zsh .ksh", media: "application/x-sh", sniff: script("sh bash dash zsh ksh"),
		parse: code.Read, asWritten: true},
	{name: "SQL", ext: ".sql", media: "application/sql", parse: code.Read, asWritten: true},

	// What is not read. Files with these extensions are not opened, which saves opening
	// every image in a large folder.
	{kind: unreadFile, name: "PostScript document", ext: ".ps", magic: starts("%!PS")},
	{kind: unreadFile, name: "book", ext: ".djvu"},
	{kind: unreadFile, name: "program", ext: ".exe .dll .so .dylib .a .o .obj .lib .class .pyc .pyo .wasm",
		magic: starts("\x7fELF", "\xca\xfe\xba\xbe", "\xcf\xfa\xed\xfe", "\x00asm")},
	{kind: unreadFile, name: "gzip archive", magic: starts("\x1f\x8b")},
	{kind: unreadFile, name: "bzip2 archive", magic: starts("BZh9")},
	{kind: unreadFile, name: "xz archive", magic: starts("\xfd7zXZ\x00")},
	{kind: unreadFile, name: "zstd archive", magic: starts("\x28\xb5\x2f\xfd")},
	{kind: unreadFile, name: "7z archive", magic: starts("7z\xbc\xaf\x27\x1c")},
	{kind: unreadFile, name: "RAR archive", magic: starts("Rar!\x1a\x07")},
	{kind: unreadFile, name: "tar archive", magic: []signature{{257, "ustar"}}},
	{kind: unreadFile, name: "archive", magic: starts("!<arch>\n"),
		ext: ".bz2 .xz .zst .7z .rar .tar .jar .war .whl .deb .rpm .iso .dmg .apk"},
	{kind: unreadFile, name: "image",
		ext: ".eps .png .jpg .jpeg .gif .webp .bmp .ico .tif .tiff .heic .avif .psd .xcf .ai",
		magic: append(starts("GIF87a", "GIF89a", "\x89PNG\r\n", "\xff\xd8\xff", "II*\x00", "MM\x00*"),
			signature{8, "WEBP"})},
	{kind: unreadFile, name: "audio", ext: ".mp3 .wav .ogg .flac .m4a .aac .opus",
		magic: append(starts("OggS\x00", "fLaC\x00", "ID3\x03", "ID3\x04"), signature{8, "WAVE"})},
	{kind: unreadFile, name: "video", ext: ".mp4 .mkv .webm .avi .mov .wmv .m4v",
		magic: append(starts("\x1aE\xdf\xa3"), signature{8, "AVI "}, signature{4, "ftyp"})},
	{kind: unreadFile, name: "font", ext: ".woff .woff2 .ttf .otf .eot", magic: starts("wOFF", "wOF2")},
	{kind: unreadFile, name: "database", ext: ".db .sqlite .sqlite3 .mdb", magic: starts("SQLite format 3\x00")},
	{kind: unreadFile, name: "data", ext: ".npy .npz .pkl .parquet .safetensors .onnx .faiss"},
}

// Indexes of formats.
var (
	byExtension = index(func(f format) string { return f.ext })
	byMedia     = index(func(f format) string { return f.media + " " + f.alias })
)

// index returns formats by the words of a string of each.
func index(words func(format) string) map[string]format {
	m := map[string]format{}
	for _, f := range formats {
		for word := range strings.FieldsSeq(words(f)) {
			m[word] = f
		}
	}
	return m
}

// isText reports whether files of the format are read as texts, apart from their
// parts. The format "" is none.
func (f format) isText() bool {
	return f.name != "" && (f.kind == textFile || f.kind == mailFile || f.kind == mailboxFile)
}

// isDocument reports whether a format is one of documents for people.
func (f format) isDocument() bool {
	return f.kind == packageFile || f.kind == binaryFile || f.kind == unreadDocument
}

// tooLong reports whether a text exceeds a limit of the format, so that it is kept as
// it is.
func (f *format) tooLong(s string) bool {
	return f.limit != nil && (len(s) > f.limit.bytes || strings.Count(s, "\n") > f.limit.lines)
}

// hasMagic reports whether a file with the first bytes head has the format.
func (f *format) hasMagic(head []byte) bool {
	for _, m := range f.magic {
		if len(head) >= m.at && bytes.HasPrefix(head[m.at:], []byte(m.bytes)) {
			return true
		}
	}
	return false
}

// script returns a function that reports whether a file is a script for one of the
// interpreters, whose names are separated by blanks.
func script(interpreters string) func(head []byte, ext string) bool {
	return func(head []byte, _ string) bool {
		line, ok := bytes.CutPrefix(head, []byte("#!"))
		if !ok {
			return false
		}
		line, _, _ = bytes.Cut(line, []byte("\n"))
		words := strings.Fields(string(line))
		if len(words) > 1 && path.Base(words[0]) == "env" {
			words = words[1:]
			for len(words) > 1 && (words[0][0] == '-' || strings.Contains(words[0], "=")) {
				words = words[1:]
			}
		}
		if len(words) == 0 {
			return false
		}
		name := strings.TrimRight(path.Base(words[0]), "0123456789.")
		return slices.Contains(strings.Fields(interpreters), name)
	}
}

// markupStart returns the beginning of a text in lower case, without comments. It
// returns "" if there are words before the first tag.
func markupStart(head []byte) string {
	if i := bytes.IndexByte(head, '<'); i < 0 || bytes.ContainsFunc(head[:i], unicode.IsLetter) {
		return ""
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
	return s
}

func startsHTML(head []byte, _ string) bool {
	s := markupStart(head)
	return strings.HasPrefix(s, "<!doctype html") || strings.HasPrefix(s, "<html") ||
		strings.HasPrefix(s, "<?xml") && strings.Contains(s, "<html")
}

func startsSVG(head []byte, _ string) bool {
	s := markupStart(head)
	return strings.HasPrefix(s, "<svg") || strings.HasPrefix(s, "<?xml") && strings.Contains(s, "<svg")
}

func hasTag(head []byte) bool { return bytes.Contains(head, []byte("<")) }

func readRTF(ctx context.Context, t *plain.Text, in Input) error {
	return office.ReadRTF(ctx, t, in.Data)
}

func readOLE(_ context.Context, _ *plain.Text, in Input) error { return office.OLE(in.Data) }
