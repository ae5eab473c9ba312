package index_test

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

func TestContract(t *testing.T) {
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			x := open(t, t.TempDir())
			put(t, x, docs...)
			return x
		},
	})
}
