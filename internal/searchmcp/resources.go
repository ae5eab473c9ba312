package searchmcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// truncated is in the _meta of the last page if the list does not contain all
// documents of the domain.
type truncated struct {
	Shown   int  `json:"shown"`
	Total   int  `json:"total"`
	AtLeast bool `json:"totalIsLowerBound,omitempty"`
}

func (t *Tools) templates() []mcpserver.Template {
	about := t.about()
	return []mcpserver.Template{{
		URITemplate: t.address("{docId}").String(),
		Name:        "document",
		Title:       "Document",
		Description: "Title, url, digest, dates and hash of the document with this doc_id." + about,
		MIMEType:    documentType,
	}, {
		URITemplate: t.contentAddress("{docId}").String(),
		Name:        "content",
		Title:       "Text of a document",
		Description: "The text of the document with this doc_id, in chunks: while isLast is false, read again with " +
			"nextCursor as cursor." + about,
		MIMEType: contentType,
	}}
}

// ListResources returns one page of the domain's documents, newest first.
func (t *Tools) ListResources(ctx context.Context, at string) (*mcpserver.ResourceList, error) {
	scope := t.cursorScope(t.domain.Label)
	start := 0
	if at != "" {
		p, err := parseCursor(at, listCursor, scope)
		if err != nil {
			return nil, err
		}
		if p.offset >= search.Window {
			return nil, &errkind.Argument{Name: "cursor", Value: at,
				Want: fmt.Sprintf("one of the first %d documents", search.Window)}
		}
		start = int(p.offset)
	}
	page, err := t.backend.Search(ctx, search.Query{
		Labels: t.labels,
		Sort:   []search.SortKey{{Field: "timestamp", Desc: true}},
		Start:  start,
		Num:    min(t.maxPageSize, search.Window-start),
	})
	if err != nil {
		return nil, t.explained(err)
	}
	list := &mcpserver.ResourceList{Resources: make([]mcpserver.Resource, 0, len(page.Hits))}
	for i := range page.Hits {
		list.Resources = append(list.Resources, t.resource(&page.Hits[i]))
	}
	next := start + len(page.Hits)
	switch more := next < page.Total || page.AtLeast; {
	case !more || len(page.Hits) == 0:
	case next < search.Window && (page.Window == 0 || next < page.Window):
		list.NextCursor = cursor{kind: listCursor, scope: scope, offset: int64(next)}.String()
	default:
		list.Meta = map[string]any{"truncated": truncated{Shown: next, Total: page.Total, AtLeast: page.AtLeast}}
	}
	return list, nil
}

// resource returns the list entry of a document.
func (t *Tools) resource(h *search.Hit) mcpserver.Resource {
	c := clean(*h, listDigestRunes)
	name := cmp.Or(c.Title, c.ID)
	sum, of := t.hash(h)
	return mcpserver.Resource{
		URI:         t.address(h.ID).String(),
		Name:        name,
		Title:       name,
		Description: strings.TrimLeft(c.Digest.Text+t.about(), "\n"),
		MIMEType:    documentType,
		Meta:        identity(c.ID, c.URL, sum, of),
	}
}

// ReadResource returns a document's metadata or one chunk of its text, or a
// handle if the call takes long.
func (t *Tools) ReadResource(ctx context.Context, uri, at string) (*mcpserver.Contents, error) {
	a, err := t.parseURI(uri)
	if err != nil {
		return nil, err
	}
	w := work{key: []string{a.String(), at}}
	if a.content {
		from, err := t.textPlace(a.id, at)
		if err != nil {
			return nil, err
		}
		w.run = func(ctx context.Context, report job.Report) (any, error) {
			p, err := t.readPart(ctx, part{id: a.id, from: from}, report)
			return resource{a, p}, err
		}
		w.current = func(ctx context.Context, shared any) (bool, error) {
			return t.isCurrent(ctx, shared.(resource).value.(*Piece))
		}
	} else {
		if at != "" {
			return nil, &errkind.Argument{Name: "cursor", Value: at,
				Want: "none: the metadata of a document is returned at once"}
		}
		w.run = func(ctx context.Context, _ job.Report) (any, error) {
			d, err := t.document(ctx, a.id)
			return resource{a, d}, err
		}
	}
	answer, err := t.do(ctx, w)
	if err != nil {
		return nil, err
	}
	r, ok := answer.(resource)
	if !ok {
		r = resource{a, answer}
	}
	return r.contents()
}

// A resource is the content of a resource: a document, a piece of its text, or
// the handle of the job that reads it.
type resource struct {
	address address
	value   any
}

func (r resource) contents() (*mcpserver.Contents, error) {
	c := &mcpserver.Contents{URI: r.address.String(), MIMEType: documentType}
	switch v := r.value.(type) {
	case *Piece:
		c.MIMEType, c.Text, c.NextCursor, c.IsLast = contentType, v.Text, v.NextCursor, v.IsLast
		c.Meta = identity(v.DocID, v.URL, v.Hash, ofContent)
		return c, nil
	case *summary:
		c.Meta, c.IsLast = identity(v.DocID, v.URL, v.Hash, v.HashOf), true
	case *handle:
		c.ResultMeta = map[string]any{"job": v}
	}
	text, err := compact.Marshal(r.value)
	if err != nil {
		return nil, fmt.Errorf("writing resource %s: %w", r.address, err)
	}
	c.Text = string(text)
	return c, nil
}
