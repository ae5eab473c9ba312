package mcpserver

import (
	"context"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverInfo is mcp.Implementation with the domain.
type serverInfo struct {
	*mcp.Implementation
	Domain *Domain `json:"domain,omitempty"`
}

// initializeResult is the SDK's result with our serverInfo.
type initializeResult struct {
	*mcp.InitializeResult
	ServerInfo serverInfo `json:"serverInfo"`
}

// identify adds the capabilities and the domain to the results of initialize
// and server/discover, and to the _meta of every result of 2026-07-28.
func (s *Server) identify(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil || res == nil {
			return res, err
		}
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Capabilities = s.capabilities()
			r.Instructions = s.offer.Load().instructions
			return &initializeResult{r, s.serverInfo()}, nil
		case *mcp.DiscoverResult:
			r.Capabilities = s.capabilities()
			r.Instructions = s.offer.Load().instructions
			r.CacheScope = "private"
		}
		if k := callOf(req); k != nil && (method == methodDiscover || k.revision >= statelessRevision) {
			s.sign(res, statelessRevision)
		}
		return res, nil
	}
}

func (s *Server) serverInfo() serverInfo {
	offer := s.offer.Load()
	return serverInfo{Implementation: offer.info, Domain: offer.domain}
}

// sign adds the server's identity to the _meta of a result, if the revision of
// the request requires it.
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

// freshness contains fields that 2026-07-28 requires in every list and read.
// Older revisions do not have them, so they are omitted.
type freshness struct {
	ResultType string `json:"resultType,omitempty"`
	TTLMs      *int   `json:"ttlMs,omitempty"`
	CacheScope string `json:"cacheScope,omitempty"`
}

// freshnessFor declares that a result must not be cached or shared: documents
// and indexes change at any time, and tokens may differ.
func freshnessFor(revision string) freshness {
	if revision < statelessRevision {
		return freshness{}
	}
	return freshness{ResultType: "complete", TTLMs: new(int), CacheScope: "private"}
}
