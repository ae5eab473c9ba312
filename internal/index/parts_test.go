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

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, word string
		want          bool
	}{
		{"a*z", "abcz", true}, {"a*z", "az", true}, {"a*z", "abcy", false}, {"*b*", "abc", true}, {"?b?", "abc",
			true}, {"?b?", "ab", false},
		{"a*b*c", "aXbXbYc", true}, {"a*b*c", "aXbXbY", false}, {`a\*b`, "a*b", true}, {`a\*b`, "axb", false}, {"検*",
			"検索", true}, {"*", "", true},
		{"", "", true}, {"", "a", false}, {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
	}
	for _, test := range tests {
		g, err := newGlob(test.pattern)
		if err != nil {
			t.Fatalf("newGlob(%q) = %v", test.pattern, err)
		}
		if got := g.match(test.word); got != test.want {
			t.Errorf("%q matches %q: %v, want %v", test.pattern, test.word, got, test.want)
		}
	}
}
