package searchmcp

import (
	"context"

	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
)

// addReading adds the tools that correspond to the resources, for clients
// without resources.
func (b *bridge) addReading(s *mcpserver.Server) {
	document := b.tool("get_document", "Get document metadata",
		"Get the title, url, digest, dates and hash of a document. Use it to check how old it is or whether it has changed.")

	content := b.tool("read_content", "Read document text",
		"Read the text of a document. Use it before you rely on a hit. "+
			"A long text comes in chunks: while isLast is false, call again with nextCursor as cursor.")
	// Claude Code writes a longer result to a file, unless a tool declares the
	// maximum length of its results, up to this many characters.
	content.Meta = map[string]any{"anthropic/maxResultSizeChars": 500_000}
	if b.wording == OfFolders {
		b.addFolderReading(s, document, content)
		return
	}
	mcpserver.AddTool(s, document, b.getDocument)
	mcpserver.AddTool(s, content, b.readContent)
}

// documentArgs identify a document. Both names are accepted, because hits call
// the id doc_id.
type documentArgs struct {
	DocID *string `json:"docId,omitempty" jsonschema:"doc_id of a hit; required"`
	Alias *string `json:"doc_id,omitempty" jsonschema:"Another name for docId"`
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
	metadata := func(ctx context.Context) (any, error) {
		h, err := b.find(ctx, id)
		if err != nil {
			return nil, err
		}
		return b.summary(h), nil
	}
	return b.do(ctx, work{
		key:     []string{"get_document", id},
		run:     func(ctx context.Context, _ job.Report) (any, error) { return metadata(ctx) },
		recheck: func(ctx context.Context, _ any) (any, error) { return metadata(ctx) }, // it reads all of them
	})
}

type contentArgs struct {
	documentArgs
	Cursor string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous chunk"`
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
