// Package search defines the interface of document search services.
//
// Package index (the embedded index) and package fess (a client of a Fess
// server) implement [Service]. Package [github.com/knowhow-mcp/knowhow/internal/search/searchtest]
// contains the contract tests that every implementation passes.
//
// All methods are safe for concurrent use. They return errors of package
// errkind's kinds: Invalid for invalid arguments, NotFound for a document that
// does not exist or does not have the requested labels, *Remote for a failed
// call to a server, and Unsupported for a call that the service does not
// support.
package search

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// A Searcher finds documents.
type Searcher interface {
	// Search returns one page of the documents that match q. If no document
	// matches, it returns a Page without hits, not an error.
	Search(ctx context.Context, q Query) (*Page, error)
}

// A Service is a document search service.
type Service interface {
	Searcher

	// Find returns the document with the given ID if it has one of the labels
	// (nil: any), otherwise an error of kind NotFound.
	Find(ctx context.Context, id string, labels []string) (*Hit, error)

	// ReadText returns at most n bytes of the document's text from byte off on,
	// without splitting runes. It looks the document up like Find. If the
	// service does not have the text of the document, the error is of kind
	// Unsupported. An offset beyond the end gives an empty window.
	ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*Text, error)

	// Suggest completes a word.
	Suggest(ctx context.Context, q SuggestQuery) ([]Suggestion, error)

	// PopularWords lists words that are searched for often or are frequent.
	PopularWords(ctx context.Context, q WordsQuery) ([]string, error)

	// Labels returns every label that the service shows to the caller.
	Labels(ctx context.Context) ([]Label, error)

	// Health returns an error only if the service could not be queried. A red
	// engine is not an error.
	Health(ctx context.Context) (Health, error)

	// FacetFields returns those of [FacetFields] that the service can count by.
	FacetFields() []string
}

// An Indexer reports the progress of indexing. A Service may be one.
type Indexer interface {
	// Indexing returns the number of indexed documents and the total number of
	// documents with one of the labels; nil means any label. busy is false if
	// none of them is being indexed.
	Indexing(ctx context.Context, labels []string) (done, total int, busy bool)

	// Unfinished returns the sources with one of the labels (nil: any) whose
	// last indexing ended before it was complete, and that are not being indexed.
	Unfinished(ctx context.Context, labels []string) ([]Unfinished, error)

	// Embedding returns how many passages of documents with one of the labels
	// (nil: any) can be found by meaning, and how many there are, while that is
	// being prepared; otherwise 0 and 0.
	Embedding(ctx context.Context, labels []string) (done, total int, err error)
}

// An Unfinished is a source that is not completely indexed.
type Unfinished struct {
	Label       string
	Done, Total int // documents; Total is 0 if they were not counted
	Stop        Stop
	Message     string // what to do, if more is known than Stop
	Earlier     bool   // an earlier indexing was complete: what is missing has changed since
}

// A Stop is the reason why indexing ended before it was complete.
type Stop string

// Reasons.
const (
	Interrupted Stop = "interrupted" // the process was stopped
	DiskFull    Stop = "disk-full"
	Failed      Stop = "failed"
	NotBegun    Stop = "not-begun"
)

// An Outliner finds places in documents. A Service whose documents have paths may
// be one. Labels have the meaning that they have in Service.Find.
type Outliner interface {
	// Sections returns the sections of a document's text in order. It returns
	// none if the text has no headings. It looks the document up like Find.
	Sections(ctx context.Context, id string, labels []string) ([]document.Section, error)

	// Locate returns the documents with a path, as it is in hits. They are sorted
	// by label.
	Locate(ctx context.Context, path string, labels []string) ([]Place, error)
}

// A Place is a document, and the label of its source.
type Place struct{ ID, Label string }

// A Query is a search for documents. The zero Query matches every document.
type Query struct {
	// Text is the text of the query. A service may prefer documents with the signs
	// of what was typed, such as C++ or --amend; where some words are enough, it may
	// also find documents by them. A service that does not know the hyphens of its
	// documents finds nothing for a text with options.
	Text query.Text

	// Labels restricts the search to documents with one of them; nil means no
	// restriction. Text cannot widen the restriction.
	Labels []string

	// Written are labels of which only the documents that users wrote are found,
	// and not the files of a source. A service without such documents ignores it.
	Written []string

	// Tags restricts the search to documents with all of them. Text cannot
	// widen the restriction. The tag "collection:LABEL" is equivalent to the
	// label. A service without tags returns an error of kind Unsupported.
	Tags []string

	Langs []string  // languages to search in, ISO 639-1; nil means any
	Sort  []SortKey // nil means by relevance, best first
	Start int       // index of the first hit, from 0
	Num   int       // number of hits, 1 to 100; 0 means none, totals and facets only

	// Distinct reports whether documents with equal texts are one hit and count
	// once; see Hit.Also. A service that does not know the texts ignores it.
	Distinct bool

	// Passages is the maximum number of characters of all passages of the
	// page; 0 means none. A service without passages ignores it.
	Passages int

	Facets *Facets // nil means none
	Geo    *Geo    // nil means anywhere
}

