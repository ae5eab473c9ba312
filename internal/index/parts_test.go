package index

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
)

func TestSearched(t *testing.T) {
	text := "one two three. four five\n\nsix seven"
	tests := []struct {
		chunk document.Chunk
		want  string
	}{
		{document.Chunk{Offset: 0, Length: 15}, "one two three. four five"},
		{document.Chunk{Offset: 0, Length: 26}, "one two three. four five\n\n"},
		{document.Chunk{Offset: 15, Length: 9}, "four five"},
		{document.Chunk{Offset: 26, Length: 9}, "six seven"},
	}
	for _, test := range tests {
		if got := analysis.Overlapped(text, test.chunk.Offset, test.chunk.Offset+test.chunk.Length); got != test.want {
			t.Errorf("searched(%+v) = %q, want %q", test.chunk, got, test.want)
		}
	}
}
