// Package fessmcp is the search front end: the MCP tools and resources through
// which an agent searches and reads one knowledge domain.
//
// It speaks of documents as package search does and therefore serves a Fess
// server and the embedded index alike. Every call that it makes carries the
// domain's label; only listing the labels and asking for the health don't.
// Calls that take long go on as jobs, and texts that the service does not hold
// are got from where the documents are. The command line registers it with a
// server of package mcpserver.
package fessmcp

import (
	"log/slog"
	"sync/atomic"

	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/schema"
	"knowhow/internal/search"
)

const (
	// window is how many hits can be paged to: Fess refuses a start+num
	// beyond it, because its engine does (index.max_result_window).
	window = 10_000

	defaultPageSize      = 20
	defaultMaxPageSize   = 100 // Fess 15.4 gives no more hits at once
	defaultMaxChunkBytes = 256 << 10

	documentType = "application/json"
	contentType  = "text/plain"
)

// A Backend is the search service behind the tools. One that is also a
// [search.Indexer] has its progress shown with every search; one that is a
// [search.CopyReader] is asked for copies of documents that it has no text of.
type Backend interface {
	search.Searcher
	search.Finder
	search.TextReader
	search.Suggester
	search.WordLister
	search.Labeler
	search.Checker
}

// Options say what to serve.
type Options struct {
	Domain  Domain
	Backend Backend // required

	// MaxPageSize is the largest page that a caller can ask for, and the
	// size of a page of resources; 0 means 100.
	MaxPageSize int

	// MaxChunkBytes is the largest piece of a document's text in one
	// answer, in bytes of UTF-8, at least 4; 0 means 262144.
	MaxChunkBytes int

	// Jobs runs what the tools and resources ask of the service, but for
	// lists of resources. It must serve this domain alone. nil lets every
	// call last as long as it does, and offers no job_get tool.
	Jobs *job.Manager

	// Content says where texts come from that Backend does not hold; nil
	// means from nowhere.
	Content *Content

	Log *slog.Logger // nil discards
}

// Register adds the domain's tools and resources to s. It is called once for a
// server, before that serves.
func Register(s *mcpserver.Server, o Options) {
	b := newBridge(o)
	b.addSearch(s)
	b.addWords(s)
	b.addService(s)
	b.addReading(s)
	b.addJobs(s)
	s.SetResources(b, b.templates()...)
}

// bridge answers the calls of one domain. What it holds besides jobs is there to
// be quick: cursors and ids survive a restart.
type bridge struct {
	domain        Domain
	backend       Backend
	labels        []string // of every call; nil for the whole index
	maxPageSize   int
	maxChunkBytes int
	log           *slog.Logger

	jobs      *job.Manager // nil where there are none
	interests interests
	changes   atomic.Int64 // how often a cursor met a changed document

	content   *Content   // nil where there is none
	texts     *texts     // nil without content
	converter *converter // nil without content
}

func newBridge(o Options) *bridge {
	b := &bridge{
		domain:        o.Domain,
		backend:       o.Backend,
		maxPageSize:   o.MaxPageSize,
		maxChunkBytes: o.MaxChunkBytes,
		log:           o.Log,
		jobs:          o.Jobs,
	}
	if o.Content != nil {
		c := *o.Content
		if c.MaxBytes <= 0 {
			c.MaxBytes = defaultMaxContent
		}
		// A text may be longer than the document that it was in.
		b.content, b.texts = &c, newTexts(max(minTexts, 2*c.MaxBytes))
	}
	if o.Domain.Label != "" {
		b.labels = []string{o.Domain.Label}
	}
	if b.maxPageSize <= 0 {
		b.maxPageSize = defaultMaxPageSize
	}
	if b.maxChunkBytes <= 0 {
		b.maxChunkBytes = defaultMaxChunkBytes
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.content != nil {
		b.converter = newConverter(b.log)
	}
	return b
}

// tool returns what all tools have in common: the name with the domain's id,
// the domain block at the description's end, and the hints of a tool that only
// reads and only from the domain.
func (b *bridge) tool(name, title, description string, in schema.Schema) mcpserver.Tool {
	in.Type = "object"
	return mcpserver.Tool{
		Name:        b.toolName(name),
		Title:       title,
		Description: description + "\n\n" + b.domain.Block(),
		Input:       in,
		ReadOnly:    true,
		Idempotent:  true,
	}
}

func (b *bridge) toolName(name string) string { return "fess_" + b.domain.ID + "_" + name }
