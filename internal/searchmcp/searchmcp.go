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

	"github.com/knowhow-mcp/knowhow/internal/content"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
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

	// ConnectorTools are search and fetch, as ChatGPT expects them.
	ConnectorTools Group = "openai"
)

// Options configure the tools and resources.
type Options struct {
	Domain Domain

	// Backend is the search service. It is required. If it is a
	// [search.Indexer], every search result contains the progress of indexing.
	Backend search.Service

	Wording Wording
	Groups  []Group // of tools; nil means all

	// Owner identifies the user whose calls are answered. Cursors that another user got
	// are refused. "" means that the server has no users.
	Owner string

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

	// Content reads the texts that Backend does not have; nil means none.
	Content *content.Reader

	// Explain adds to an error how the operator sets the option that the error
	// is due to; see [errkind.ReasonOf]. nil adds nothing.
	Explain func(error) error

	Log *slog.Logger // nil discards
}

// Tools answer the calls of one domain. Except for jobs, all of their state
// is a cache: cursors and ids survive a restart. Their methods are safe for
// concurrent use.
type Tools struct {
	domain        Domain
	backend       search.Service
	wording       Wording
	groups        []Group // nil for all
	owner         string
	nameSource    bool
	labels        []string // in every call; nil for the whole index
	pageSize      int
	maxPageSize   int
	maxChunkBytes int
	explain       func(error) error
	log           *slog.Logger

	jobs    *job.Manager // nil if there are no jobs
	changes atomic.Int64 // how often a document was found to have changed

	content *content.Reader // nil if there is none
}

// New returns the tools that the options describe.
func New(o Options) *Tools {
	t := &Tools{
		domain:        o.Domain,
		backend:       o.Backend,
		wording:       o.Wording,
		groups:        o.Groups,
		owner:         o.Owner,
		nameSource:    o.NameSource,
		pageSize:      o.PageSize,
		maxPageSize:   o.MaxPageSize,
		maxChunkBytes: o.MaxChunkBytes,
		explain:       o.Explain,
		log:           o.Log,
		jobs:          o.Jobs,
		content:       o.Content,
	}
	if o.Domain.Label != "" {
		t.labels = []string{o.Domain.Label}
	}
	if t.maxPageSize <= 0 {
		t.maxPageSize = defaultMaxPageSize
	}
	if t.pageSize <= 0 {
		t.pageSize = defaultPageSize
	}
	t.pageSize = min(t.pageSize, t.maxPageSize)
	if t.maxChunkBytes <= 0 {
		t.maxChunkBytes = defaultMaxChunkBytes
	}
	if t.explain == nil {
		t.explain = func(err error) error { return err }
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

// Register adds the domain's tools and resources to s. It must be called before the
// server runs.
func (t *Tools) Register(s *mcpserver.Server) {
	if t.offers(SearchTools) {
		t.addSearch(s)
	}
	if t.offers(FessTools) {
		t.addWords(s)
		t.addService(s)
	}
	if t.offers(SearchTools) {
		t.addReading(s)
	}
	if t.offers(FessTools) {
		t.addJobs(s)
	}
	if slices.Contains(t.groups, ConnectorTools) {
		t.addConnector(s)
	}
	s.SetResources(t, t.templates()...)
}

// offers reports whether a group of tools is offered.
func (t *Tools) offers(g Group) bool { return t.groups == nil || slices.Contains(t.groups, g) }

// choose returns the text for the wording in use.
func (t *Tools) choose(ofFess, ofFolders string) string {
	if t.wording == OfFolders {
		return ofFolders
	}
	return ofFess
}

// tool returns the common parts of a tool: the name with the domain's id, the
// domain at the end of the description, and annotations for a tool that only
// reads, and only from the domain.
func (t *Tools) tool(name, title, description string) mcpserver.Tool {
	about := t.about()
	if name == "search" {
		about = "\n\n" + t.domain.Block(t.wording)
	}
	return mcpserver.Tool{
		Name:        t.toolName(name),
		Title:       title,
		Description: description + about,
		ReadOnly:    true,
		Idempotent:  true,
	}
}

// about returns the end of a description, which names the domain.
func (t *Tools) about() string {
	return t.choose("\n\n"+t.domain.Block(OfFess), "\n"+t.domain.line())
}

func (t *Tools) toolName(name string) string {
	return t.choose("fess_", "") + t.domain.ID + "_" + name
}
