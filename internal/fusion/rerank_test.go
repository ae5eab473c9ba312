package fusion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/fusion"
)

// TestRerank checks the order and the scale of the scores.
func TestRerank(t *testing.T) {
	type hits = []fusion.Hit[int]
	lexical := hits{{1, 8}, {2, 6}, {3, 4}}
	dense := hits{{3, 0.9}, {2, 0.6}, {1, 0.3}}
	for name, tt := range map[string]struct {
		lexical, dense hits
		depth          int
		keepFirst      bool
		want           hits
	}{
		"by words":          {lexical, nil, 3, true, lexical},
		"both":              {lexical, dense, 3, false, hits{{3, 4 + 4*2.0/3}, {2, 6}, {1, 4 + 4*1.0/3}}},
		"below the depth":   {lexical, dense, 4, false, hits{{3, 6}, {2, 5}, {1, 4}}},
		"the first is kept": {lexical, dense, 4, true, hits{{1, 6}, {3, 6}, {2, 5}}},
		"by meaning": {nil, dense, 0, true,
			hits{{3, 0.7}, {2, 0.5}, {1, 0.3}}}, // without words, the best score is 2/3
		"the first is alone": {lexical[:1], dense, 1, true, hits{{1, 8}, {3, 8}, {2, 8}}},
	} {
		got := fusion.Rerank(tt.lexical, tt.dense, tt.depth, tt.keepFirst)
		near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
		if diff := cmp.Diff(tt.want, got, near); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
