// Package document holds the words for what is stored: documents, their
// chunks, and the changes that bring them into an index.
package document

import (
	"strings"
	"time"
)

// A Document is one thing that can be found: a file, a note, an upload. Its
// text is plain UTF-8.
type Document struct {
	// ID is the document's name towards callers (doc_id). That of a file
	// depends on the label and the path alone, so that it is the same
	// after the file was indexed again.
	ID string

	Label string // the source's label or the collection; every document has exactly one
	Path  string // path inside the source, with forward slashes; unique within the label

	// FromSource says that the document is a file of the source with its
	// label: it goes with the file and with the source. Otherwise users
	// wrote it, and only they remove it; its Path should then begin with a
	// dot, because that of a file in a folder never does.
	FromSource bool

	// SourcePath is the path that users know the original by; "" if it
	// has none. It is not unique: two notes may have the same one. For
	// files of a folder it is Path.
	SourcePath string

	// Tags are words that users gave the document, in any order; the tag
	// of its label (see [LabelTag]) is not among them. A document that
	// replaces another one keeps the tags of that one if Tags is nil.
	Tags []string

	Type     string // what the original is: note, text, markdown, html, pdf, ...; "" where unknown
	URL      string // canonical address, for files a file: URL
	Title    string // first heading or <title>, else the file name; never empty
	Lang     string // ISO 639-1 code; "" where unknown
	MIMEType string // for example "text/markdown"
	FileType string // Fess's word for it: html, word, excel, powerpoint, pdf, txt, others
	Filename string // last element of Path
	Host     string // host of URL; "" for files

	Size     int64     // of the original, in bytes
	Modified time.Time // when the original was last changed
	Hash     string    // "sha256:" and hex of Text
	Text     string    // the whole text, paragraphs parted by an empty line
	Chunks   []Chunk   // parts of Text in order, for search; together they cover all of it

	Stamp Stamp // what the original looked like when it was read
}

// A Chunk is a part of a document's text that is searched as one piece.
type Chunk struct {
	Offset  int    // first byte in Text
	Length  int    // in bytes
	Heading string // nearest heading above, "" if there is none
}

// A Stamp tells cheaply whether an original has changed since it was read.
// The zero Stamp equals that of no file.
type Stamp struct {
	Size    int64     // in bytes
	ModTime time.Time // as the file system tells it
}

// Equal reports whether two stamps speak of the same state.
func (s Stamp) Equal(t Stamp) bool { return s.Size == t.Size && s.ModTime.Equal(t.ModTime) }

// LabelTag returns the tag that says which label a document has:
// "collection:" and the label. Every document has exactly one such tag; it
// follows from the label and is not stored.
func LabelTag(label string) string { return labelTag + label }

// TagLabel returns the label that a tag of [LabelTag] names; ok is false for
// other tags.
func TagLabel(tag string) (label string, ok bool) { return strings.CutPrefix(tag, labelTag) }

const labelTag = "collection:"

// A Change brings one document into an index, takes it out, or changes its
// tags. Exactly one of Put, Delete and Tag is set.
type Change struct {
	Put    *Document // replaces the document of the same label and path
	Delete *Ref      // nothing happens where it does not exist
	Tag    *Tagging
}

// A Tagging changes the tags and the label of a document, and nothing else of
// it.
type Tagging struct {
	ID     string   // of the document
	Label  string   // the new label; "" keeps the one it has, as a document from a source must
	Add    []string // a tag that the document has is ignored
	Remove []string // a tag that the document does not have is ignored
}

// A Ref names a document by where it comes from.
type Ref struct{ Label, Path string }

// A Source is something whose documents are indexed under one label: a folder
// or a file.
type Source struct {
	Label       string
	Path        string // absolute, links resolved
	Description string // what its documents are about, for people and models; "" if nobody said
}
