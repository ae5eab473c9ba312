// Package kb is the knowledge base: notes and files that users add, with tags
// and collections, and the jobs that index them.
//
// [Base] is the interface of a knowledge base, with one method for each call of
// the engine API. [Local] implements it over the embedded index. The JSON form
// of the types is that of the API.
package kb

import (
	"context"
	"io"
	"math"
)

// A Base is a knowledge base. Its methods are safe for concurrent use.
//
// Errors have these kinds, besides those of each method: Invalid for an
// argument that can never succeed, usually an errkind.Argument that names the
// argument as the API spells it; Busy and Unavailable for failures that a later
// attempt may not meet; Denied or Unauthorized for a base that refuses the
// caller.
//
// Tags in arguments and results contain the tag of the collection; see
// [document.LabelTag]. Every document has exactly one such tag.
type Base interface {
	// Search returns the passages that match a query best.
	Search(ctx context.Context, q SearchQuery) (*SearchResult, error)

	// AddNote starts a job that adds a note. When it returns, the job is on
	// disk and survives a crash.
	AddNote(ctx context.Context, n Note) (job int64, err error)

	// AddFile starts a job that adds a file, whose bytes it reads from r up to
	// io.EOF. The file replaces the document with the same source path. When
	// AddFile returns, the job and the bytes are on disk and survive a crash.
	// The error is of kind TooLarge for too many bytes. An error of r is
	// returned.
	AddFile(ctx context.Context, f File, r io.Reader) (job int64, err error)

	// Jobs returns jobs, the newest first.
	Jobs(ctx context.Context, f JobFilter) ([]Job, error)

	// Job returns a job. The error is of kind NotFound if there is none.
	Job(ctx context.Context, id int64) (*Job, error)

	// Document returns a document with its chunks from from up to but not
	// including to; see AllChunks. The error is of kind NotFound if there is
	// none.
	Document(ctx context.Context, id int64, from, to int) (*Document, error)

	// Documents returns documents without their chunks, the newest first.
	Documents(ctx context.Context, f DocumentFilter) (*DocumentList, error)

	// UpdateNote changes a note and returns it with its chunks. The error is of
	// kind NotFound if there is no such document, and of kind Conflict if it is
	// not a note.
	UpdateNote(ctx context.Context, id int64, c NoteChange) (*Document, error)

	// AddTags adds tags to a document and returns all of its tags. The tag of a
	// collection replaces that of the current one. The error is of kind NotFound
	// if there is no such document, and of kind Conflict if the document belongs
	// to a folder and so cannot get another collection.
	AddTags(ctx context.Context, id int64, tags []string) ([]string, error)

	// RemoveTag removes a tag from a document and returns those that are left.
	// A tag that the document does not have is ignored. If the tag of its
	// collection is removed, the document gets DefaultCollection, because every
	// document has a collection. Errors are those of AddTags.
	RemoveTag(ctx context.Context, id int64, tag string) ([]string, error)

	// Delete removes a document. The error is of kind NotFound if there is no
	// such document, and of kind Conflict if it belongs to a folder.
	Delete(ctx context.Context, id int64) error

	// Status returns the state of the base.
	Status(ctx context.Context) (*Status, error)
}

// DefaultCollection is the collection of documents that are added without one.
const DefaultCollection = "documents"

// Types of documents and jobs that the package treats in a special way.
const (
	TypeNote = "note" // of documents and jobs
	TypeFile = "file" // of jobs
)

// Limits on arguments.
const (
	MaxTop         = 100     // of a SearchQuery
	MaxLimit       = 1000    // of a JobFilter and a DocumentFilter
	MaxQuery       = 8 << 10 // bytes of a query
	MaxTags        = 100     // in one argument
	MaxTag         = 200     // bytes of a tag
	MaxTitle       = 1000    // bytes of a title
	MaxSourcePath  = 1000    // bytes of a source path
	DefaultTop     = 10      // of a SearchQuery in the API
	DefaultLimit   = 100     // of a filter in the API
	MaxUploadBytes = 100 << 20
)

// A SearchQuery is a search for passages.
type SearchQuery struct {
	Query   string   `json:"query"`
	Top     int      `json:"top"`      // 1 to MaxTop passages
	Tags    []string `json:"tags"`     // that a document must have, all of them
	FTSOnly bool     `json:"fts_only"` // by words only
	// by meaning only; an error of kind Unsupported if the base has no model, or
	// one that does not know the language
	VectorOnly bool `json:"vector_only"`
}

// A SearchResult is the best passages for a query, best first.
type SearchResult struct {
	Results []Result `json:"results"` // never nil
	Total   int      `json:"total"`   // documents that match; if VectorOnly, all that have vectors

	// Note tells the caller what is incomplete about the result; "" if nothing is.
	Note string `json:"note,omitempty"`
}

