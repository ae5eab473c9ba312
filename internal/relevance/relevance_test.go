package relevance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/relevance"
)

// TestSpread checks that a document has at most three chunks before those of
// others, and that documents without a good chunk follow.
func TestSpread(t *testing.T) {
	type chunk struct {
		Document string
		Score    float64
	}
	best := []chunk{{"a", 9}, {"a", 8}, {"a", 7}, {"a", 6}, {"b", 5}}
	others := []chunk{{Document: "a"}, {Document: "c"}}
	for n, want := range map[int][]chunk{
		0: {},
		2: {{"a", 9}, {"a", 8}},
		4: {{"a", 9}, {"a", 8}, {"a", 7}, {"b", 5}},
		5: {{"a", 9}, {"a", 8}, {"a", 7}, {"b", 5}, {"c", 0}},
		9: {{"a", 9}, {"a", 8}, {"a", 7}, {"a", 6}, {"b", 5}, {"c", 0}},
	} {
		got := relevance.Spread(best, others, n, func(c chunk) string { return c.Document }, func(c chunk) float64 { return c.Score })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d chunks (-want +got)\n%s", n, diff)
		}
	}
}
