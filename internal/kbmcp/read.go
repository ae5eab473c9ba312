package kbmcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// Limits on results, in characters.
const (
	maxPassages = 24_000 // of all passages of a search together
	minPassage  = 200    // of a passage after that
	maxPage     = 60_000 // of the chunks of a page of a document
)

// searchArgs are the arguments of kb_search.
type searchArgs struct {
	Query      string   `json:"query" jsonschema:"A question or words" limits:"minLength=1 maxLength=2000"`
	Top        int      `json:"top,omitempty" jsonschema:"Number of results" limits:"minimum=1 maximum=100 default=10"`
	Collection string   `json:"collection,omitempty" jsonschema:"Search only this collection" limits:"minLength=1 maxLength=100"`
	Tags       []string `json:"tags,omitempty" jsonschema:"Search only documents with all of these tags" limits:"maxItems=50"`
	FTSOnly    bool     `json:"fts_only,omitempty" jsonschema:"Search by words only and not by meaning, for example for an error message"`
}

// A searchResult is the result of kb_search.
type searchResult struct {
	Results []hit  `json:"results"`
	Total   int    `json:"total"`
	Note    string `json:"note,omitempty"` // what is incomplete, or what to try if there are no results
}

type hit struct {
	DocumentID int64   `json:"document_id"`
	ChunkIndex int     `json:"chunk_index"`
	Text       string  `json:"text"`
	Cut        bool    `json:"cut,omitempty"`
	Heading    string  `json:"heading,omitempty"`
	Page       string  `json:"page,omitempty"`
	Score      float64 `json:"score"`
	Title      string  `json:"title"`
	SourcePath string  `json:"source_path"`
	Type       string  `json:"type"`
	label
	UpdatedAt kb.Time `json:"updated_at,omitzero"`
}

func (t *tools) search(ctx context.Context, in searchArgs) (any, error) {
	q := kb.SearchQuery{Query: in.Query, Top: in.Top, Tags: []string{}, FTSOnly: in.FTSOnly}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	q.Tags = append(q.Tags, in.Tags...)
	if in.Collection != "" {
		if err := checkCollection(in.Collection); err != nil {
			return nil, err
		}
		q.Tags = append(q.Tags, document.LabelTag(in.Collection))
	}
	found, err := t.o.Base.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	r := searchResultOf(found)
	if len(r.Results) == 0 && r.Note == "" {
		r.Note = t.nothingFound(ctx, in)
	}
	return r, nil
}

// SearchResult returns what is written as the JSON of a search.
func SearchResult(found *kb.SearchResult) any { return searchResultOf(found) }

func searchResultOf(found *kb.SearchResult) *searchResult {
	r := &searchResult{Results: make([]hit, len(found.Results)), Total: found.Total, Note: sanitize.Short(found.Note,
		300, 1200)}
	left := maxPassages
	for i, f := range found.Results {
		text := sanitize.Text(f.Text)
		limit := max(left, minPassage)
		short := sanitize.Cut(text, limit, 4*limit)
		left -= utf8.RuneCountInString(short)
		r.Results[i] = hit{
			DocumentID: f.DocumentID, ChunkIndex: f.ChunkIndex, Text: short, Cut: short != text,
			Heading: sanitize.Short(f.Heading, 200, 800), Page: sanitize.Short(f.Page, 50, 200),
			Score: f.Score,
			Title: title(f.Title), SourcePath: sanitize.Escape(f.SourcePath), Type: sanitize.Escape(f.Type),
			label: labelOf(f.Tags), UpdatedAt: f.UpdatedAt,
		}
	}
	return r
}

