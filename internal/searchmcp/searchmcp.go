// Package searchmcp defines the MCP tools and resources with which an agent
// searches and reads one knowledge domain.
//
// It uses the interfaces of package search, so it works with a Fess server and
// with the embedded index. [Wording] selects the texts for one of the two.
// Every call to the service contains the domain's label, except listing the
// labels and checking the health. Calls that take long become jobs. Texts that
// the service does not have are fetched from stored copies or from the
// documents' URLs. The command line registers the tools and resources with a
// server of package mcpserver.
package searchmcp

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"
)

const (
	defaultPageSize      = 20
	defaultMaxPageSize   = search.MaxNum
	defaultMaxChunkBytes = 256 << 10

	documentType = "application/json"
	contentType  = "text/plain"
)

// A Wording determines the names and texts of a server. The tools are the same.
type Wording int

const (
	// OfFess is for a Fess server. The names of the tools begin with "fess_",
	// and every description ends with the Knowledge Domain block, as the
	// requirements of the bridge (FRS 7.3) demand.
	OfFess Wording = iota

	// OfFolders is for folders. The block is in the description of the search
	// tool and in the instructions; the other descriptions name the domain in
	// one line. Documents have paths and no location.
	OfFolders
)

// A Group is a group of tools.
type Group string

const (
	SearchTools Group = "search" // search, get_document and read_content
	FessTools   Group = "fess"   // the other tools of the bridge
)

// Options configure the tools and resources.
type Options struct {
	Domain Domain

	// Backend is the search service. It is required. If it is a
	// [search.Indexer], every search result contains the progress of indexing.
	// If it has the method StoredCopy of package fess's Client, stored copies
	// of documents are read if it has no text.
	Backend search.Service

	Wording Wording
	Groups  []Group // of tools; nil means all

	// NameSource adds the name of its source to every hit. It requires
	// OfFolders.
	NameSource bool

	// PageSize is the default size of a page; 0 means 20. It must not exceed
	// MaxPageSize.
	PageSize int

	// MaxPageSize is the maximum size of a page, and the size of a page of
	// resources; 0 means 100.
	MaxPageSize int

	// MaxChunkBytes is the maximum size of a chunk of a document's text, in
	// bytes of UTF-8, at least 4; 0 means 262144.
	MaxChunkBytes int

	// Jobs runs the calls to the service, except lists of resources. It must
	// serve this domain alone. If it is nil, calls do not become jobs, and
	// there is no job_get tool. Without FessTools it must be nil, because
	// callers could not query a job.
	Jobs *job.Manager

	// Content configures the sources of texts that Backend does not have; nil
	// means none.
	Content *Content

	// Explain adds to an error how the operator sets the option that the error
	// is due to; see [errkind.ReasonOf]. nil adds nothing.
	Explain func(error) error

	Log *slog.Logger // nil discards
}

// Register adds the domain's tools and resources to s. It must be called once
// for each server, before the server runs.
func Register(s *mcpserver.Server, o Options) {
	b := newBridge(o)
	if b.offers(SearchTools) {
		b.addSearch(s)
	}
	if b.offers(FessTools) {
		b.addWords(s)
		b.addService(s)
	}
	if b.offers(SearchTools) {
		b.addReading(s)
	}
	if b.offers(FessTools) {
		b.addJobs(s)
	}
	s.SetResources(b, b.templates()...)
}

// A bridge answers the calls of one domain. Except for jobs, all of its state
// is a cache: cursors and ids survive a restart.
type bridge struct {
	domain        Domain
	backend       search.Service
	wording       Wording
	groups        []Group // nil for all
	nameSource    bool
	labels        []string // in every call; nil for the whole index
	pageSize      int
	maxPageSize   int
	maxChunkBytes int
	explain       func(error) error
	log           *slog.Logger

	jobs      *job.Manager // nil if there are no jobs
	interests interests
	changes   atomic.Int64 // how often a document was found to have changed

	content   *Content   // nil if texts are not fetched
	texts     *texts     // nil without content
	converter *converter // nil without content
}

func newBridge(o Options) *bridge {
	b := &bridge{
		domain:        o.Domain,
		backend:       o.Backend,
		wording:       o.Wording,
		groups:        o.Groups,
		nameSource:    o.NameSource,
		pageSize:      o.PageSize,
		maxPageSize:   o.MaxPageSize,
		maxChunkBytes: o.MaxChunkBytes,
		explain:       o.Explain,
		log:           o.Log,
		jobs:          o.Jobs,
	}
	if o.Content != nil {
		c := *o.Content
		if c.MaxBytes <= 0 {
			c.MaxBytes = defaultMaxContent
		}
		// A text may be larger than the document that contained it.
		b.content, b.texts = &c, newTexts(max(minTexts, 2*c.MaxBytes))
	}
	if o.Domain.Label != "" {
		b.labels = []string{o.Domain.Label}
	}
	if b.maxPageSize <= 0 {
		b.maxPageSize = defaultMaxPageSize
	}
	if b.pageSize <= 0 {
		b.pageSize = defaultPageSize
	}
	b.pageSize = min(b.pageSize, b.maxPageSize)
	if b.maxChunkBytes <= 0 {
		b.maxChunkBytes = defaultMaxChunkBytes
	}
	if b.explain == nil {
		b.explain = func(err error) error { return err }
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.content != nil {
		b.converter = newConverter(b.log)
	}
	return b
}

// offers reports whether a group of tools is offered.
func (b *bridge) offers(g Group) bool { return b.groups == nil || slices.Contains(b.groups, g) }

// choose returns the text for the wording in use.
func (b *bridge) choose(ofFess, ofFolders string) string {
	if b.wording == OfFolders {
		return ofFolders
	}
	return ofFess
}

// tool returns the common parts of a tool: the name with the domain's id, the
// domain at the end of the description, and annotations for a tool that only
// reads, and only from the domain.
func (b *bridge) tool(name, title, description string) mcpserver.Tool {
	about := b.about()
	if name == "search" {
		about = "\n\n" + b.domain.Block(b.wording)
	}
	return mcpserver.Tool{
		Name:        b.toolName(name),
		Title:       title,
		Description: description + about,
		ReadOnly:    true,
		Idempotent:  true,
	}
}

// about returns the end of a description, which names the domain.
func (b *bridge) about() string {
	return b.choose("\n\n"+b.domain.Block(OfFess), "\n"+b.domain.line())
}

func (b *bridge) toolName(name string) string {
	return b.choose("fess_", "") + b.domain.ID + "_" + name
}
