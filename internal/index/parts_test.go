package index

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
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
		if got := searched(text, test.chunk); got != test.want {
			t.Errorf("searched(%+v) = %q, want %q", test.chunk, got, test.want)
		}
	}
}

func TestDateSpan(t *testing.T) {
	now := time.Date(2025, 3, 31, 15, 4, 5, 678_900_000, time.UTC)
	tests := []struct{ in, from, beyond string }{
		{"2024", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"2024-02-29T10", "2024-02-29T10:00:00Z", "2024-02-29T11:00:00Z"},
		{"2024-02-29T10:20", "2024-02-29T10:20:00Z", "2024-02-29T10:21:00Z"},
		{"2024-02-29T10:20:30Z", "2024-02-29T10:20:30Z", "2024-02-29T10:20:31Z"},
		{"2024-02-29T10:20:30.500Z", "2024-02-29T10:20:30.5Z", "2024-02-29T10:20:30.501Z"},
		{"2024-02-29T10:20:30+09:00", "2024-02-29T01:20:30Z", "2024-02-29T01:20:31Z"},
		{"1709164800000", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.001Z"},
		{"now", "2025-03-31T15:04:05.678Z", "2025-03-31T15:04:05.679Z"},
		{"now/d", "2025-03-31T00:00:00Z", "2025-04-01T00:00:00Z"},
		{"now/d-1d", "2025-03-30T00:00:00Z", "2025-03-31T00:00:00Z"},
		{"now-1d/d", "2025-03-30T00:00:00Z", "2025-03-31T00:00:00Z"},
		{"now/w", "2025-03-31T00:00:00Z", "2025-04-07T00:00:00Z"},
		{"now-1w/w", "2025-03-24T00:00:00Z", "2025-03-31T00:00:00Z"},
		{"now+2h/h", "2025-03-31T17:00:00Z", "2025-03-31T18:00:00Z"},
		{"now/M", "2025-03-01T00:00:00Z", "2025-04-01T00:00:00Z"},
		{"now-1y/y", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"2024-02-29||+1M/M", "2024-03-01T00:00:00Z", "2024-04-01T00:00:00Z"},
	}
	for _, test := range tests {
		from, beyond, err := dateSpan(test.in, now)
		if got := []string{from.Format(time.RFC3339Nano), beyond.Format(time.RFC3339Nano)}; err != nil || !cmp.Equal(got, []string{test.from, test.beyond}) {
			t.Errorf("dateSpan(%q) = %v, %v, want %s to %s", test.in, got, err, test.from, test.beyond)
		}
	}
	for _, in := range []string{"", "yesterday", "2024-13", "2024-02-30", "now/", "now+", "now+1", "now+1q", "now/2d", "nowd", "2024||", "2024||x",
		"2024+1d", "now+999999999999999999999d", "now*2d", "99999999999999999999"} {
		// A date followed by || alone is valid.
		if from, beyond, err := dateSpan(in, now); err == nil && in != "2024||" {
			t.Errorf("dateSpan(%q) = %v to %v, want an error", in, from, beyond)
		}
	}
}

func FuzzDateSpan(f *testing.F) {
	for _, s := range []string{"now/d-1d", "2024-02||+1M", "1709164800000", "2024-02-29T10:20:30.5+09:00"} {
		f.Add(s)
	}
	now := time.Date(2025, 3, 31, 15, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		from, beyond, err := dateSpan(s, now)
		if err == nil && len(s) < 20 && !beyond.After(from) {
			t.Errorf("dateSpan(%q) = %v to %v, want a span", s, from, beyond)
		}
	})
}

// FuzzSets compares the set operations with the same operations on maps.
func FuzzSets(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{2, 3, 4})
	f.Add([]byte{9}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})
	f.Add([]byte{}, []byte{7})
	set := func(b []byte) (docSet, map[int64]bool) {
		m := map[int64]bool{}
		for _, v := range b {
			m[int64(v)] = true
		}
		s := docSet{}
		for v := range m {
			s = append(s, v)
		}
		slices.Sort(s)
		return s, m
	}
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, inA := set(x)
		b, inB := set(y)
		want := map[string]docSet{"intersect": {}, "union": {}, "without": {}}
		for v := range int64(256) {
			if inA[v] && inB[v] {
				want["intersect"] = append(want["intersect"], v)
			}
			if inA[v] || inB[v] {
				want["union"] = append(want["union"], v)
			}
			if inA[v] && !inB[v] {
				want["without"] = append(want["without"], v)
			}
			if a.contains(v) != inA[v] {
				t.Errorf("%v.contains(%d) = %v, want %v", a, v, a.contains(v), inA[v])
			}
		}
		got := map[string]docSet{"intersect": intersect(a, b), "union": union(a, b), "without": without(a, b)}
		if !cmp.Equal(got, want) {
			t.Errorf("%v and %v: (-want +got)\n%s", a, b, cmp.Diff(want, got))
		}
	})
}

func TestSetCache(t *testing.T) {
	var c setCache
	if _, ok := c.get("1", "a"); ok {
		t.Error("get in an empty cache found a set")
	}
	c.put("1", "a", posting{docs: docSet{1}, chunks: 2})
	if p, ok := c.get("1", "a"); !ok || p.chunks != 2 {
		t.Errorf("get(1, a) = %v, %v, want the set that was put", p, ok)
	}
	if _, ok := c.get("2", "a"); ok {
		t.Error("get found a set of another generation")
	}
	c.put("2", "b", posting{})
	if _, ok := c.get("2", "a"); ok {
		t.Error("get found a set of an older generation")
	}
	big := make(docSet, maxCached/4)
	for _, key := range []string{"w", "x", "y", "z"} {
		c.put("2", key, posting{docs: big})
	}
	if _, ok := c.get("2", "b"); ok {
		t.Error("the least recently used set is still cached")
	}
	if _, ok := c.get("2", "z"); !ok || c.size > maxCached {
		t.Errorf("the cache holds %d numbers, want at most %d, including the last set", c.size, maxCached)
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b  string
		limit int
		want  int
	}{
		{"walrus", "walrus", 2, 0}, {"walrus", "wallrus", 2, 1}, {"walrus", "walus", 2, 1}, {"walrus", "wolrus", 2, 1},
		{"walrus", "awlrus", 2, 1}, {"walrus", "awlurs", 2, 2}, {"walrus", "badger", 2, 3}, {"検索", "検証", 1, 1}, {"", "ab", 2, 2}, {"ab", "", 2, 2},
	}
	for _, test := range tests {
		if got := distance([]rune(test.a), []byte(test.b), test.limit); got != test.want {
			t.Errorf("distance(%q, %q, %d) = %d, want %d", test.a, test.b, test.limit, got, test.want)
		}
	}
}