// nothingFound returns what to try after a search without results. A collection
// without documents is often a misspelled one, so those that exist are named.
func (t *tools) nothingFound(ctx context.Context, in searchArgs) string {
	ctx = audit.With(ctx, nil) // the caller receives no documents
	if in.Collection != "" {
		list, err := t.o.Base.Documents(ctx, kb.DocumentFilter{Tag: document.LabelTag(in.Collection), Limit: 1})
		if err == nil && list.Total == 0 {
			note := fmt.Sprintf("no document is in the collection %s", in.Collection)
			if all, err := t.collections(ctx, 1); err == nil && len(all.Collections) > 0 {
				names := make([]string, 0, len(all.Collections))
				for _, c := range all.Collections[:min(len(all.Collections), 20)] {
					names = append(names, c.Name)
				}
				note += "; there are " + strings.Join(names, ", ")
			}
			return note
		}
	}
	switch {
	case in.Collection != "" && len(in.Tags) > 0:
		return "nothing matches with these tags in this collection; try other words, or without tags and collection"
	case in.Collection != "":
		return "nothing matches in this collection; try other words, or without collection"
	case len(in.Tags) > 0:
		return "nothing matches with these tags; try other words, or without tags"
	}
	return "nothing matches; try other words"
}

// getArgs are the arguments of kb_get.
type getArgs struct {
	DocumentID int64  `json:"document_id,omitempty" limits:"minimum=1"`
	SourcePath string `json:"source_path,omitempty" jsonschema:"Path of a file as it was uploaded; in place of document_id" limits:"minLength=1 maxLength=1000"`
	Offset     int    `json:"offset,omitempty" jsonschema:"First chunk, from 0" limits:"minimum=0"`
	Limit      int    `json:"limit,omitempty" jsonschema:"Number of chunks; by default 10" limits:"minimum=1 maximum=100"`
}

// defaultChunks is the number of chunks on a page of a document.
const defaultChunks = 10

// A described is a document without its text.
type described struct {
	DocumentID int64  `json:"document_id"`
	Title      string `json:"title"`
	SourcePath string `json:"source_path"`
	Type       string `json:"type"`
	label
	CreatedAt kb.Time `json:"created_at,omitzero"`
	UpdatedAt kb.Time `json:"updated_at,omitzero"`
}

