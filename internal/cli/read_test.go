package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestReadLongDocuments reads a document, and a section of it, that are longer
// than one result of the tool.
func TestReadLongDocuments(t *testing.T) {
	var long strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&long, "Line %d of the längste section.\n", i)
	}
	section := "# Long\n\n" + long.String() + "\n## Below\n\nThe end.\n"
	text := "# First\n\nThe beginning.\n\n" + section + "\n# Last\n\n" + long.String()
	data, docs := indexFiles(t, map[string]string{"a.md": text})
	for _, tt := range []struct{ args, want string }{
		{"a.md", text},
		{docs + "/a.md", text},
		{"a.md --section Long", section + "\n"},
		{"a.md --section Below", "## Below\n\nThe end.\n\n"},
		{fmt.Sprintf("a.md --from %d", len(text)-len(long.String())), long.String()},
	} {
		got, stderr, status := run(t, data, append([]string{"read"}, strings.Fields(tt.args)...)...)
		if status != 0 || got != tt.want {
			t.Errorf("read %s = %d with %d bytes, want %d; stderr %q; it ends with %q", tt.args, status, len(got),
				len(tt.want), stderr, got[max(0, len(got)-40):])
		}
	}
}
