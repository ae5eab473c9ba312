// Package fessmcp is the search front end: the MCP tools and resources through
// which an agent searches and reads one knowledge domain.
//
// It works on the interfaces of package search, over a Fess server and over the
// embedded index alike; [Wording] says which of the two its texts speak of. Every
// call that it makes carries the domain's label; only listing the labels and
// asking for the health don't. Calls that take long become jobs, and texts that
// the service does not hold are fetched from where the documents are. The command
// line registers it with a server of package mcpserver.
package fessmcp

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

// A Wording says what the names and texts of a server speak of. The tools are the
// same.
type Wording int

const (
	// OfFess speaks of a Fess server. The names of the tools begin with
	// "fess_", and every description ends with the Knowledge Domain block, as
	// the requirements of the bridge (FRS 7.3) demand.
	OfFess Wording = iota

	// OfFolders speaks of documents and folders. The block is in the
	// description of the search tool and in the instructions; the other
	// descriptions name the domain in one line. Documents have paths and no
	// location.
	OfFolders
)

// A Group is a group of tools that are offered together.
type Group string

const (
	SearchTools Group = "search" // search, get_document and read_content
	FessTools   Group = "fess"   // the other tools of the bridge
)

// Options say what to serve.
type Options struct {
	Domain Domain

	// Backend is the search service behind the tools. It is required. If it
	// is a [search.Indexer], every search shows the progress of indexing. If
	// it has the method StoredCopy of package fess's Client, the copies that
	// it stored of documents are read where it has no text.
	Backend search.Service

	Wording Wording
	Groups  []Group // of tools; nil means all

	// NameSource has every hit name its source, because hits come from more
	// than one. It needs OfFolders.
	NameSource bool

	// PageSize is the size of a page where the caller names none; 0 means 20.
	// It is at most MaxPageSize.
	PageSize int

	// MaxPageSize is the largest page that a caller can ask for, and the
	// size of a page of resources; 0 means 100.
	MaxPageSize int

	// MaxChunkBytes is the largest piece of a document's text in one
	// answer, in bytes of UTF-8, at least 4; 0 means 262144.
	MaxChunkBytes int

	// Jobs runs what the tools and resources ask of the service, except
	// lists of resources. It must serve this domain alone. With nil every call
	// lasts as long as it takes, and there is no job_get tool. Without
	// FessTools it must be nil, because nobody could ask for a job.
	Jobs *job.Manager

	// Content says where texts come from that Backend does not hold; nil
	// means from nowhere.
	Content *Content

	// Explain adds to the error of a call how the operator sets the option
	// that it is due to; see [errkind.ReasonOf]. nil adds nothing.
	Explain func(error) error

	Log *slog.Logger // nil discards
}

// Register adds the domain's tools and resources to s. It is called once for a
// server, before that serves.
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

// bridge answers the calls of one domain. Except jobs, everything it holds is a
// cache: cursors and ids survive a restart.
type bridge struct {
	domain        Domain
	backend       search.Service
	wording       Wording
	groups        []Group // nil for all
	nameSource    bool
	labels        []string // of every call; nil for the whole index
	pageSize      int
	maxPageSize   int
	maxChunkBytes int
	explain       func(error) error
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
		// A text may be longer than the document that it was in.
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

// say returns the text of the wording in use.
func (b *bridge) say(ofFess, ofFolders string) string {
	if b.wording == OfFolders {
		return ofFolders
	}
	return ofFess
}

// tool returns what all tools have in common: the name with the domain's id, the
// domain at the end of the description, and the hints of a tool that only reads,
// and only from the domain.
func (b *bridge) tool(name, title, description string) mcpserver.Tool {
	about := b.about()
	if name == "search" {
		about = "\n\n" + b.domain.Block()
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
	return b.say("\n\n"+b.domain.Block(), "\n"+b.domain.line())
}

func (b *bridge) toolName(name string) string {
	return b.say("fess_", "") + b.domain.ID + "_" + name
}
