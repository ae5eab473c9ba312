package fusion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFuse(t *testing.T) {
	type hits = []Hit[string]
	third := 1.0 / 3
	for _, c := range []struct {
		name           string
		lexical, dense hits
		weight         float64
		scale          Scale
		want           hits
	}{
		{"nothing", nil, nil, 2, Scale{}, hits{}},
		{"both", hits{{"a", 10}, {"b", 6}, {"c", 2}}, hits{{"c", .9}, {"a", .5}, {"b", .1}}, 2, Scale{},
			hits{{"a", 2 * third}, {"c", 2 * third}, {"b", .5 * third}}},
		{"a document in one list", hits{{"a", 10}, {"b", 2}}, hits{{"c", .9}, {"b", .1}}, 2, Scale{},
			hits{{"c", 2 * third}, {"a", third}, {"b", 0}}},
		{"weight 0 leaves dense hits out", hits{{"b", 2}, {"a", 3}}, hits{{"c", .9}, {"b", .1}}, 0, Scale{},
			hits{{"a", 1}, {"b", 0}}},
		{"negative weight", hits{{"a", 3}}, hits{{"c", .9}}, -1, Scale{}, hits{{"a", 1}}},
		{"only dense", nil, hits{{"c", -.5}, {"b", .1}}, 1, Scale{}, hits{{"b", .5}, {"c", 0}}},
		{"one hit each", hits{{"a", 3}}, hits{{"a", -3}}, 2, Scale{}, hits{{"a", 1}}},
		{"equal scores", hits{{"c", 3}, {"b", 3}, {"a", 3}}, nil, 1, Scale{}, hits{{"a", .5}, {"b", .5}, {"c", .5}}},
		{"twice in a list", hits{{"a", 3}, {"b", 4}, {"a", 5}, {"c", 1}}, nil, 0, Scale{}, hits{{"a", 1}, {"b", .75}, {"c", 0}}},
		{"not finite", hits{{"a", math.NaN()}, {"b", math.Inf(1)}, {"c", 1}}, hits{{"c", math.Inf(-1)}, {"d", 1}}, 1, Scale{},
			hits{{"c", .5}, {"d", .5}}},
		{"lexical scores that say little", hits{{"a", 3}, {"b", 2}, {"c", 1}}, hits{{"b", .8}, {"a", .6}, {"c", .4}}, 1,
			Scale{Full: 11}, hits{{"b", .55}, {"a", .35}, {"c", 0}}},
		{"lexical scores that say more", hits{{"a", 3}, {"b", 2}, {"c", 1}}, hits{{"b", .8}, {"a", .6}, {"c", .4}}, 1,
			Scale{Full: 2}, hits{{"a", .75}, {"b", .75}, {"c", 0}}},
		{"all lexical scores", hits{{"a", 3}, {"b", 2}}, hits{{"b", .8}, {"a", .6}, {"c", .4}}, 1,
			Scale{Full: 4, All: true}, hits{{"b", .75}, {"a", .625}, {"c", 0}}},
		{"one lexical score", hits{{"a", 3}}, hits{{"b", .8}, {"a", .6}, {"c", .4}}, 1,
			Scale{Full: 4}, hits{{"a", .625}, {"b", .5}, {"c", 0}}},
		{"huge", hits{{"a", math.MaxFloat64}, {"b", -math.MaxFloat64}}, nil, 0, Scale{}, hits{{"a", 1}, {"b", 0}}},
	} {
		got := Fuse(c.lexical, c.dense, c.weight, c.scale)
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
		if diff := cmp.Diff(c.want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestFuseProperties checks what holds for any lists: the order of the arguments
// does not matter, scores are in 0..1 and do not increase, and each document is
// there once.
func TestFuseProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := func() []Hit[int] {
			var hits []Hit[int]
			for _, id := range rnd.Perm(40)[:rnd.IntN(41)] {
				hits = append(hits, Hit[int]{id, float64(rnd.IntN(12) - 4)})
			}
			return hits
		}
		lexical, dense := list(), list()
		weight := float64(1 + rnd.IntN(3))
		scale := Scale{float64(rnd.IntN(3) * 6), rnd.IntN(2) == 0}
		got := Fuse(lexical, dense, weight, scale)
		rnd.Shuffle(len(lexical), func(i, j int) { lexical[i], lexical[j] = lexical[j], lexical[i] })
		rnd.Shuffle(len(dense), func(i, j int) { dense[i], dense[j] = dense[j], dense[i] })
		if diff := cmp.Diff(got, Fuse(lexical, dense, weight, scale)); diff != "" {
			t.Fatalf("the order of the lists matters:\n%s", diff)
		}
		ids := map[int]bool{}
		for _, h := range slices.Concat(lexical, dense) {
			ids[h.ID] = true
		}
		seen := map[int]bool{}
		for i, h := range got {
			if h.Score < 0 || h.Score > 1 || i > 0 && h.Score > got[i-1].Score {
				t.Fatalf("score %v at %d of %v", h.Score, i, got)
			}
			seen[h.ID] = true
		}
		if len(got) != len(ids) || len(seen) != len(ids) {
			t.Fatalf("%d hits of %d documents, want %d", len(got), len(seen), len(ids))
		}
	}
}
