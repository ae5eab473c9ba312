package fess_test

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// open returns a client of a fake server with docs.
func open(t *testing.T, docs []document.Document, o fesstest.Options) (*fess.Client, *fesstest.Server) {
	t.Helper()
	server := fesstest.New(t, docs, o)
	c, err := fess.New(fess.Options{BaseURL: server.URL, AccessToken: o.Token})
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(c.Close)
	return c, server
}

func TestContract(t *testing.T) {
	servers := map[string]fesstest.Options{
		"with texts":                 {SendContent: true},
		"without texts":              {},
		"below a path, with a token": {ContextPath: "/fess", Token: "s3cret"},
		"with small pages":           {MaxPageSize: 15},
		"API v2":                     {API: "v2", ContextPath: "/fess", Token: "s3cret"},
		"API v2 with texts":          {API: "v2", SendContent: true},
		"both versions":              {API: "both"},
	}
	for name, o := range servers {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Options{
				Open: func(t *testing.T, docs []document.Document) search.Service {
					c, _ := open(t, docs, o)
					return c
				},
				NoText:     !o.SendContent,
				NoTags:     true,
				NoPassages: true,
			})
		})
	}
}
