package mcpserver

import (
	"context"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverInfo is mcp.Implementation with the domain beside it.
type serverInfo struct {
	*mcp.Implementation
	Domain *Domain `json:"domain,omitempty"`
}

// initializeResult is the SDK's with our serverInfo in the place of its own.
type initializeResult struct {
	*mcp.InitializeResult
	ServerInfo serverInfo `json:"serverInfo"`
}

// identify puts the capabilities and the domain where clients look for them:
// in the answer to initialize, in that to server/discover, and in the _meta of
// every result of 2026-07-28.
func (s *Server) identify(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil || res == nil {
			return res, err
		}
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Capabilities = s.capabilities()
			return &initializeResult{r, s.serverInfo()}, nil
		case *mcp.DiscoverResult:
			r.Capabilities = s.capabilities()
			r.CacheScope = "private"
		}
		if k := callOf(req); k != nil && (method == methodDiscover || k.revision >= statelessRevision) {
			s.sign(res, statelessRevision)
		}
		return res, nil
	}
}

func (s *Server) serverInfo() serverInfo {
	return serverInfo{Implementation: s.info, Domain: s.opts.Domain}
}

// sign puts the server's identity into the _meta of a result, where the revision
// of the request wants it there.
func (s *Server) sign(res mcp.Result, revision string) {
	if revision < statelessRevision {
		return
	}
	meta := maps.Clone(res.GetMeta())
	if meta == nil {
		meta = map[string]any{}
	}
	meta[mcp.MetaKeyServerInfo] = s.serverInfo()
	res.SetMeta(meta)
}

// freshness is what 2026-07-28 wants to know about every list and read. Older
// revisions do not have the fields, so they leave them out.
type freshness struct {
	ResultType string `json:"resultType,omitempty"`
	TTLMs      *int   `json:"ttlMs,omitempty"`
	CacheScope string `json:"cacheScope,omitempty"`
}

// freshnessFor says that a result must not be kept or shared: documents and
// indexes change at any time and tokens may differ.
func freshnessFor(revision string) freshness {
	if revision < statelessRevision {
		return freshness{}
	}
	return freshness{ResultType: "complete", TTLMs: new(int), CacheScope: "private"}
}