// A Result is a chunk of a document that matches a query.
type Result struct {
	DocumentID int64  `json:"document_id"`
	ChunkIndex int    `json:"chunk_index"`
	Text       string `json:"text"`
	// path of the headings above the chunk, such as "Install > From source"; ""
	// if there are none
	Heading string `json:"heading,omitempty"`
	// label of the page on which the chunk begins; "" if the document has no
	// pages
	Page       string   `json:"page,omitempty"`
	Score      float64  `json:"score"` // 0 to 1; scores of different searches cannot be compared
	Title      string   `json:"title"`
	SourcePath string   `json:"source_path"` // "" if there is none
	Type       string   `json:"type"`
	Tags       []string `json:"tags"` // sorted, with that of the collection
	UpdatedAt  Time     `json:"updated_at,omitzero"`
}

// A Note is a text that a user adds.
type Note struct {
	Text       string   `json:"text"`            // Markdown; must not be blank
	Title      string   `json:"title,omitempty"` // "" means the first heading, or else the first line
	SourcePath string   `json:"source_path,omitempty"`
	Tags       []string `json:"tags"` // with at most one of a collection; none means DefaultCollection
}

// A File describes a file that a user adds.
type File struct {
	Filename   string // determines the format; required
	MediaType  string // as the origin declared it; "" if unknown
	SourcePath string // "" means Filename
	// see Note; a file that replaces a document without naming tags or a
	// collection keeps those of the document
	Tags []string
}

// The states of a job.
const (
	Queued  = "queued"
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// A Job is the work of adding a note or a file.
type Job struct {
	ID         int64  `json:"job_id"`
	Status     string `json:"status"`      // Queued, Running, Done or Failed
	Type       string `json:"type"`        // TypeNote or TypeFile
	Filename   string `json:"filename"`    // "" for a note
	DocumentID *int64 `json:"document_id"` // nil unless the job is done
	Error      string `json:"error"`       // why the job failed and what to do; otherwise ""
	CreatedAt  Time   `json:"created_at,omitzero"`
	UpdatedAt  Time   `json:"updated_at,omitzero"`
}

// Ended reports whether the job is done or has failed.
func (j *Job) Ended() bool { return j.Status == Done || j.Status == Failed }

// A JobFilter selects jobs.
type JobFilter struct {
	Status string // one of the states; "" means any
	Limit  int    // 1 to MaxLimit
}

// A Document is a note or a file.
type Document struct {
	ID         int64    `json:"document_id"`
	Title      string   `json:"title"`
	SourcePath string   `json:"source_path"` // "" if there is none
	Type       string   `json:"type"`        // note, text, markdown, html, pdf, docx, ...
	Tags       []string `json:"tags"`        // sorted, with that of the collection
	CreatedAt  Time     `json:"created_at,omitzero"`
	UpdatedAt  Time     `json:"updated_at,omitzero"`

	// Chunks are the parts of the text in order, or those that were asked for;
	// nil in lists of documents.
	Chunks []Chunk `json:"chunks,omitempty"`

	TotalChunks int `json:"-"` // 0 in lists of documents
}

// AllChunks is the end of the range of all chunks of a document.
const AllChunks = math.MaxInt32

// A Chunk is a part of the text of a document.
type Chunk struct {
	Index int    `json:"index"` // from 0
	Text  string `json:"text"`
}

// A DocumentFilter selects documents. The zero values of SourcePath, Tag and
// Collection select all.
type DocumentFilter struct {
	SourcePath string
	Tag        string
	Collection string // its name, which is not a tag
	Added      bool   // only notes and files that users added, not those of folders
	Limit      int    // 1 to MaxLimit
	Offset     int    // how many documents to skip, from 0
}

// A DocumentList is a part of the documents that a filter selects.
type DocumentList struct {
	Documents []Document `json:"documents"` // never nil
	Total     int        `json:"total"`     // that the filter selects
}

// A NoteChange changes a note. nil fields stay as they are; at least one must
// not be nil.
type NoteChange struct {
	Text  *string `json:"text,omitempty"`
	Title *string `json:"title,omitempty"`
}

// A Status is the state of a base.
type Status struct {
	Version string `json:"version"`
	// of the vectors: "name" ("none" without one), "dimensions", "passages", and
	// how many of these are "embedded"
	Model     map[string]any `json:"model"`
	Device    map[string]any `json:"device"` // that computes them: "type", ...
	Documents DocumentCounts `json:"documents"`
	Queue     QueueCounts    `json:"queue"`
}

// DocumentCounts are numbers of documents.
type DocumentCounts struct {
	Total  int            `json:"total"`
	ByType map[string]int `json:"by_type"`
}

// QueueCounts are numbers of jobs.
type QueueCounts struct {
	Queued  int `json:"queued"`
	Running int `json:"running"`
	Failed  int `json:"failed"`
}
