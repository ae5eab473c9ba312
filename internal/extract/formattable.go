package extract

import "context"

// magics are the first bytes of formats that are not text, or whose text cannot
// be read directly. They are long enough that a text does not begin with them
// by chance.
var magics = [...]struct {
	at          int
	bytes, what string
}{
	{0, "%!PS", "PostScript document"},
	{0, "PK\x03\x04", "ZIP archive"},
	{0, "PK\x05\x06", "ZIP archive"},
	{0, "\x7fELF", "program"},
	{0, "\xca\xfe\xba\xbe", "program"},
	{0, "\xcf\xfa\xed\xfe", "program"},
	{0, "\x00asm", "program"},
	{0, "!<arch>\n", "archive"},
	{0, "\x1f\x8b", "gzip archive"},
	{0, "BZh9", "bzip2 archive"},
	{0, "\xfd7zXZ\x00", "xz archive"},
	{0, "\x28\xb5\x2f\xfd", "zstd archive"},
	{0, "7z\xbc\xaf\x27\x1c", "7z archive"},
	{0, "Rar!\x1a\x07", "RAR archive"},
	{257, "ustar", "tar archive"},
	{0, "GIF87a", "image"},
	{0, "GIF89a", "image"},
	{0, "\x89PNG\r\n", "image"},
	{0, "\xff\xd8\xff", "image"},
	{0, "II*\x00", "image"},
	{0, "MM\x00*", "image"},
	{8, "WEBP", "image"},
	{8, "WAVE", "audio"},
	{8, "AVI ", "video"},
	{4, "ftyp", "video"},
	{0, "\x1aE\xdf\xa3", "video"},
	{0, "OggS\x00", "audio"},
	{0, "fLaC\x00", "audio"},
	{0, "ID3\x03", "audio"},
	{0, "ID3\x04", "audio"},
	{0, "SQLite format 3\x00", "database"},
	{0, "wOFF", "font"},
	{0, "wOF2", "font"},
}

// binaryExtensions are the extensions of files that are not opened, which saves
// opening every image in a large folder.
var binaryExtensions = map[string]string{
	".pdf": "file that is not a PDF document, whatever its name is: save or download it again", ".ps": "PostScript document", ".eps": "image", ".djvu": "book",
	".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".bmp": "image",
	".ico": "image", ".tif": "image", ".tiff": "image", ".heic": "image", ".avif": "image", ".psd": "image",
	".xcf": "image", ".ai": "image",
	".mp3": "audio", ".wav": "audio", ".ogg": "audio", ".flac": "audio", ".m4a": "audio", ".aac": "audio", ".opus": "audio",
	".mp4": "video", ".mkv": "video", ".webm": "video", ".avi": "video", ".mov": "video", ".wmv": "video", ".m4v": "video",
	".bz2": "archive", ".xz": "archive", ".zst": "archive",
	".7z": "archive", ".rar": "archive", ".tar": "archive", ".jar": "archive", ".war": "archive", ".whl": "archive",
	".deb": "archive", ".rpm": "archive", ".iso": "archive", ".dmg": "archive", ".apk": "archive",
	".exe": "program", ".dll": "program", ".so": "program", ".dylib": "program", ".a": "program", ".o": "program",
	".obj": "program", ".lib": "program", ".class": "program", ".pyc": "program", ".pyo": "program", ".wasm": "program",
	".woff": "font", ".woff2": "font", ".ttf": "font", ".otf": "font", ".eot": "font",
	".db": "database", ".sqlite": "database", ".sqlite3": "database", ".mdb": "database",
	".npy": "data", ".npz": "data", ".pkl": "data", ".parquet": "data", ".safetensors": "data", ".onnx": "data", ".faiss": "data",
}

// documentNames names the formats of office documents and books that are read,
// by extension. Their content determines the format, whatever the extension is.
var documentNames = map[string]string{
	".docx": "Word document", ".docm": "Word document", ".dotx": "Word document", ".dotm": "Word document",
	".xlsx": "Excel workbook", ".xlsm": "Excel workbook", ".xltx": "Excel workbook", ".xltm": "Excel workbook",
	".pptx": "PowerPoint presentation", ".pptm": "PowerPoint presentation", ".ppsx": "PowerPoint presentation", ".potx": "PowerPoint presentation",
	".odt": "OpenDocument text", ".ott": "OpenDocument text", ".ods": "OpenDocument spreadsheet", ".ots": "OpenDocument spreadsheet",
	".odp": "OpenDocument presentation", ".otp": "OpenDocument presentation", ".odg": "OpenDocument drawing",
	".epub": "EPUB book", ".rtf": "RTF document",
}

// packedNames names the formats of files that are unpacked, by extension.
var packedNames = map[string]string{".zip": "ZIP archive", ".gz": "gzip file", ".svgz": "gzip file"}

// unreadDocuments names the formats of documents that are not read, by extension,
// and states what to do.
var unreadDocuments = map[string]string{
	".doc": oldWord, ".xls": oldExcel, ".ppt": oldPowerPoint, ".xlsb": binaryExcel,
	".pages": "Pages document: export it as .docx", ".numbers": "Numbers spreadsheet: export it as .xlsx",
	".mobi": "Mobipocket book: convert it to .epub", ".msg": oldOutlook, ".vsd": oldVisio, ".vsdx": oldVisio,
}

