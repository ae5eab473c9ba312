package kb

import (
	"context"
	"errors"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Store keeps the documents of a [Local]. Package index implements it, and
// package opensearch over a cluster. It is safe for concurrent use, also by
// several processes.
//
// Changes that a method returned from are seen by every later call of any
// process. Errors of kinds Busy, Unavailable and Timeout are those that a later
// attempt may not meet.
type Store interface {
	// Apply makes changes that survive a crash. Applying the same changes again
	// has no effect. A document that replaces another one keeps its number and
	// its time of creation. The number of a removed document is never used
	// again.
	//
	// Errors have these kinds: Invalid for a document or a tag that cannot be
	// stored; Conflict for a document whose ID belongs to a document with
	// another label or path, for a new label of a document from a source, for a
	// Tagging of a document with another label than From, and for a document
	// that another process changes at the same time; NotFound for a Tagging of a
	// document that does not exist. If one change fails, the changes after it
	// are not made.
	Apply(ctx context.Context, changes []document.Change) error

	// Record returns the document with a number, and RecordOf the document with
	// an ID. The error is of kind NotFound if there is none.
	Record(ctx context.Context, number int64) (*document.Record, error)
	RecordOf(ctx context.Context, id string) (*document.Record, error)

	// Records returns the documents that a filter selects, the greatest number
	// first, and how many there are without Limit and Offset.
	Records(ctx context.Context, f document.RecordFilter) (records []document.Record, total int, err error)

	// Chunks returns a document with how many chunks it has, and the texts of
	// those from from up to but not including to, in order. The error is of kind
	// NotFound if there is no such document.
	Chunks(ctx context.Context, number int64, from, to int) (record *document.Record, chunks []string,
		total int, err error)

	// Pages returns the pages of the text of the document with an ID, in order; none
	// if it has no pages. The error is of kind NotFound if there is no such document.
	Pages(ctx context.Context, id string) ([]document.Page, error)

	// CountTypes returns how many documents with one of the labels (nil: any)
	// there are by type. Of the labels in written, only documents that users
	// wrote count.
	CountTypes(ctx context.Context, labels, written []string) (map[string]int, error)

	// Labels returns the labels of all documents, and SourceLabels those that
	// belong to sources.
	Labels(ctx context.Context) ([]search.Label, error)
	SourceLabels(ctx context.Context) ([]string, error)

	// WrittenLabels returns those of the labels that documents which users wrote
	// have.
	WrittenLabels(ctx context.Context, labels []string) ([]string, error)

	// SearchChunks returns the chunks that match a query best. By words, it
	// finds the documents that the search service over the same documents
	// finds. By meaning, the error is of kind Unsupported if the store has no
	// vectors, and for a text in a language that their model does not know.
	SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error)

	// Vectors returns the state of the vectors of documents with one of the
	// labels (nil: all).
	Vectors(ctx context.Context, labels []string) (search.VectorState, error)
}

var _ Store = (*index.Index)(nil)

// inIndex reports whether the documents are in the same index as the jobs, so
// that one transaction stores a document and ends its job.
func (b *Local) inIndex() bool { return b.store == Store(b.o.Index) }

// finish makes changes and ends a job with the document that has the ID docID.
// With the documents in the index, both happen in one transaction. With another
// store, a job may be done again after a crash between the two.
func (b *Local) finish(ctx context.Context, job *queue.Job, changes []document.Change, docID string) error {
	if b.inIndex() {
		return b.o.Index.FinishJobs(ctx, b.owner, index.FinishedJob{ID: job.ID, Changes: changes, DocumentID: docID})
	}
	if err := b.store.Apply(ctx, changes); err != nil {
		return err
	}
	r, err := b.store.RecordOf(ctx, docID)
	if errors.Is(err, errkind.NotFound) { // it was deleted meanwhile
		r, err = &document.Record{}, nil
	}
	if err != nil {
		return err
	}
	return b.o.Index.Queue().End(ctx, job.ID, b.owner, r.Number)
}
