package console

import (
	"context"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestSimilar(t *testing.T) {
	o := Options{Similar: func(_ context.Context, id string) ([]Similar, error) {
		switch id {
		case "a":
			return []Similar{{ID: "b", Title: "<b>", Path: "b.md", Source: "docs", Score: 0.5}}, nil
		case "none":
			return nil, nil
		}
		return nil, errkind.NotFound
	}}
	for query, want := range map[string]struct {
		status int
		body   string
	}{
		"id=a":    {200, `[{"id":"b","title":"\u003cb\u003e","path":"b.md","source":"docs","score":0.5}]` + "\n"},
		"id=none": {200, "[]\n"},
		"id=x":    {404, "not found\n"},
		"":        {400, "argument \"id\": got \"\", want 1 to 1000 bytes of UTF-8\n"},
	} {
		if status, body := get(t, o, "/console/similar?"+query); status != want.status || body != want.body {
			t.Errorf("%q = %d %s, want %d %s", query, status, body, want.status, want.body)
		}
	}
}
