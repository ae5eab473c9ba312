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
		scale          fusion.Scale
		keepFirst      bool
		want           hits
	}{
		"by words":          {lexical, nil, 3, fusion.Scale{}, true, lexical},
		"both":              {lexical, dense, 3, fusion.Scale{}, false, hits{{3, 4 + 4*2.0/3}, {2, 6}, {1, 4 + 4*1.0/3}}},
		"below the depth":   {lexical, dense, 4, fusion.Scale{}, false, hits{{3, 6}, {2, 5}, {1, 4}}},
		"the first is kept": {lexical, dense, 4, fusion.Scale{}, true, hits{{1, 6}, {3, 6}, {2, 5}}},
		"by meaning": {nil, dense, 0, fusion.Scale{}, true,
			hits{{3, 0.7}, {2, 0.5}, {1, 0.3}}}, // without words, the best score is 2/3
		"the first is alone": {lexical[:1], dense, 1, fusion.Scale{}, true, hits{{1, 8}, {3, 8}, {2, 8}}},
		"words say much": {lexical, hits{{3, 0.9}, {1, 0.8}, {2, 0.3}}, 3, fusion.Scale{Full: 8}, false,
			hits{{1, 4 + 4*(1+2*5.0/6)/3}, {3, 4 + 4*2.0/3}, {2, 4 + 4*0.5/3}}},
		"words say little": {lexical, hits{{3, 0.9}, {1, 0.8}, {2, 0.3}}, 3, fusion.Scale{Full: 24}, false,
			hits{{3, 4 + 4*2.0/3}, {1, 4 + 4*(0.2+2*5.0/6)/3}, {2, 4 + 4*0.1/3}}},
		"no other has words": {lexical[:2], hits{{3, 0.9}, {1, 0.8}, {2, 0.3}}, 3,
			fusion.Scale{Full: 16, All: true}, false,
			hits{{1, 3 + 5*(0.5+2*5.0/6)/3}, {3, 3 + 5*2.0/3}, {2, 3 + 5*(6.0/16)/3}}},
	} {
		got := fusion.Rerank(tt.lexical, tt.dense, tt.depth, tt.scale, tt.keepFirst)
		near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
		if diff := cmp.Diff(tt.want, got, near); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