func describe(d *kb.Document) described {
	return described{
		DocumentID: d.ID, Title: title(d.Title), SourcePath: sanitize.Escape(d.SourcePath),
		Type:  sanitize.Escape(d.Type),
		label: labelOf(d.Tags), CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
}

// A page is a document with some of its chunks.
type page struct {
	described
	Chunks      []kb.Chunk `json:"chunks"`
	TotalChunks int        `json:"total_chunks"`
	NextOffset  int        `json:"next_offset,omitempty"` // 0 on the last page
	Cut         bool       `json:"cut,omitempty"`         // the only chunk is shortened
}

// pageOf returns up to limit of the chunks that were read of a document from
// offset on, as many as a result may have.
func pageOf(d *kb.Document, offset, limit int) *page {
	p := &page{described: describe(d), Chunks: []kb.Chunk{}, TotalChunks: d.TotalChunks}
	left := maxPage
	for _, c := range d.Chunks[:min(limit, len(d.Chunks))] {
		c = clean(c)
		size := utf8.RuneCountInString(c.Text)
		if len(p.Chunks) > 0 && size > left {
			break
		}
		if size > maxPage {
			c.Text, p.Cut = sanitize.Cut(c.Text, maxPage, 4*maxPage), true
		}
		left -= size
		p.Chunks = append(p.Chunks, c)
	}
	if next := offset + len(p.Chunks); next < d.TotalChunks {
		p.NextOffset = next
	}
	return p
}

// DocumentResult returns what is written as the JSON of a document with all of
// its chunks.
func DocumentResult(d *kb.Document) any {
	p := &page{described: describe(d), Chunks: make([]kb.Chunk, len(d.Chunks)), TotalChunks: len(d.Chunks)}
	for i, c := range d.Chunks {
		p.Chunks[i] = clean(c)
	}
	return p
}

// clean returns a chunk without invisible characters. It keeps its lines,
// because agents change notes that they have read.
func clean(c kb.Chunk) kb.Chunk {
	c.Text = sanitize.Lines(c.Text)
	return c
}

// A documentList is the result of kb_get with a source_path, and of kb_list.
type documentList struct {
	Documents  []described `json:"documents"`
	Total      int         `json:"total"`
	NextOffset int         `json:"next_offset,omitempty"` // 0 on the last page
}

// list returns a page of documents.
func (t *tools) list(ctx context.Context, f kb.DocumentFilter) (*documentList, error) {
	found, err := t.o.Base.Documents(ctx, f)
	if err != nil {
		return nil, err
	}
	return documentListOf(found, f.Offset), nil
}

// DocumentList returns what is written as the JSON of a list of documents that
// begins at offset.
func DocumentList(found *kb.DocumentList, offset int) any { return documentListOf(found, offset) }

func documentListOf(found *kb.DocumentList, offset int) *documentList {
	r := &documentList{Documents: make([]described, len(found.Documents)), Total: found.Total}
	for i := range found.Documents {
		r.Documents[i] = describe(&found.Documents[i])
	}
	if next := offset + len(found.Documents); next < found.Total && len(found.Documents) > 0 {
		r.NextOffset = next
	}
	return r
}

// maxSamePath is the maximum number of documents in the result of kb_get with a
// source_path.
const maxSamePath = 100

func (t *tools) get(ctx context.Context, in getArgs) (any, error) {
	switch {
	case in.DocumentID == 0 && in.SourcePath == "":
		return nil, fmt.Errorf("document_id or source_path is required: %w", errkind.Invalid)
	case in.DocumentID != 0 && in.SourcePath != "":
		return nil, fmt.Errorf("document_id and source_path exclude each other, give one of them: %w", errkind.Invalid)
	case in.SourcePath != "" && (in.Offset != 0 || in.Limit != 0):
		return nil, fmt.Errorf("offset and limit count chunks and need document_id; source_path finds it: %w",
			errkind.Invalid)
	case in.SourcePath != "":
		return t.list(ctx, kb.DocumentFilter{SourcePath: in.SourcePath, Limit: maxSamePath})
	}
	in.Limit = cmp.Or(in.Limit, defaultChunks)
	from := min(in.Offset, kb.AllChunks-in.Limit)
	d, err := t.o.Base.Document(ctx, in.DocumentID, from, from+in.Limit)
	if err != nil {
		return nil, err
	}
	if in.Offset > 0 && in.Offset >= d.TotalChunks {
		return nil, &errkind.Argument{Name: "offset", Value: in.Offset,
			Want: fmt.Sprintf("less than %d, the number of chunks", max(d.TotalChunks, 1))}
	}
	return pageOf(d, in.Offset, in.Limit), nil
}

// A statusResult is the result of kb_status.
type statusResult struct {
	kb.Status
	MCP mcpStatus `json:"mcp"`
}

// mcpStatus is the state of this side of the engine.
type mcpStatus struct {
	Version string `json:"version"`
	Uploads int    `json:"uploads"` // in progress
}

func (t *tools) status(ctx context.Context, _ struct{}) (any, error) {
	own := mcpStatus{t.o.Version, t.o.Uploads.count(ctx)}
	s, err := t.o.Base.Status(ctx)
	if err != nil {
		// The caller also learns that this side works.
		return nil, &mcpserver.Error{Err: failed(fmt.Sprintf("the MCP server works (version %s, %d uploads in progress), "+
			"but the knowledge base does not answer",
			own.Version, own.Uploads), err), Data: map[string]any{"mcp": own}}
	}
	r, err := json.Marshal(&statusResult{*s, own})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of the knowledge base: %w", err)
	}
	return json.RawMessage(sanitize.ShowJSON(r)), nil // an engine names what it likes
}

// jobsArgs are the arguments of kb_jobs.
type jobsArgs struct {
	Status string `json:"status,omitempty" jsonschema:"List only jobs with this status" limits:"enum=queued|running|done|failed"`
	Limit  int    `json:"limit,omitempty" jsonschema:"Number of jobs" limits:"minimum=1 maximum=1000 default=20"`
}

func (t *tools) jobs(ctx context.Context, in jobsArgs) (any, error) {
	jobs, err := t.o.Base.Jobs(ctx, kb.JobFilter{Status: in.Status, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		j.Status, j.Type, j.Filename = sanitize.Escape(j.Status), sanitize.Escape(j.Type), sanitize.Escape(j.Filename)
		j.Error = sanitize.Short(j.Error, 500, 2000)
	}
	return map[string]any{"jobs": append([]kb.Job{}, jobs...)}, nil
}
