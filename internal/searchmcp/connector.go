package searchmcp

import (
	"context"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// connectorChars is the maximum number of characters of a text that fetch returns.
const connectorChars = 200_000

// addConnector adds the two tools that ChatGPT expects of a connector. Their names,
// arguments and results are those of OpenAI's documentation ("Building MCP servers
// for ChatGPT and API integrations").
func (t *Tools) addConnector(s *mcpserver.Server) {
	find := t.tool("search", "Search documents",
		"Search the documents. Returns a list of results with id, title and url. Read a result with fetch.")
	find.Name = "search"
	fetch := t.tool("fetch", "Fetch a document", "Get the text of a document by the id of a search result.")
	fetch.Name = "fetch"
	mcpserver.AddTool(s, find, t.connectorSearch)
	mcpserver.AddTool(s, fetch, t.connectorFetch)
}

type connectorSearchArgs struct {
	Query string `json:"query" jsonschema:"A question, as a person would ask it, or words" limits:"minLength=1"`
}

// connectorSearch is the search tool of a connector.
func (t *Tools) connectorSearch(ctx context.Context, in connectorSearchArgs) (any, error) {
	r, err := t.request(SearchArgs{Query: in.Query, PageSize: t.pageSize})
	if err != nil {
		return nil, err
	}
	return t.callSearch(ctx, func(ctx context.Context) (any, error) {
		if err := r.run(ctx); err != nil {
			return nil, err
		}
		results := make([]*compact.Object, len(r.Hits))
		for i := range r.Hits {
			h := &r.Hits[i]
			results[i] = &compact.Object{}
			results[i].Add("id", h.ID)
			results[i].Add("title", h.Title)
			results[i].Add("url", h.URL)
		}
		o := &compact.Object{}
		o.Add("results", results)
		return o, nil
	})
}

type connectorFetchArgs struct {
	ID string `json:"id" jsonschema:"id of a search result" limits:"minLength=1"`
}

// connectorFetch is the fetch tool of a connector. A text of more than
// connectorChars characters is cut, and metadata.truncated says so.
func (t *Tools) connectorFetch(ctx context.Context, in connectorFetchArgs) (any, error) {
	id, err := checkID("id", in.ID)
	if err != nil {
		return nil, err
	}
	return t.do(ctx, work{run: func(ctx context.Context, report job.Report) (any, error) {
		h, err := t.find(ctx, id)
		if err != nil {
			return nil, err
		}
		text, whole, err := t.wholeText(ctx, id, report)
		if err != nil {
			return nil, err
		}
		c := clean(*h, documentDigestRunes)
		metadata := &compact.Object{}
		if c.Path != "" {
			metadata.Add("path", c.Path)
		}
		if t.nameSource && len(c.Labels) == 1 {
			metadata.Add("source", c.Labels[0])
		}
		for _, name := range []string{"filetype", "last_modified"} {
			if v := fieldValue(&c, name); v != nil {
				metadata.Add(name, v)
			}
		}
		if !whole {
			metadata.Add("truncated", "true")
		}
		o := &compact.Object{}
		o.Add("id", c.ID)
		o.Add("title", c.Title)
		o.Add("text", text)
		o.Add("url", c.URL)
		o.Add("metadata", metadata)
		return o, nil
	}})
}

// wholeText returns the first connectorChars characters of a document's text and
// whether that is all of it.
func (t *Tools) wholeText(ctx context.Context, id string, report job.Report) (text string, whole bool, err error) {
	for wanted := (part{id: id, chars: connectorChars}); wanted.chars > 0; {
		p, err := t.readPart(ctx, wanted, report)
		if err != nil {
			return "", false, err
		}
		text += p.Text
		if p.IsLast {
			return text, true, nil
		}
		if wanted.from, err = t.textPlace(id, p.NextCursor); err != nil {
			return "", false, err
		}
		wanted.chars -= len([]rune(p.Text))
	}
	return text, false, nil
}
