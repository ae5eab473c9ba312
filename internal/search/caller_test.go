package search_test

import (
	"context"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/search"
)

func TestToken(t *testing.T) {
	ctx := context.Background()
	if got := search.TokenFrom(ctx); got != "" {
		t.Errorf("TokenFrom(empty context) = %q, want none", got)
	}
	inner := search.WithToken(search.WithToken(ctx, "one"), "two")
	if got := search.TokenFrom(inner); got != "two" {
		t.Errorf("TokenFrom() = %q, want two", got)
	}
}
