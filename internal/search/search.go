// Package search defines what a document search service can be asked and what
// it answers.
//
// Package index (the embedded index) and package fess (a client of a Fess
// server) implement [Service]. Package [knowhow/internal/search/searchtest]
// holds the contract that every implementation passes.
//
// All methods are safe for concurrent use. They return errors of package
// errkind's kinds: Invalid for what the caller must change, NotFound for a
// document that does not exist or is outside the labels asked for, *Remote for
// a failed call to a server, Unsupported for what the service cannot do.
package search

import (
	"context"
	"time"
)

// A Searcher finds documents.
type Searcher interface {
	// Search returns one page of the documents that match q. A query that
	// matches nothing gives a Page without hits, not an error.
	Search(ctx context.Context, q Query) (*Page, error)
}

// A Service is everything that a search service can be asked.
type Service interface {
	Searcher

	// Find returns the document with the given ID if it has one of the
	// labels (nil: any), otherwise an error of kind NotFound.
	Find(ctx context.Context, id string, labels []string) (*Hit, error)

	// ReadText returns at most n bytes of the document's text from byte off
	// on, cut at the borders of runes. It looks the document up as Find does.
	// A document whose text the service does not hold gives an error of kind
	// Unsupported. An offset beyond the end gives an empty window.
	ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*Text, error)

	// Suggest completes a word.
	Suggest(ctx context.Context, q SuggestQuery) ([]Suggestion, error)

	// PopularWords lists words that stand out.
	PopularWords(ctx context.Context, q WordsQuery) ([]string, error)

	// Labels returns every label that the service shows to the caller.
	Labels(ctx context.Context) ([]Label, error)

	// Health returns an error only if the service could not be asked. A red
	// engine is an answer.
	Health(ctx context.Context) (Health, error)

	// FacetFields returns those of [FacetFields] that hits can be counted by.
	FacetFields() []string
}

// An Indexer reports how far indexing has come. A Service may be one.
type Indexer interface {
	// Indexing returns how many of how many documents with one of the labels
	// are done; nil means any label. busy is false if none of them is being
	// indexed.
	Indexing(ctx context.Context, labels []string) (done, total int, busy bool)
}

// A Query asks for documents. The zero Query lists every document.
type Query struct {
	// Text is in Fess's query language (package query). "" matches every
	// document that meets the other conditions.
	Text string

	// Labels restricts the search to documents that have one of them; nil
	// does not restrict it. Nothing in Text can widen the restriction.
	Labels []string

	// Tags restricts the search to documents that have all of them. Nothing
	// in Text can widen the restriction. The tag "collection:" and a label
	// stands for that label. A service without tags refuses them with an
	// error of kind Unsupported.
	Tags []string

	Langs []string  // languages to search in, ISO 639-1; nil means any
	Sort  []SortKey // nil means by relevance, best first
	Start int       // index of the first hit, from 0
	Num   int       // number of hits, 1 to 100; 0 means none, totals and facets only

	Facets *Facets // nil means none
	Geo    *Geo    // nil means anywhere
}

// A SortKey orders hits by a field, one of [SortFields].
type SortKey struct {
	Field string
	Desc  bool
}

// SortFields are the fields that hits can be ordered by (Fess 15.4,
// QueryFieldConfig).
var SortFields = [...]string{"score", "filename", "created", "content_length", "last_modified",
	"timestamp", "click_count", "favorite_count"}

// FacetFields are the fields that hits can be counted by (Fess 15.4, without
// title and content, which its engine refuses, and with lang, which the embedded
// index has). A service may lack some of them.
var FacetFields = [...]string{"content_length", "filename", "filetype", "host", "label", "lang",
	"last_modified", "mimetype", "segment", "timestamp", "url"}

// Facets asks for counts.
type Facets struct {
	Fields      []string // of [FacetFields]
	Queries     []string // in the language of Query.Text
	Size        int      // counts a field; 0 means 10
	MinDocCount int      // least count; 0 means 1
	Sort        string   // "count.desc" (also ""), "count.asc", "term.asc", "term.desc"
	Missing     string   // value that stands for documents without the field; "" means they are not counted
}

// Geo restricts a search to documents near a point.
type Geo struct {
	Point    string // "latitude,longitude" in degrees
	Distance string // a number and a unit, for example "10km"
}

// A Page is a part of the documents that match a query.
type Page struct {
	// Total counts the matching documents. A service may not let all of
	// them be paged to: Fess shows the first 10,000.
	Total int
	// AtLeast reports whether Total is a lower bound.
	AtLeast bool
	// Hits are the documents from Query.Start on.
	Hits []Hit
	// Facets is nil unless they were asked for.
	Facets *FacetCounts
	// Relaxed reports whether no document had all the words, so that the
	// hits have some of them; see [Relax].
	Relaxed bool
	// Staged reports whether the documents with all words of a plain query,
	// AllWords of them, come first, followed by those with some.
	Staged   bool
	AllWords int
}

// A Hit is one document as a search returns it. Strings, lists and times are
// empty where the service does not know them.
type Hit struct {
	ID    string
	URL   string
	Path  string // inside the source, with forward slashes
	Title string

	Digest       Excerpt // a short part of the text
	TitleExcerpt Excerpt // of the title

	Score float64 // relevance, comparable within one answer; 0 where hits are ordered by a field

	Created   time.Time // when the service first had the document
	Modified  time.Time // of the original
	Timestamp time.Time // Modified, or what the service has in its place

	Size     int64 // of the original, in bytes; -1 if unknown
	MIMEType string
	FileType string // for example "pdf"
	Filename string
	Host     string
	Langs    []string // ISO 639-1
	Labels   []string

	// TextHash is "sha256:" and the hex digits of the hash of the text that
	// the service holds, "" if it holds none.
	TextHash string

	// Extra has what a Fess server sent besides, by Fess's names and as
	// string, int64, float64 or bool. It is nil for other services.
	Extra map[string]any
}

// An Excerpt is a short plain text and where it matches the query.
type Excerpt struct {
	Text    string // one line
	Matches []Span // in order, without overlap; nil if none is known
}

// A Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// FacetCounts are the counts that a query asked for.
type FacetCounts struct {
	Fields  []FieldCounts
	Queries []Count // in the order of Facets.Queries
}

// FieldCounts are the counts of one field's values.
type FieldCounts struct {
	Name   string
	Counts []Count
}

// A Count says how many documents have a value or match a query.
type Count struct {
	Value string
	Count int
}

// A Text is a part of a document's text.
type Text struct {
	DocID  string
	URL    string
	Hash   string // "sha256:" and hex of the whole text
	Size   int64  // of the whole text, in bytes
	Offset int64  // of Window, in bytes
	Window string
}

// A StoredCopy is an original as the service stored it when it indexed the
// document.
type StoredCopy struct {
	DocID     string
	URL       string // of the original, as in Hit
	MediaType string // of Data, with the charset of a text: "text/html; charset=utf-8"
	Data      []byte // never empty
}

// A SuggestQuery asks for words that begin with a prefix.
type SuggestQuery struct {
	Prefix string
	Num    int      // 1 to 100
	Labels []string // as in Query
	Fields []string // Fess: content, title, _default; nil means any
	Langs  []string // nil means any
}

// A Suggestion is a word, and the labels of documents that have it.
type Suggestion struct {
	Text   string
	Labels []string
}

// A WordsQuery asks for popular words.
type WordsQuery struct {
	Seed   string // picks among equals; "" means the service's default
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
