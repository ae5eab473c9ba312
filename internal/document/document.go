// Package document defines what an index stores: documents, their chunks, and
// the changes that are applied to an index.
package document

import (
	"regexp"
	"strings"
	"time"
)

// A Document is one unit of search results: a file, a note or an upload. Its
// text is plain UTF-8.
type Document struct {
	// ID identifies the document for callers (doc_id). The ID of a file
	// depends only on the label and the path, so it stays the same when
	// the file is indexed again.
	ID string

	Label string // the source's label or the collection; every document has exactly one
	Path  string // path inside the source, with forward slashes; unique within the label

	// FromSource reports whether the document is a file of the source with
	// its label. Such a document is removed with its file and its source.
	// Other documents were written by users, and only users remove them.
	// Their Path should begin with a dot, which a file's never does.
	FromSource bool

	// SourcePath is the path by which users know the original; "" if there
	// is none. It need not be unique. For files of a folder it equals Path.
	SourcePath string

	// Tags are the tags that users gave the document, in any order, without
	// the tag of its label (see [LabelTag]). If Tags is nil, a document that
	// replaces another one keeps the other's tags.
	Tags []string

	Type     string // note, text, markdown, html, pdf, ...; "" if unknown
	URL      string // canonical URL; for files a file: URL
	Title    string // first heading or <title>, or else the file name; never empty
	Lang     string // ISO 639-1 code; "" if unknown
	MIMEType string // for example "text/markdown"
	FileType string // one of Fess's: html, word, excel, powerpoint, pdf, txt, others
	Filename string // last element of Path
	Host     string // host of URL; "" for files

	Size     int64     // of the original, in bytes
	Modified time.Time // when the original was last changed
	Hash     string    // "sha256:" and hex of Text
	Text     string    // the whole text, with an empty line between paragraphs
	Chunks   []Chunk   // parts of Text in order, which together cover all of it
	Sections []Section // of Text, in order
	Pages    []Page    // of Text, in order; nil if the document has no pages

	Stamp Stamp // state of the original when it was read
}

// ResultPath returns the path by which search results name a document: Path, or
// for a document that a user wrote, whose Path begins with a dot and means
// nothing to people, SourcePath or else Title.
func ResultPath(path, sourcePath, title string) string {
	switch {
	case !strings.HasPrefix(path, "."):
		return path
	case sourcePath != "":
		return sourcePath
	}
	return title
}

// A Record has the fields of a stored document, without its text.
type Record struct {
	Number     int64 // of the document in its store; is never used for another document
	ID         string
	Label      string
	Path       string
	FromSource bool // see [Document]
	SourcePath string
	Type       string
	Title      string
	Filename   string
	Hash       string // of the text
	TextSize   int64  // in bytes
	Tags       []string
	Created    time.Time
	Updated    time.Time // when it was last stored or tagged
}

// A RecordFilter selects documents. Nil lists and an empty SourcePath select
// all.
type RecordFilter struct {
	Labels     []string // one of them
	Written    []string // labels of which only the documents that users wrote are selected
	Tags       []string // all of them; also tags of labels
	SourcePath string
	Limit      int
	Offset     int
}

// A Chunk is a part of a document's text that is indexed as one unit.
type Chunk struct {
	Offset  int    // first byte in Text
	Length  int    // in bytes
	Heading string // path of the headings at its start, as in [Section]; "" before the first one
}

// A Heading is a title inside a text, or a term of a definition list, such as an
// option or a function: readers look for it as for a title. A heading of a level of
// terms without text is the end of such a list.
type Heading struct {
	Offset int    // of its first byte in the text
	Level  int    // 1 is the highest; from TermLevel on those of terms
	Text   string // one line
}

// Levels of the terms of definition lists, below all titles.
const (
	TermLevel       = 7
	NestedTermLevel = 8 // of lists in the text of a term; terms of deeper ones are no headings
)

// A Section is the part of a document's text from a heading to the next one.
type Section struct {
	Offset    int    `json:"o"`           // of the heading in Text
	Heading   string `json:"h"`           // path of the headings: "Install > From source"; at most 300 bytes
	Continues bool   `json:"c,omitempty"` // a section above continues here, without another heading
}

// A Page is the beginning of a page or a slide.
type Page struct {
	Offset int    // of its first byte in Text
	Label  string // its number, or another label such as "iv"; at most 40 bytes
}

// A Stamp is the size and time of an original file. Comparing stamps shows
// whether the file may have changed since it was read. The zero Stamp differs
// from that of any file.
type Stamp struct {
	Size    int64     // in bytes
	ModTime time.Time // as reported by the file system
}

// Equal reports whether two stamps are of the same state.
func (s Stamp) Equal(t Stamp) bool { return s.Size == t.Size && s.ModTime.Equal(t.ModTime) }

// labelPattern matches labels.
var labelPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// ValidLabel reports whether s can be a label: whether Fess allows it as one.
func ValidLabel(s string) bool { return labelPattern.MatchString(s) }

// LabelTag returns the tag of a label: "collection:" followed by the label.
// Every document has exactly one such tag, which is not stored.
func LabelTag(label string) string { return labelTag + label }

// TagLabel returns the label of a tag that [LabelTag] returned. ok is false for
// other tags.
func TagLabel(tag string) (label string, ok bool) { return strings.CutPrefix(tag, labelTag) }

const labelTag = "collection:"

// A Change adds or replaces one document in an index, deletes it, or changes
// its tags. Exactly one of Put, Delete and Tag is set.
type Change struct {
	Put    *Document // replaces the document of the same label and path
	Delete *Ref      // a document that does not exist is ignored
	Tag    *Tagging
}

// A Tagging changes only the tags and the label of a document.
type Tagging struct {
	ID     string   // of the document
	From   string   // the label that the document must have; "" means any
	Label  string   // the new label; "" keeps the current one; a document from a source cannot get another
	Add    []string // a tag that the document has is ignored
	Remove []string // a tag that the document does not have is ignored
}

// A Ref identifies a document by its label and path.
type Ref struct{ Label, Path string }

// A Source is a folder, a file, a repository or a web site whose documents are indexed
// under one label.
type Source struct {
	Label       string
	Path        string // absolute, with symbolic links resolved; or the address of a repository or a site
	Description string // what its documents are about, for people and models; may be ""
	Rules       Rules
}

// Rules determine which files of a folder are indexed, in addition to the rules
// that apply to every folder. Patterns have the syntax of .gitignore files and
// are relative to the folder. The zero Rules add nothing.
type Rules struct {
	Include  []string // if there are any, only files that match, or in a folder that matches
	Exclude  []string // files and folders that match are left out
	NoIgnore bool     // .gitignore and .ignore files have no effect

	// Every is the time between two looks at a source that is not on this machine;
	// 0 means a default.
	Every time.Duration `json:",omitempty"`

	// MaxPages is the maximum number of pages of a web site; 0 means a default.
	MaxPages int `json:",omitempty"`
}
