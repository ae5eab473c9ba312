// Package retrieval plans searches, and decides which documents and passages answer
// them and in which order.
//
// A search has three parts. It gathers candidates with one call of a [Store], decides
// which of them answer the query, and reads these with another call. The decision is
// code without a store, a context and a clock, so every store ranks alike. Packages
// index, opensearch and datasetsearch implement [Store]. A second call of Gather follows
// only if it finds other documents: for words that no document has, and for the
// vector of a query that was not there in time.
package retrieval

import (
	"context"
	"log/slog"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Store evaluates one search over one state of its documents. It need not be safe
// for concurrent use.
type Store interface {
	// Gather returns what matches a request. It may be called again with another
	// plan or vector. A search that takes too long gives a part of the result and
	// no error; see Candidates.Partial.
	Gather(ctx context.Context, r *Request) (*Candidates, error)

	// Similar returns for each word the words of documents that are similar to it:
	// with the same first letter and one edit, or with two edits for a word of
	// [FarLetters] or more. The nearest come first, of those the most frequent, and
	// at most [SimilarEach]. A word that a document has gets none.
	Similar(ctx context.Context, words []string) ([][]string, error)

	// Read reads the documents of a page. It is called after Gather, with the same
	// request.
	Read(ctx context.Context, r *Request, page []Document) (Contents, error)
}

// A ChunkStore evaluates one search for chunks.
type ChunkStore interface {
	Store

	// ReadChunks reads chunks with their documents. It leaves out those that do not
	// exist any more.
	ReadChunks(ctx context.Context, r *Request, chunks []Chunk) ([]search.ChunkHit, error)
}

// A Request says which candidates a store gathers.
type Request struct {
	search.Query       // conditions beside the text, order, duplicates and facets
	Plan         *Plan // of Query.Text; nil to find by meaning only

	// Depth is how many documents are ranked at least: those of the page, and more
	// so that the order does not depend on the page.
	Depth int

	// Chunks is how many of the best chunks of documents that match are returned at
	// most; 0 for a search for documents.
	Chunks int

	// Vector is that of the query; nil to find by words only.
	Vector []float32

	// Near is the least cosine of documents that match although they have no word
	// of the query, at most [NearDocs]; 0 if none do.
	Near float64
}

// Candidates are the documents and chunks that a decision is made about.
type Candidates struct {
	Total    int                 // documents that match
	Complete int                 // of them, those with all words that count; only if Plan.Some
	Partial  bool                // not all documents were searched
	Missing  []string            // of Plan.Words, those that no document has; without Plan.Some, all if nothing matches
	Facets   *search.FacetCounts // nil unless requested

	// Full is the score by words of a chunk of average length that has each condition
	// of the ranking once; 0 if nothing is ranked by words, or if the request has no
	// vector.
	Full float64

	// Documents are the first Depth documents that match. By relevance, those that
	// are ranked by words come first, best first, then those that are near in
	// meaning, then others in the order of their numbers. Documents whose title is the
	// query (Plan.Titles) are among them, up to [TitleHits].
	Documents []Document

	// Chunks are the best chunks, those by words first, best first. By meaning, they
	// are the best of the same documents and of those that are near.
	Chunks []Chunk
}

// A Document is a candidate for a page.
type Document struct {
	Number   int64   // never used again
	Score    float64 // of its best chunk, by words; the order of documents by words
	Chunk    int     // the number of this chunk, -1 if no chunk has a word
	Complete bool    // it has all words that count
	Titled   bool    // its title is the query
	Named    bool    // its name is one of Plan.Names
	Quoted   bool    // it has one of Plan.Phrases
	Same     bool    // it is in Plan.Language, or its language is not known; only if Plan.Language is set
	Text     string  // the same for documents with the same text, "" if duplicates are not among the candidates

	Cosine    float64 // of the chunk that is nearest in meaning
	NearChunk int     // the number of this chunk, -1 without a vector or a candidate by meaning
}

// A Chunk is a candidate for passages and for searches for chunks.
type Chunk struct {
	Document  int64   // its number
	Number    int     // in its document, from 0
	Score     float64 // by words; 0 if the chunk has none
	Complete  bool    // its document has all words that count
	Cosine    float64 // if HasCosine is true
	HasCosine bool
}

// Contents are the documents of a page.
type Contents interface {
	passage.Source // of the chunks that Chunks returns

	// Hits returns the documents in order, without digests and scores. A document
	// that does not exist any more has no ID.
	Hits() []search.Hit

	// Chunks returns the best chunks of these documents by words, best first, at
	// most [passage.MaxChunks], and the cosines of chunks if the request has a
	// vector. These are all chunks of the documents that have a vector, or none.
	Chunks(ctx context.Context) ([]Chunk, error)

	// Beginnings returns the texts that the digests of some documents are made of,
	// by their places on the page: their best chunks, or the beginnings of their
	// texts.
	Beginnings(ctx context.Context, places []int) ([]string, error)

	// Conditions returns the conditions on words: those of the whole query, and
	// those that count in the text and in the title.
	Conditions() (all, text, title []passage.Condition)
}

// Options are what a search needs beside a store.
type Options struct {
	// Languages are those of the documents, which words are stemmed in.
	Languages []analysis.Language

	// Vector returns the vector of a text, which must be there within limit. It
	// returns nil if there is nothing to compare it with, or if the embedder does not
	// know the language. nil if there is no embedder.
	Vector func(ctx context.Context, text string, limit time.Duration) ([]float32, error)

	// Wait is how long a search that finds something by words waits for its vector.
	Wait time.Duration

	Log *slog.Logger
}

// Limits of candidates.
const (
	Fused        = 100 // best documents by words, and best chunks by meaning, that are ranked together
	ComputedDocs = 20  // best documents by words that get the vectors that they lack in a search; 30 and 50 find no more, 10 put the right page among the first eight for 5 of 150 questions less
	NearDocs     = 20  // documents without a word of the query that are found by meaning
	TitleHits    = 20  // documents that come first because their titles are the query
	NearHits     = 50  // best documents whose order depends on how close together words stand, on their language and name, and on how many words they have
	NearPassages = 20  // best chunks for passages whose order depends on how close together words stand
	SimilarEach  = 3   // words that are similar to one word
	FarLetters   = 8   // of a word for which two edits are few
)

// Parts of its score that a document gets beside it. A store whose order of candidates
// is final within a large list may add them itself.
const (
	CompleteBonus = 0.2  // it has all words of a query of which some are enough
	NameBonus     = 0.2  // its name is a word of the query; of 210 questions (bench/notes/answers.md), 145 have the right page first, and 135 without it
	QuotedBonus   = 2    // it has quoted words of a question as they are quoted; also added to scores with the meaning
	LanguageBonus = 0.25 // it is in the language of the question, and others are not
)

// Constants of the ranking.
const (
	maxSigns   = 16 // signs of a query that are used
	halfScore  = 10 // score of a chunk that becomes 0.5
	ofDocument = 3  // chunks of a document that precede those of others
)

// Documents without a word of the query are found if it has so many words that count
// and if their cosine is so great.
const (
	nearWords   = 2
	nearCosine  = 0.35
	chunkCosine = 0.25 // in a search for chunks, where notes are short and few
	shortCosine = 0.4  // for one or two words that no document has together
)
