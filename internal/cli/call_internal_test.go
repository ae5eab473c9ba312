package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

// An unknown tool is answered with the names of others, which are bounded and
// cannot control a terminal.
func TestUnknownTool(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("tool%02d", i))
	}
	for _, tt := range []struct {
		near, others []string
		want         string
	}{
		{nil, nil, "The server has no tools."},
		{nil, []string{"read\x1b[31m", "write"}, "The server has read[31m, write."},
		{[]string{"read"}, nil, "Did you mean read?"},
		{[]string{"read"}, []string{"write", "list"}, "Did you mean read? The server also has write, list."},
		{nil, many, "The server has tool00, tool01, tool02, tool03, tool04, tool05, tool06, tool07, tool08, tool09 and 20 others."},
		{nil, []string{strings.Repeat("x", 100)}, "The server has " + strings.Repeat("x", 63) + "…."},
	} {
		err := explainCall(&invoke.UnknownToolError{Server: "files", Tool: "nope", Near: tt.near, Tools: tt.others})
		if hint, ok := err.(*hintError); !ok || hint.hint != tt.want {
			t.Errorf("near %q, others %q: %+v, want the hint %q", tt.near, tt.others, err, tt.want)
		}
	}
}
