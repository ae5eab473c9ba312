package fess

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
)

// recordedPage returns a recorded answer with n hits: those that were recorded,
// repeated.
func recordedPage(t testing.TB, n int) *answer {
	t.Helper()
	for _, r := range fesstest.Recordings(t, filepath.Join("testdata", "recordings", "v1.jsonl.gz")) {
		if r.Name != "search-num-101" {
			continue
		}
		var page map[string]any
		if err := json.Unmarshal([]byte(r.Answer), &page); err != nil {
			t.Fatal(err)
		}
		rows := page["data"].([]any)
		for len(rows) < n {
			rows = append(rows, rows...)
		}
		page["data"] = rows[:n]
		body, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		return &answer{path: r.Path, body: body}
	}
	t.Fatal("no recording search-num-101")
	return nil
}

// BenchmarkDecode measures how long a page of hits takes from JSON to hits.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := recordedPage(b, n)
			b.SetBytes(int64(len(a.body)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := decodePage(a)
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range p.Data {
					hitOf(r)
				}
			}
		})
	}
}
