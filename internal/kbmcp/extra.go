package kbmcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// registerExtra adds the tools beyond those of the specification.
func (t *tools) registerExtra(s *mcpserver.Server) {
	reads := reads(t.o.Caller)
	add(t, s, mcpserver.Tool{
		Name: "kb_list", Title: "List documents",
		Description: "List the documents of the knowledge base, the newest first, without their texts: all, or those of a " +
			"collection or with a tag.",
		ReadOnly: true, Idempotent: true, Unlisted: !reads,
	}, t.listDocuments)
	add(t, s, mcpserver.Tool{
		Name: "kb_collections", Title: "List collections",
		Description: "List the collections of the knowledge base with their numbers of documents.",
		ReadOnly:    true, Idempotent: true, Unlisted: !reads,
	}, t.listCollections)
	add(t, s, mcpserver.Tool{
		Name: "kb_delete", Title: "Delete a document",
		Description: "Delete a note or a file from the knowledge base. This cannot be undone.",
		Destructive: true, Idempotent: true, Unlisted: !reads || !t.o.Caller.Writes(),
	}, t.delete)
}

// listArgs are the arguments of kb_list.
type listArgs struct {
	Collection string `json:"collection,omitempty" jsonschema:"List only this collection" limits:"minLength=1 maxLength=100"`
	Tag        string `json:"tag,omitempty" jsonschema:"List only documents with this tag; in place of collection" limits:"minLength=1 maxLength=200"`
	Limit      int    `json:"limit,omitempty" jsonschema:"Number of documents" limits:"minimum=1 maximum=1000 default=50"`
	Offset     int    `json:"offset,omitempty" jsonschema:"Number of documents to skip" limits:"minimum=0"`
}

func (t *tools) listDocuments(ctx context.Context, in listArgs) (any, error) {
	f := kb.DocumentFilter{Tag: in.Tag, Limit: in.Limit, Offset: in.Offset}
	if in.Tag != "" {
		if err := checkTag("tag", in.Tag); err != nil {
			return nil, err
		}
	}
	if in.Collection != "" {
		if err := checkCollection(in.Collection); err != nil {
			return nil, err
		}
		if in.Tag != "" {
			return nil, fmt.Errorf("collection and tag exclude each other, give one of them: %w", errkind.Invalid)
		}
		f.Tag = document.LabelTag(in.Collection)
	}
	return t.list(ctx, f)
}

// A collectionList is the result of kb_collections.
type collectionList struct {
	Collections []collection `json:"collections"`         // by name
	Truncated   bool         `json:"truncated,omitempty"` // only the newest documents were counted
}

type collection struct {
	Name      string `json:"name"`
	Documents int    `json:"documents"`
}

// maxCounted is how many pages of documents are counted for kb_collections.
const maxCounted = 50

func (t *tools) listCollections(ctx context.Context, _ struct{}) (any, error) {
	return t.collections(ctx, maxCounted)
}

// collections counts the documents of each collection, on so many pages of
// documents at most. The API of engines has no call for it.
func (t *tools) collections(ctx context.Context, pages int) (*collectionList, error) {
	ctx = audit.With(ctx, nil) // the caller receives no documents
	r := &collectionList{Collections: []collection{}}
	count := map[string]int{}
	for offset := 0; ; {
		list, err := t.o.Base.Documents(ctx, kb.DocumentFilter{Limit: kb.MaxLimit, Offset: offset})
		if err != nil {
			return nil, err
		}
		for _, d := range list.Documents {
			count[labelOf(d.Tags).Collection]++
		}
		offset += len(list.Documents)
		if offset >= list.Total || len(list.Documents) == 0 {
			break
		}
		if pages--; pages == 0 {
			r.Truncated = true
			break
		}
	}
	for name, n := range count {
		r.Collections = append(r.Collections, collection{name, n})
	}
	slices.SortFunc(r.Collections, func(a, b collection) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// deleteArgs are the arguments of kb_delete.
type deleteArgs struct {
	DocumentID int64 `json:"document_id" limits:"minimum=1"`
}

func (t *tools) delete(ctx context.Context, in deleteArgs) (any, error) {
	if err := t.o.Base.Delete(ctx, in.DocumentID); err != nil {
		return nil, err
	}
	return map[string]any{"deleted": in.DocumentID}, nil
}
