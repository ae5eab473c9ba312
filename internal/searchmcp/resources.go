package searchmcp

import (
	"context"
	"fmt"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"
)

// truncated is in the _meta of the last page if the list does not contain all
// documents of the domain.
type truncated struct {
	Shown   int  `json:"shown"`
	Total   int  `json:"total"`
	AtLeast bool `json:"totalIsLowerBound,omitempty"`
}

func (b *bridge) templates() []mcpserver.Template {
	about := b.about()
	return []mcpserver.Template{{
		URITemplate: b.address("{docId}").String(),
		Name:        "document",
		Title:       "Document",
		Description: "Title, url, digest, dates and hash of the document with this doc_id." + about,
		MIMEType:    documentType,
	}, {
		URITemplate: b.contentAddress("{docId}").String(),
		Name:        "content",
		Title:       "Text of a document",
		Description: "The text of the document with this doc_id, in chunks: while isLast is false, read again with nextCursor as cursor." + about,
		MIMEType:    contentType,
	}}
}

// ListResources returns one page of the domain's documents, newest first.
func (b *bridge) ListResources(ctx context.Context, at string) (*mcpserver.ResourceList, error) {
	scope := b.domain.ID + "/" + b.domain.Label
	start := 0
	if at != "" {
		p, err := parseCursor(at, listCursor, scope)
		if err != nil {
			return nil, err
		}
		if p.offset >= search.Window {
			return nil, &errkind.Argument{Name: "cursor", Value: at, Want: fmt.Sprintf("one of the first %d documents", search.Window)}
		}
		start = int(p.offset)
	}
	page, err := b.backend.Search(ctx, search.Query{
		Labels: b.labels,
		Sort:   []search.SortKey{{Field: "timestamp", Desc: true}},
		Start:  start,
		Num:    min(b.maxPageSize, search.Window-start),
	})
	if err != nil {
		return nil, b.explained(err)
	}
	list := &mcpserver.ResourceList{Resources: make([]mcpserver.Resource, 0, len(page.Hits))}
	for i := range page.Hits {
		list.Resources = append(list.Resources, b.resource(&page.Hits[i]))
	}
	next := start + len(page.Hits)
	switch more := next < page.Total || page.AtLeast; {
	case !more || len(page.Hits) == 0:
	case next < search.Window:
		list.NextCursor = cursor{kind: listCursor, scope: scope, offset: int64(next)}.String()
	default:
		list.Meta = map[string]any{"truncated": truncated{Shown: next, Total: page.Total, AtLeast: page.AtLeast}}
	}
	return list, nil
}

// resource returns the list entry of a document.
func (b *bridge) resource(h *search.Hit) mcpserver.Resource {
	name := title(h.Title)
	if name == "" {
		name = h.ID
	}
	about := strings.TrimLeft(digest(h.Digest.Text, listDigestRunes)+b.about(), "\n")
	sum, of := b.hash(h)
	return mcpserver.Resource{
		URI:         b.address(h.ID).String(),
		Name:        name,
		Title:       name,
		Description: about,
		MIMEType:    documentType,
		Meta:        identity(h.ID, link(h.URL), sum, of),
	}
}

// ReadResource returns a document's metadata or one chunk of its text, or a
// handle if the call takes long.
func (b *bridge) ReadResource(ctx context.Context, uri, at string) (*mcpserver.Contents, error) {
	a, err := b.parseURI(uri)
	if err != nil {
		return nil, err
	}
	if a.content {
		from, err := b.textPlace(a.id, at)
		if err != nil {
			return nil, err
		}
		return b.read(ctx, a, work{
			key:     []string{"content", a.scheme, a.id, at},
			run:     func(ctx context.Context, report job.Report) (any, error) { return b.readText(ctx, a, from, report) },
			recheck: func(ctx context.Context, shared any) (any, error) { return b.stillCurrent(ctx, a.id, shared) },
		})
	}
	if at != "" {
		return nil, &errkind.Argument{Name: "cursor", Value: at, Want: "none: the metadata of a document is returned at once"}
	}
	return b.read(ctx, a, work{
		key:     []string{"document", a.scheme, a.id},
		run:     func(ctx context.Context, _ job.Report) (any, error) { return b.readMetadata(ctx, a) },
		recheck: func(ctx context.Context, _ any) (any, error) { return b.readMetadata(ctx, a) }, // it reads all of them
	})
}

// read reads a resource, or returns the handle of the job that reads it.
func (b *bridge) read(ctx context.Context, a address, w work) (*mcpserver.Contents, error) {
	answer, err := b.do(ctx, w)
	if err != nil {
		return nil, err
	}
	switch r := answer.(type) {
	case *mcpserver.Contents:
		return r, nil
	case *pieceContents:
		return r.contents(), nil
	case *handle:
		text, err := compact.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("writing the job of resource %s: %w", a, err)
		}
		return &mcpserver.Contents{URI: a.String(), MIMEType: documentType, Text: string(text), ResultMeta: map[string]any{"job": r}}, nil
	}
	return nil, fmt.Errorf("reading resource %s: got a %T", a, answer)
}

func (b *bridge) readMetadata(ctx context.Context, a address) (*mcpserver.Contents, error) {
	h, err := b.find(ctx, a.id)
	if err != nil {
		return nil, err
	}
	s := b.summary(h)
	text, err := compact.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing document %s: %w", a.id, err)
	}
	return &mcpserver.Contents{
		URI:      a.String(),
		MIMEType: documentType,
		Text:     string(text),
		Meta:     identity(a.id, s.URL, s.Hash, s.HashOf),
		IsLast:   true,
	}, nil
}

// A pieceContents is a piece that was read as a resource.
type pieceContents struct {
	uri   string
	piece *piece
}

func (c *pieceContents) contents() *mcpserver.Contents {
	p := c.piece
	return &mcpserver.Contents{
		URI:        c.uri,
		MIMEType:   contentType,
		Text:       p.Text,
		Meta:       identity(p.DocID, p.URL, p.Hash, ofContent),
		NextCursor: p.NextCursor,
		IsLast:     p.IsLast,
	}
}

func (b *bridge) readText(ctx context.Context, a address, from place, report job.Report) (any, error) {
	p, err := b.readPiece(ctx, a.id, from, report)
	if err != nil {
		return nil, err
	}
	return &pieceContents{a.String(), p}, nil
}