// A SortKey orders hits by a field, one of [SortFields].
type SortKey struct {
	Field string
	Desc  bool
}

// SortFields are the permitted sort fields (Fess 15.4, QueryFieldConfig).
var SortFields = [...]string{"score", "filename", "created", "content_length", "last_modified",
	"timestamp", "click_count", "favorite_count"}

// FacetFields are the fields for counting hits (Fess 15.4, without title and
// content, which its engine refuses, and with lang, which the embedded index
// supports). A service may lack some of them.
var FacetFields = [...]string{"content_length", "filename", "filetype", "host", "label", "lang",
	"last_modified", "mimetype", "segment", "timestamp", "url"}

// Facets requests counts.
type Facets struct {
	Fields      []string // of [FacetFields]
	Queries     []string // in the language of Query.Text
	Size        int      // counts for each field; 0 means 10
	MinDocCount int      // minimum count; 0 means 1, because values without documents may be those of other labels
	Sort        string   // "count.desc" (also ""), "count.asc", "term.asc", "term.desc"
	Missing     string   // name for documents without the field; "" means they are not counted
}

// Compare compares two counts of a field in the order of Sort. Equal counts are in the
// order of their values.
func (f *Facets) Compare(a, b Count) int {
	term := strings.Compare(a.Value, b.Value)
	switch f.Sort {
	case "count.asc":
		return cmp.Or(cmp.Compare(a.Count, b.Count), term)
	case "term.asc":
		return term
	case "term.desc":
		return -term
	}
	return cmp.Or(cmp.Compare(b.Count, a.Count), term)
}

// Geo restricts a search to documents near a point.
type Geo struct {
	Point    string // "latitude,longitude" in degrees
	Distance string // a number and a unit, for example "10km"
}

// A Page is a page of the documents that match a query.
type Page struct {
	// Total is the number of matching documents. A service may limit the
	// documents that can be paged: Fess shows the first 10,000.
	Total int
	// AtLeast reports whether Total is a lower bound.
	AtLeast bool
	// Hits are the documents from Query.Start on.
	Hits []Hit
	// Facets is nil unless facets were requested.
	Facets *FacetCounts
	// Relaxed reports whether no document contained all of the words, so that
	// the hits contain some of them; see [Relax].
	Relaxed bool
	// DidYouMean contains words of the documents that are similar to words of a
	// plain query that no document has, the likeliest first.
	DidYouMean []string
	// Missing contains the words that count of a plain query and that no document
	// has, if they are a third of its words or more.
	Missing []string
	// Partial reports whether not all documents were searched, because that took
	// too long, because the words of some are indexed again, or because of Failed.
	Partial bool
	// Failed are the sources whose documents were not searched.
	Failed []Failure
	// Window is how many hits can be paged, if that is less than Total; 0 means [Window].
	Window int
	// Staged reports whether documents with some of the words of a plain query
	// are among the hits. AllWords is the number of documents with all words
	// that count.
	Staged   bool
	AllWords int
}

// A Failure is a source that a search could not ask.
type Failure struct {
	Label string // of the source
	Err   error
}

// A Hit is a document in a search result. Strings, lists and times are empty if
// the service does not know them.
type Hit struct {
	ID    string
	URL   string
	Path  string // inside the source, with forward slashes; see document.ResultPath
	Title string

	// Also contains the paths of other documents that match and have the same
	// text, if Query.Distinct is set. Of very many, it contains some.
	Also []string

	// Passages are the parts of the text that answer the query best, best
	// first; nil unless they were requested.
	Passages []Passage

	Digest       Excerpt // a short part of the text; empty if there are Passages
	TitleExcerpt Excerpt // of the title

	Score float64 // relevance, comparable within one result; 0 if hits are sorted by a field

	Created   time.Time // when the document was added to the service
	Modified  time.Time // of the original
	Timestamp time.Time // Modified, or a substitute of the service

	Size     int64 // of the original, in bytes; -1 if unknown
	MIMEType string
	FileType string // for example "pdf"
	Filename string
	Host     string
	Langs    []string // ISO 639-1
	Labels   []string
	Written  bool // a user wrote it: it is not of a source; see Query.Written

	// TextHash is "sha256:" followed by the hex digits of the hash of the
	// service's text, or "" if it has no text.
	TextHash string

	// Extra contains other fields of a Fess server, with Fess's names and
	// values of type string, int64, float64 or bool. It is nil for other
	// services.
	Extra map[string]any
}

// A Passage is a part of a document's text.
type Passage struct {
	Heading string // path of the headings above it, "Install > From source"; "" if there are none
	Page    string // label of the page or slide on which Text begins, "12" or "iv"; "" if there is none
	Offset  int64  // of Text in the document's text, in bytes
	Text    string // whole paragraphs or sentences where possible
	Matches []Span // of the words of the query in Text, in order, without overlap
}

