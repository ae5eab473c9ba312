// Package document holds the words for what is stored: documents, their
// chunks, and the changes that bring them into an index.
package document

import "time"

// A Document is one thing that can be found: a file, later also a note or a
// web page. Its text is plain UTF-8.
type Document struct {
	// ID is the document's name towards callers (doc_id): it depends on
	// the label and the path alone, so that it outlives re-indexing.
	ID string

	Label    string // the source's label; every document has exactly one
	Path     string // path inside the source, with forward slashes; unique within the label
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

// A Change brings one document into an index or takes it out. Exactly one of
// Put and Delete is set.
type Change struct {
	Put    *Document // replaces the document of the same label and path
	Delete *Ref      // nothing happens where it does not exist
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