const (
	oldWord       = "Word document in the old format (.doc): save it as .docx"
	oldExcel      = "Excel workbook in the old format (.xls): save it as .xlsx"
	oldPowerPoint = "PowerPoint presentation in the old format (.ppt): save it as .pptx"
	oldOutlook    = "Outlook message (.msg): save it as .eml"
	oldVisio      = "Visio drawing: export it as PDF"
	binaryExcel   = "Excel workbook in binary format (.xlsb): save it as .xlsx"
)

// textExtensions are the extensions with a known media type. Other files that
// look like text are text/plain.
var textExtensions = map[string]string{
	".html": "text/html", ".htm": "text/html", ".shtml": "text/html", ".xhtml": "application/xhtml+xml", ".xht": "application/xhtml+xml",
	".md": "text/markdown", ".markdown": "text/markdown", ".mdown": "text/markdown", ".mkd": "text/markdown", ".mdx": "text/markdown", ".qmd": "text/markdown",
	".txt": "text/plain", ".text": "text/plain", ".log": "text/plain",
	".rst": "text/x-rst", ".rest": "text/x-rst", ".adoc": "text/asciidoc", ".asciidoc": "text/asciidoc", ".asc": "text/asciidoc", ".org": "text/org",
	".tex": "application/x-tex", ".ltx": "application/x-tex", ".man": "text/troff", ".mdoc": "text/troff",
	".eml": "message/rfc822", ".mht": "message/rfc822", ".mhtml": "message/rfc822", ".mbox": "application/mbox", ".mbx": "application/mbox",
	".ipynb": "application/x-ipynb+json", ".srt": "application/x-subrip", ".vtt": "text/vtt", ".svg": "image/svg+xml",
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".json": "application/json", ".jsonc": "application/json", ".json5": "application/json",
	".geojson": "application/geo+json", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson",
	".xml": "application/xml", ".xsd": "application/xml", ".xsl": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
	".ini": "text/x-ini", ".cfg": "text/x-ini", ".properties": "text/x-java-properties", ".css": "text/css",
	".go": "text/x-go", ".py": "text/x-python", ".pyi": "text/x-python", ".java": "text/x-java", ".kt": "text/x-kotlin", ".kts": "text/x-kotlin",
	".scala": "text/x-scala", ".swift": "text/x-swift", ".c": "text/x-c", ".h": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".cxx": "text/x-c++",
	".hpp": "text/x-c++", ".hh": "text/x-c++", ".hxx": "text/x-c++", ".cs": "text/x-csharp", ".rs": "text/x-rust", ".rb": "text/x-ruby", ".pl": "text/x-perl",
	".php": "text/x-php", ".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript", ".jsx": "text/javascript",
	".ts": "text/x-typescript", ".mts": "text/x-typescript", ".cts": "text/x-typescript", ".tsx": "text/x-typescript",
	".sh": "application/x-sh", ".bash": "application/x-sh", ".zsh": "application/x-sh", ".ksh": "application/x-sh", ".sql": "application/sql",
}

// mediaKinds are the kinds of media types. Others are kindText.
var mediaKinds = map[string]kind{
	"text/html": kindHTML, "application/xhtml+xml": kindHTML,
	"text/markdown": kindMarkdown,
	mediaCSV:        kindCSV, mediaTSV: kindCSV,
	"text/x-rst":               kindRST,
	"text/asciidoc":            kindAsciiDoc,
	"text/org":                 kindOrg,
	"application/x-tex":        kindLaTeX,
	"text/troff":               kindMan,
	"message/rfc822":           kindMail,
	"application/mbox":         kindMailbox,
	"application/x-ipynb+json": kindNotebook,
	"application/x-subrip":     kindSubtitles, "text/vtt": kindSubtitles,
	"image/svg+xml":    kindSVG,
	"application/json": kindJSON, "application/geo+json": kindJSON, "application/x-ndjson": kindJSON,
	"application/yaml": kindYAML, "application/x-yaml": kindYAML,
	"application/toml": kindTOML, "text/x-ini": kindTOML,
	"text/x-go": kindCode, "text/x-python": kindCode, "text/x-java": kindCode, "text/x-kotlin": kindCode, "text/x-scala": kindCode,
	"text/x-swift": kindCode, "text/x-c": kindCode, "text/x-c++": kindCode, "text/x-csharp": kindCode, "text/x-rust": kindCode,
	"text/x-ruby": kindCode, "text/x-php": kindCode, "text/javascript": kindCode, "application/javascript": kindCode,
	"application/x-javascript": kindCode, "text/x-typescript": kindCode, "application/x-sh": kindCode, "application/sql": kindCode,
}

// textReaders are the functions that extract texts of a kind from their cleaned
// source.
var textReaders = map[kind]func(ctx context.Context, t *Text, src string){
	kindNotebook:  extractNotebook,
	kindRST:       extractRST,
	kindAsciiDoc:  extractAsciiDoc,
	kindOrg:       extractOrg,
	kindLaTeX:     extractLaTeX,
	kindMan:       extractMan,
	kindJSON:      extractJSON,
	kindYAML:      extractYAML,
	kindTOML:      extractTOML,
	kindCode:      extractCode,
	kindSubtitles: extractSubtitles,
	kindSVG:       extractSVG,
}
