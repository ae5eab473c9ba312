package federated_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/federated"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// member returns an index with the documents of one label.
func member(t *testing.T, label string, docs ...document.Document) federated.Member {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	var changes []document.Change
	for _, d := range docs {
		if d.Label == label {
			changes = append(changes, document.Change{Put: &d})
		}
	}
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return federated.Member{Labels: []string{label}, Sources: []string{label}, Service: scope.New(x, label)}
}

// Several services behave like one with the documents of all. Only the order of hits
// by relevance differs.
func TestContract(t *testing.T) {
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			labels := map[string]bool{}
			var members []federated.Member
			for _, d := range docs {
				if !labels[d.Label] {
					labels[d.Label] = true
					members = append(members, member(t, d.Label, docs...))
				}
			}
			if members == nil {
				members = append(members, member(t, "docs"))
			}
			return federated.New(federated.Options{Members: members, Timeout: time.Minute})
		},
	})
}

var _ = cmp.Diff
var _ = errors.Is
var _ = fmt.Sprint
var _ = strings.Cut
var _ = synctest.Test
var _ = errkind.Known
var _ = query.Parse
var _ context.Context
