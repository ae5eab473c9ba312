package query_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

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
		from, beyond, err := query.DateSpan(test.in, now)
		if got := []string{from.Format(time.RFC3339Nano), beyond.Format(time.RFC3339Nano)}; err != nil ||
			!cmp.Equal(got, []string{test.from, test.beyond}) {
			t.Errorf("DateSpan(%q) = %v, %v, want %s to %s", test.in, got, err, test.from, test.beyond)
		}
	}
	for _, in := range []string{"", "yesterday", "2024-13", "2024-02-30", "now/", "now+", "now+1", "now+1q", "now/2d",
		"nowd", "2024||", "2024||x",
		"2024+1d", "now+999999999999999999999d", "now*2d", "99999999999999999999"} {
		// A date followed by || alone is valid.
		if from, beyond, err := query.DateSpan(in, now); err == nil && in != "2024||" {
			t.Errorf("DateSpan(%q) = %v to %v, want an error", in, from, beyond)
		}
	}
}

func FuzzDateSpan(f *testing.F) {
	for _, s := range []string{"now/d-1d", "2024-02||+1M", "1709164800000", "2024-02-29T10:20:30.5+09:00"} {
		f.Add(s)
	}
	now := time.Date(2025, 3, 31, 15, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		from, beyond, err := query.DateSpan(s, now)
		if err == nil && len(s) < 20 && !beyond.After(from) {
			t.Errorf("DateSpan(%q) = %v to %v, want a span", s, from, beyond)
		}
	})
}