// An Excerpt is a short plain text with the matches of the query.
type Excerpt struct {
	Text    string // one line
	Matches []Span // in order, without overlap; nil if none is known
}

// Map returns the excerpt with the text that f makes of its text: f may remove
// characters, change white space, and cut the end. The matches keep their words.
func (x Excerpt) Map(f func(string) string) Excerpt {
	old, text := x.Text, f(x.Text)
	if text == old || len(x.Matches) == 0 {
		return Excerpt{text, x.Matches}
	}
	to, at := make([]int, len(old)+1), 0 // for each byte of old, its place in text
	for i, r := range old {
		to[i] = at
		if s, n := utf8.DecodeRuneInString(text[at:]); n > 0 && (s == r || unicode.IsSpace(s) && unicode.IsSpace(r)) {
			at += n
		}
	}
	to[len(old)] = at
	var matches []Span
	for _, m := range x.Matches {
		if m = (Span{to[m.Start], to[m.End]}); m.Start < m.End {
			matches = append(matches, m)
		}
	}
	return Excerpt{text, matches}
}

// A Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// FacetCounts are the counts for the facets of a query.
type FacetCounts struct {
	Fields  []FieldCounts
	Queries []Count // in the order of Facets.Queries
}

// FieldCounts are the counts of one field's values.
type FieldCounts struct {
	Name   string
	Counts []Count
}

// A Count is the number of documents that have a value or match a query.
type Count struct {
	Value string
	Count int
}

// A Text is a part of a document's text.
type Text struct {
	DocID  string
	URL    string
	Hash   string // "sha256:" and the hex digits of the hash of the whole text
	Size   int64  // of the whole text, in bytes
	Offset int64  // of Window, in bytes
	Window string
}

// WindowOf returns at most n bytes of a text from byte off on, without DocID, URL
// and Hash. A window that would begin inside a character begins behind it.
func WindowOf(text string, off int64, n int) *Text {
	t := &Text{Size: int64(len(text)), Offset: off}
	if off >= t.Size {
		return t
	}
	t.Window = document.Truncate(text[off:], max(n, 0))
	for t.Window != "" && !utf8.RuneStart(t.Window[0]) {
		t.Window = t.Window[1:]
		t.Offset++
	}
	return t
}

// A ChunkQuery is a search for chunks.
type ChunkQuery struct {
	Text    query.Text // see [Query]; by meaning only, it is what was typed
	Labels  []string   // one of them; nil means any
	Written []string   // see [Query]
	Tags    []string   // all of them; also tags of labels
	Ranking Ranking
	Top     int // how many chunks to return
}

// A Ranking is the order of chunks: by words, by meaning, or by both.
type Ranking int

// The rankings.
const (
	ByBoth    Ranking = iota // words and, where there are vectors, meaning
	ByWords                  // words only
	ByMeaning                // meaning only
)

// A ChunkPage is the best chunks for a query.
type ChunkPage struct {
	Hits []ChunkHit // best first

	// Total is how many documents match. By meaning only, these are all that
	// have a vector.
	Total int

	// Staged reports whether some of the words of the query were enough; see
	// [Page].
	Staged bool

	// Partial reports whether not all documents were searched; see [Page].
	Partial bool
}

// A ChunkHit is a chunk that matches a query.
type ChunkHit struct {
	document.Record
	Chunk   int // number of the chunk in its document, from 0
	Text    string
	Heading string  // path of the headings above it; "" if there are none
	Page    string  // label of the page on which it begins; "" if the document has no pages
	Score   float64 // 0 to 1; scores of different searches cannot be compared
}

// A VectorState is how far searches by meaning can be answered.
type VectorState struct {
	Model      string // the ID of the embedder; "" without one
	Dimensions int    // of its vectors; 0 if they are not known yet
	Chunks     int    // of the documents; 0 without an embedder
	Embedded   int    // chunks that have a vector
	Reason     string // why there is no model although one was chosen; otherwise ""
}

// A StoredCopy is the original document as stored by the service during
// indexing.
type StoredCopy struct {
	DocID     string
	URL       string // of the original, as in Hit
	MediaType string // of Data, with the charset for text: "text/html; charset=utf-8"
	Data      []byte // never empty
}

// A SuggestQuery is a request for words that begin with a prefix.
type SuggestQuery struct {
	Prefix string
	Num    int      // 1 to 100
	Labels []string // as in Query
	Fields []string // Fess: content, title, _default; nil means any
	Langs  []string // nil means any
}

// A Suggestion is a word, with the labels of documents that contain it.
type Suggestion struct {
	Text   string
	Labels []string
}

// A WordsQuery is a request for popular words.
type WordsQuery struct {
	Seed   string // chooses among equally popular words; "" means the service's default
	Labels []string
	Fields []string
}

// A Label names a group of documents.
type Label struct {
	Name  string // for people
	Value string // for queries
}

// Health is the state of a service.
type Health struct {
	Status   string // "green", "yellow" or "red"
	TimedOut bool
}
