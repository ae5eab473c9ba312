package console

import (
	"context"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestPages(t *testing.T) {
	o := Options{Pages: func(_ context.Context, id string) ([]Page, error) {
		switch id {
		case "a":
			return []Page{{0, "iv"}, {12, "1"}}, nil
		case "none":
			return nil, nil
		}
		return nil, errkind.NotFound
	}}
	for query, want := range map[string]struct {
		status int
		body   string
	}{
		"id=a":    {200, `[{"offset":0,"label":"iv"},{"offset":12,"label":"1"}]` + "\n"},
		"id=none": {200, "[]\n"},
		"id=x":    {404, "not found\n"},
		"":        {400, "argument \"id\": got \"\", want 1 to 1000 bytes of UTF-8\n"},
	} {
		if status, body := get(t, o, "/console/pages?"+query); status != want.status || body != want.body {
			t.Errorf("%q = %d %s, want %d %s", query, status, body, want.status, want.body)
		}
	}
}
