package fessmcp

import (
	"context"
	"slices"

	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/schema"
)

// addReading adds the tools that correspond to the resources, for clients
// without resources.
func (b *bridge) addReading(s *mcpserver.Server) {
	which := []schema.Property{
		{Name: "docId", Schema: text("doc_id of a hit; required")},
		{Name: "doc_id", Schema: text("In place of docId")},
	}
	if b.wording == OfFolders {
		which = []schema.Property{{Name: "docId", Required: true, Schema: text("doc_id of a hit")}}
	}
	mcpserver.AddTool(s, b.tool("get_document", "Get a document's facts",
		"Get title, url, digest, dates and hash of a document. Use it to see how old it is or whether it has changed.",
		schema.Schema{Properties: which}), b.getDocument)

	content := b.tool("read_content", "Read a document's text",
		"Read the text of a document. Use it before you answer from a hit. "+
			"A long text comes in chunks: while isLast is false, call again with nextCursor as cursor.",
		schema.Schema{Properties: append(slices.Clone(which), schema.Property{Name: "cursor", Schema: text("nextCursor of the chunk before")})})
	// Claude Code writes a longer result to a file, unless a tool declares the
	// maximum length of its results, up to this many characters.
	content.Meta = map[string]any{"anthropic/maxResultSizeChars": 500_000}
	mcpserver.AddTool(s, content, b.readContent)
}

// documentArgs identify a document. Both names are accepted, because hits call
// the id doc_id.
type documentArgs struct {
	DocID *string `json:"docId"`
	Alias *string `json:"doc_id"`
}

func (a documentArgs) id() (string, error) {
	const want = "the doc_id of a search hit: 1 to 128 of the characters A-Z, a-z, 0-9, _ and -"
	name, v := "docId", a.DocID
	switch {
	case v == nil && a.Alias == nil:
		return "", &errkind.Argument{Name: name, Want: want}
	case v != nil && a.Alias != nil:
		return "", &errkind.Argument{Name: "doc_id", Value: *a.Alias, Want: "only one of docId and doc_id"}
	case v == nil:
		name, v = "doc_id", a.Alias
	}
	if !isID(*v) {
		return "", &errkind.Argument{Name: name, Value: *v, Want: want}
	}
	return *v, nil
}

func (b *bridge) getDocument(ctx context.Context, in documentArgs) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	facts := func(ctx context.Context) (any, error) {
		h, err := b.find(ctx, id)
		if err != nil {
			return nil, err
		}
		return b.summary(h), nil
	}
	return b.do(ctx, work{
		key:     []string{"get_document", id},
		run:     func(ctx context.Context, _ job.Report) (any, error) { return facts(ctx) },
		recheck: func(ctx context.Context, _ any) (any, error) { return facts(ctx) }, // it reads all of them
	})
}

type contentArgs struct {
	documentArgs
	Cursor string `json:"cursor"`
}

func (b *bridge) readContent(ctx context.Context, in contentArgs) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	from, err := b.textPlace(id, in.Cursor)
	if err != nil {
		return nil, err
	}
	return b.do(ctx, work{
		key:     []string{"read_content", id, in.Cursor},
		run:     func(ctx context.Context, report job.Report) (any, error) { return b.readPiece(ctx, id, from, report) },
		recheck: func(ctx context.Context, shared any) (any, error) { return b.stillCurrent(ctx, id, shared) },
	})
}
