package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/schema"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resources are the resources of a server. Both methods must be safe for
// concurrent use. Their errors are answered like those of tool handlers.
type Resources interface {
	// ListResources returns the page that starts at cursor, which is empty
	// for the first one and otherwise a NextCursor of an earlier page.
	ListResources(ctx context.Context, cursor string) (*ResourceList, error)

	// ReadResource returns the part of a resource that starts at cursor, which
	// is empty for the first one and otherwise a NextCursor of an earlier part.
	// If the resource does not exist, the error is of kind errkind.NotFound.
	ReadResource(ctx context.Context, uri, cursor string) (*Contents, error)
}

// A Resource is one entry of resources/list.
type Resource struct {
	URI         string         `json:"uri"`
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	MIMEType    string         `json:"mimeType,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// A ResourceList is one page of resources.
type ResourceList struct {
	Resources  []Resource
	NextCursor string         // "" for the last page
	Meta       map[string]any // _meta of the result
}

// Contents is one part of a resource's text.
type Contents struct {
	URI        string // "" means the requested URI
	MIMEType   string
	Text       string
	Meta       map[string]any // _meta of contents[0]
	ResultMeta map[string]any // _meta of the result
	NextCursor string         // the start of the next part; "" for the last one
	IsLast     bool
}

// A Template describes the URIs of resources to clients.
type Template struct {
	URITemplate string `json:"uriTemplate"` // RFC 6570
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// SetResources sets the resources of the server. It must be called before the
// server is served.
func (s *Server) SetResources(r Resources, templates ...Template) {
	offer := s.offer.Load()
	offer.res, offer.template = r, templates
}

// noResources are those of a server without resources.
type noResources struct{}

func (noResources) ListResources(context.Context, string) (*ResourceList, error) {
	return &ResourceList{}, nil
}

func (noResources) ReadResource(_ context.Context, uri, _ string) (*Contents, error) {
	return nil, fmt.Errorf("resource %q does not exist: this server has no resources: %w", uri, errkind.NotFound)
}

// hasResources reports whether the resources of the server were set.
func (o *offer) hasResources() bool { return o.res != noResources{} }

// noCursor refuses the cursor of a list that is not paged.
func noCursor(at string) error {
	return &errkind.Argument{Name: "cursor", Value: at, Want: "none: the list is complete"}
}

type resourcesResult struct {
	mcp.ResultBase
	freshness
	Resources  []Resource `json:"resources"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

func (o *offer) listResources(ctx context.Context, p *mcp.ListResourcesParams, revision string) (mcp.Result, error) {
	cursor := ""
	if p != nil {
		cursor = p.Cursor
	}
	list, err := o.res.ListResources(ctx, cursor)
	if err != nil {
		return nil, err
	}
	res := &resourcesResult{freshness: freshnessFor(revision), NextCursor: list.NextCursor,
		Resources: append([]Resource{}, list.Resources...)} // never null
	res.Meta = maps.Clone(list.Meta)
	return res, nil
}

type templatesResult struct {
	mcp.ResultBase
	freshness
	Templates []Template `json:"resourceTemplates"`
}

func (o *offer) listTemplates(revision string) *templatesResult {
	// never null
	return &templatesResult{freshness: freshnessFor(revision), Templates: append([]Template{}, o.template...)}
}

// readResult is the result of resources/read. The SDK's type omits an empty
// text, which makes the contents invalid, and has no field for isLast.
type readResult struct {
	mcp.ResultBase
	freshness
	Contents   []textContents `json:"contents"`
	NextCursor string         `json:"nextCursor,omitempty"`
	IsLast     bool           `json:"isLast"`
}

type textContents struct {
	URI      string         `json:"uri"`
	MIMEType string         `json:"mimeType,omitempty"`
	Text     string         `json:"text"`
	Meta     map[string]any `json:"_meta,omitempty"`
}

func (o *offer) readResource(ctx context.Context, p *mcp.ReadResourceParams, revision string) (mcp.Result, error) {
	if p.URI == "" {
		return nil, &schema.Error{Argument: "uri", Want: "the URI of a resource",
			Message: `argument "uri" is missing: want the URI of a resource, see resources/list`}
	}
	k := callFrom(ctx)
	uri, cursor := cutCursor(p.URI)
	var more struct{ Cursor any }       // the SDK drops it
	_ = json.Unmarshal(k.params, &more) // the SDK has already decoded them
	if more.Cursor == nil {
		more.Cursor = p.Meta["cursor"]
	}
	switch v := more.Cursor.(type) {
	case nil:
	case string:
		cursor = v
	case float64: // some clients convert a cursor of digits to a number
		cursor = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return nil, &errkind.Argument{Name: "cursor", Want: "a nextCursor of an earlier read"}
	}
	k.uri = p.URI
	c, err := o.res.ReadResource(ctx, uri, cursor)
	if err != nil {
		return nil, err
	}
	if c.URI == "" {
		c.URI = p.URI
	}
	res := &readResult{freshness: freshnessFor(revision), NextCursor: c.NextCursor, IsLast: c.IsLast,
		Contents: []textContents{{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Meta: c.Meta}}}
	res.Meta = c.MetaOfResult()
	return res, nil
}

// MetaOfResult returns the _meta of the result with these contents. It repeats the
// place in the text, because clients of typed SDKs see only _meta and the fields that
// they know.
func (c *Contents) MetaOfResult() map[string]any {
	meta := map[string]any{"isLast": c.IsLast}
	maps.Copy(meta, c.ResultMeta)
	if c.NextCursor != "" {
		meta["nextCursor"] = c.NextCursor
	}
	return meta
}

// cutCursor removes ?cursor= from a URI, for clients that can only send a URI.
// Other parts of the query are kept.
func cutCursor(uri string) (rest, cursor string) {
	u, err := url.Parse(uri)
	if err != nil || !u.Query().Has("cursor") {
		return uri, ""
	}
	q := u.Query()
	cursor = q.Get("cursor")
	q.Del("cursor")
	u.RawQuery = q.Encode()
	return u.String(), cursor
}
