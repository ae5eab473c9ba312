package index_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// threadTime returns the seconds of the processor that this thread has used.
func threadTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	const thread = 1 // RUSAGE_THREAD
	if err := syscall.Getrusage(thread, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkOpen measures opening the index in the folder BENCH_DATA, and its first
// search: the time of the processor without that of the work in the background.
func BenchmarkOpen(b *testing.B) {
	dir := benchData(b)
	for _, q := range []struct {
		name string
		q    search.Query
	}{
		{"word", search.Query{Text: query.MustParse("configuration"), Num: 10}},
		{"question", search.Query{Text: query.MustParse("how do I change the default configuration of the server"),
			Num: 10}},
		{"newest", search.Query{Num: 10}},
		{"newest by field", search.Query{Num: 10, Text: query.MustParse("filetype:html")}},
	} {
		b.Run(q.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var opening, searching float64
			n := 0
			for b.Loop() {
				begin := threadTime(b)
				x, err := index.Open(b.Context(), index.Options{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				opened := threadTime(b)
				if _, err := x.Search(b.Context(), q.q); err != nil {
					b.Fatal(err)
				}
				opening += opened - begin
				searching += threadTime(b) - opened
				n++
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1000*opening/float64(n), "open-ms")
			b.ReportMetric(1000*searching/float64(n), "search-ms")
		})
	}
}

// BenchmarkWhileIndexing measures searches in a copy of the index in the folder
// BENCH_DATA: while nothing else happens, while batches of documents are stored
// without a pause, and after each change, which is a batch or a note that replaces
// another. It reports quantiles of the time and of the time of the processor
// without that of other threads.
func BenchmarkWhileIndexing(b *testing.B) {
	dir := b.TempDir()
	if err := os.CopyFS(dir, os.DirFS(benchData(b))); err != nil {
		b.Fatal(err)
	}
	x := open(b, dir)
	labels, err := x.Labels(b.Context())
	if err != nil || len(labels) == 0 {
		b.Fatalf("Labels() = %v, %v, want some", labels, err)
	}
	label, common := labels[0].Value, word(1)
	if os.Getenv("BENCH_DATA") != "" {
		common = "configuration"
	}
	g, n := newGenerator(), 1<<20 // after the documents of the folder
	next := func(replaced bool) document.Document {
		d := g.document(n, 10)
		if n++; replaced {
			d = doc("", fmt.Sprintf("note-%d.txt", n%50), d.Title, d.Text)
		}
		d.Label = label
		return d
	}
	batch := func() {
		var docs []document.Document
		for range 20 {
			docs = append(docs, next(false))
		}
		put(b, x, docs...)
	}
	for _, q := range []struct {
		name string
		q    search.Query
	}{
		{"word", search.Query{Text: query.MustParse(common), Num: 10}},
		{"question", search.Query{Text: query.MustParse("how do I change the default " + common), Num: 10,
			Labels: []string{label}}},
		{"newest", search.Query{Num: 10, Langs: []string{"en"}}},
		{"distinct", search.Query{Text: query.MustParse(common), Num: 10, Distinct: true}},
	} {
		for _, w := range []struct {
			name       string
			meanwhile  func()
			beforeEach func()
		}{{"idle", nil, nil}, {"during batches", batch, nil}, {"after a batch", nil, batch}, {"after a note", nil,
			func() { put(b, x, next(true)) }}} {
			b.Run(q.name+"/"+w.name, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				stop := make(chan struct{})
				var writing sync.WaitGroup
				if w.meanwhile != nil {
					writing.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
								w.meanwhile()
							}
						}
					})
				}
				var times, used []float64
				for b.Loop() {
					if w.beforeEach != nil {
						w.beforeEach()
					}
					begin, cpu := time.Now(), threadTime(b)
					if _, err := x.Search(b.Context(), q.q); err != nil {
						b.Fatal(err)
					}
					used = append(used, 1000*(threadTime(b)-cpu))
					times = append(times, 1000*time.Since(begin).Seconds())
				}
				close(stop)
				writing.Wait()
				slices.Sort(times)
				slices.Sort(used)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(times[len(times)/2], "p50-ms")
				b.ReportMetric(used[len(used)/2], "CPU-p50-ms")
				b.ReportMetric(used[len(used)*95/100], "CPU-p95-ms")
			})
		}
	}
}
