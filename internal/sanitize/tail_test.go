package sanitize_test

import (
	"io"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"ab"}, "ab"},
		{[]string{"ab", "cd"}, "abcd"},
		{[]string{"ab", "cde"}, "bcde"},
		{[]string{"ab", "cdefgh", "i"}, "fghi"},
	} {
		tail := &sanitize.Tail{Max: 4}
		for _, w := range tt.writes {
			if n, err := io.WriteString(tail, w); n != len(w) || err != nil {
				t.Errorf("Write(%q) = %d, %v", w, n, err)
			}
		}
		if got := tail.String(); got != tt.want {
			t.Errorf("after %q: %q, want %q", tt.writes, got, tt.want)
		}
	}
}
