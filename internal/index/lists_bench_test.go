//go:build unix

package index_test

import (
	"os"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// benchData returns the data folder BENCH_DATA, or else a new one with 2,000
// generated documents.
func benchData(b *testing.B) (dir string) {
	b.Helper()
	if dir, ok := os.LookupEnv("BENCH_DATA"); ok {
		return dir
	}
	dir = b.TempDir()
	x, err := index.Open(b.Context(), index.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	newGenerator().fill(b, x, 2000)
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkLists measures lists of many documents: sorted by fields, restricted by
// conditions on fields, and counted by fields.
func BenchmarkLists(b *testing.B) {
	dir := benchData(b)
	x := open(b, dir)
	labels, err := x.Labels(b.Context())
	if err != nil || len(labels) == 0 {
		b.Fatalf("Labels() = %v, %v, want some", labels, err)
	}
	label, common := labels[0].Value, word(1)
	if os.Getenv("BENCH_DATA") != "" {
		common = "this"
	}
	by := func(field string, desc bool) []search.SortKey { return []search.SortKey{{Field: field, Desc: desc}} }
	fields := &search.Facets{Fields: []string{"label", "host", "filetype", "mimetype", "lang", "filename"}}
	type list struct {
		name string
		q    search.Query
	}
	var lists []list
	for _, text := range []string{"*", "label:" + label, common, "filetype:html"} {
		add := func(name string, q search.Query) {
			q.Text, q.Num = query.MustParse(text), 20
			lists = append(lists, list{"all labels/" + text + " " + name, q})
			q.Labels = []string{label}
			lists = append(lists, list{"a label/" + text + " " + name, q})
		}
		add("newest", search.Query{Sort: by("timestamp", true)})
		add("newest, page 50", search.Query{Sort: by("timestamp", true), Start: 1000})
		add("oldest", search.Query{Sort: by("timestamp", false)})
		add("longest", search.Query{Sort: by("content_length", true)})
		add("by name", search.Query{Sort: by("filename", false)})
		add("in a language", search.Query{Sort: by("timestamp", true), Langs: []string{"en"}})
		add("facets", search.Query{Facets: &search.Facets{Fields: []string{"filetype"}}})
		add("all facets", search.Query{Facets: fields})
		add("by relevance", search.Query{})
	}
	for _, l := range lists {
		b.Run(l.name, func(b *testing.B) {
			total := 0
			begin, n := cpuTime(b), 0
			for b.Loop() {
				p, err := x.Search(b.Context(), l.q)
				if err != nil {
					b.Fatal(err)
				}
				total, n = p.Total, n+1
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1e6*(cpuTime(b)-begin)/float64(n), "CPU-µs/op")
			b.ReportMetric(float64(total), "hits")
		})
	}
}
