// Package search defines what a document search service can be asked and what
// it answers.
//
// Package index (the embedded index) and package fess (a Fess server)
// implement it. Who needs search takes the smallest interface here that serves
// and finds further abilities by type assertion. Package
// [knowhow/internal/search/searchtest] holds the contract that every
// implementation passes.
//
// All methods are safe for concurrent use. They return errors of package
// errkind's kinds: Invalid for what the caller must change, NotFound for a
// document that is not there (or is outside the labels asked for), *Remote for
// a failed call to a server, Unsupported for what the service cannot do.
package search

import "context"

// A Searcher finds documents.
type Searcher interface {
	// Search returns one page of the documents that match q. A query that
	// matches nothing is a Page without hits, not an error.
	Search(ctx context.Context, q Query) (*Page, error)
}

// A Finder looks up one document.
type Finder interface {
	// Find returns the document with the given ID if it carries one of the
	// labels (nil: any), else an error of kind NotFound.
	Find(ctx context.Context, id string, labels []string) (*Hit, error)
}

// A TextReader reads the text that the service holds of a document.
type TextReader interface {
	// ReadText returns at most n bytes of the document's text from byte off
	// on, cut at rune borders. It looks the document up as Finder does. A
	// document of which the service holds no text gives an error of kind
	// Unsupported; off beyond the end gives an empty window.
	ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*Text, error)
}

// A Suggester completes words.
type Suggester interface {
	Suggest(ctx context.Context, q SuggestQuery) ([]Suggestion, error)
}

// A WordLister lists words that stand out.
type WordLister interface {
	PopularWords(ctx context.Context, q WordsQuery) ([]string, error)
}

// A Labeler lists the labels that documents carry.
type Labeler interface {
	// Labels returns every label that the service shows us, whatever the
	// domain; none is an empty list.
	Labels(ctx context.Context) ([]Label, error)
}

// A Checker reports the health of the service.
type Checker interface {
	// Health returns an error only if the service could not be asked: a
	// red engine is an answer.
	Health(ctx context.Context) (Health, error)
}

// An Indexer reports how far indexing has come. It is an optional ability.
type Indexer interface {
	// Indexing returns how many of how many documents with one of the labels
	// are done; nil means any label. busy is false if none of them is being
	// indexed.
	Indexing(ctx context.Context, labels []string) (done, total int, busy bool)
}

// A Faceter tells which of [FacetFields] hits can be counted by. It is an
// optional ability: who lacks it counts by all of them.
type Faceter interface {
	FacetFields() []string
}

// A Query asks for documents. The zero Query lists every document.
type Query struct {
	// Text is in Fess's query language (package query). "" matches every
	// document that the other conditions let through.
	Text string

	// Labels lets only documents through that carry one of them. nil means
	// no such condition. They are a structural condition: nothing in Text
	// can widen it.
	Labels []string

	// Tags lets only documents through that carry all of them. Like Labels
	// they are a structural condition. The tag "collection:" and a label
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
// title and content, which its engine refuses, and with lang, which Fess lacks
// and the embedded index has). An implementation refuses those it does not have
// with an *errkind.Argument named "facets.field".
var FacetFields = [...]string{"content_length", "filename", "filetype", "host", "label", "lang",
	"last_modified", "mimetype", "segment", "timestamp", "url"}

// HitFields are the names that a Hit's Fields may have, with those of Hit's
// own (Fess 15.4 and 15.7, QueryFieldConfig; content, label and lang where a
// server is set up to send them).
var HitFields = [...]string{"doc_id", "title", "url", "digest", "score",
	"_id", "boost", "click_count", "content", "content_description", "content_length", "content_title",
	"created", "favorite_count", "filename", "filetype", "has_cache", "host", "label", "lang",
	"last_modified", "mimetype", "similar_docs_count", "similar_docs_hash", "site", "site_path",
	"thumbnail", "timestamp", "url_link"}

// Facets asks for counts.
type Facets struct {
	Fields      []string // of [FacetFields]
	Queries     []string // in the language of Query.Text
	Size        int      // counts a field; 0 means 10
	MinDocCount int      // least count; 0 means 1
	Sort        string   // "count.desc" (also ""), "count.asc", "term.asc", "term.desc"
	Missing     string   // value that stands for documents without the field; "" means they are not counted
}

// Geo lets only documents near a point through.
type Geo struct {
	Point    string // "lat,lon"
	Distance string // number and unit, for example "10km"
}

// A Page is a part of the documents that match a query.
type Page struct {
	// Total counts the matching documents. A service may not let all of
	// them be paged to: Fess shows the first 10,000.
	Total int
	// AtLeast says that Total is a lower bound.
	AtLeast bool
	// Hits are the documents from Query.Start on.
	Hits []Hit
	// Facets is nil unless they were asked for.
	Facets *FacetCounts
	// Relaxed says that no document had all the words, so that the hits
	// have some of them.
	Relaxed bool
	// AllWords counts, where Staged is true, the documents that have all
	// words of a plain query; they come before those with some.
	AllWords int
	Staged   bool
}

// A Hit is one document as a search returns it.
type Hit struct {
	ID     string
	Title  string
	URL    string
	Digest string  // a short excerpt, plain text; an index that can marks matches with <strong> and </strong>
	Score  float64 // relevance, comparable within one answer; 0 where hits are ordered by a field
	Path   string  // inside the source, with forward slashes; "" where the service has no sources

	// TextHash is "sha256:" and hex of the text that the service holds, ""
	// where it holds none.
	TextHash string

	// Fields are the other facts, by the names in [HitFields]: strings
	// (times as RFC 3339), numbers, []string for label and lang. Names
	// that the service did not send are absent.
	Fields map[string]any
}

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

// A Text is a window on a document's text.
type Text struct {
	DocID  string
	URL    string
	Hash   string // "sha256:" and hex of the whole text
	Size   int64  // of the whole text, in bytes
	Offset int64  // of the window
	Window string
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
