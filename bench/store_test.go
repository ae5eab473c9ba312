package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/embed/bert"
	"knowhow/internal/embed/minilm"
	"knowhow/internal/index"
	"knowhow/internal/ingest"
	"knowhow/internal/opensearch"
	querytext "knowhow/internal/query"
	service "knowhow/internal/search"
)

// A store is what the benchmarks of stores compare.
type store interface {
	service.Service
	Apply(ctx context.Context, changes []document.Change) error
	EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error)
}

// stores returns an empty embedded store and an empty one in the OpenSearch
// server at KNOWHOW_TEST_OPENSEARCH.
func stores(b *testing.B, e embed.Embedder) map[string]store {
	b.Helper()
	server := os.Getenv("KNOWHOW_TEST_OPENSEARCH")
	if server == "" {
		b.Skip("KNOWHOW_TEST_OPENSEARCH is not set: run .ci/real-opensearch go test ./bench -bench Store")
	}
	x, err := index.Open(b.Context(), index.Options{Dir: b.TempDir(), Embedder: e, EmbedTime: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	s, err := opensearch.New(opensearch.Options{Address: "opensearch+" + server + "/bench-" + strings.ToLower(rand.Text()[:10]), Embedder: e, EmbedTime: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return map[string]store{"embedded": x, "opensearch": s}
}

// fillStore adds documents in batches, and computes their vectors.
func fillStore(b *testing.B, s store, e embed.Embedder, docs []document.Document) {
	b.Helper()
	for part := range slices.Chunk(docs, 100) {
		var changes []document.Change
		for i := range part {
			changes = append(changes, document.Change{Put: &part[i]})
		}
		if err := s.Apply(b.Context(), changes); err != nil {
			b.Fatal(err)
		}
	}
	for e != nil {
		n, err := s.EmbedNext(b.Context(), e, nil, 64)
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// BenchmarkStoreQuality reports nDCG@10 on the Cranfield collection for both
// stores, by words and with the built-in model.
func BenchmarkStoreQuality(b *testing.B) {
	c := cranfield(b)
	var docs []document.Document
	files, err := filepath.Glob(filepath.Join(c.source, "*.md"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		name := filepath.Base(file)
		d, err := ingest.Make(b.Context(), data, document.Document{ID: ingest.DocID("cranfield", name), Label: "cranfield", Path: name})
		if err != nil {
			b.Fatal(err)
		}
		docs = append(docs, *d)
	}
	model := minilm.New(bert.Options{MaxTokens: 128, Threads: runtime.NumCPU()})
	for name, e := range map[string]embed.Embedder{"words": nil, "meaning": model} {
		for kind, s := range stores(b, e) {
			b.Run(name+"-"+kind, func(b *testing.B) {
				start := time.Now()
				fillStore(b, s, e, docs)
				b.ReportMetric(time.Since(start).Seconds(), "fill-s")
				ndcg := 0.0
				var took []time.Duration
				for i, q := range c.queries {
					read, err := querytext.Read(q)
					if err != nil {
						b.Fatal(err)
					}
					begin := time.Now()
					p, err := service.Relax(s).Search(b.Context(), service.Query{Text: read.Text, Typed: q, Num: 100, Distinct: true})
					if err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begin))
					var hits []int
					for _, h := range p.Hits {
						n, err := strconv.Atoi(strings.TrimSuffix(h.Filename, ".md"))
						if err != nil {
							b.Fatal(err)
						}
						hits = append(hits, n)
					}
					n, _, _ := measures(hits, c.grades[i])
					ndcg += n
				}
				slices.Sort(took)
				b.ReportMetric(ndcg/float64(len(c.queries)), "nDCG@10")
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
			})
		}
	}
}

// BenchmarkStoreScale reports, for both stores and STORE_DOCUMENTS documents of
// the generated corpus (1,000 by default), how fast they are added, the size on
// disk for each chunk, and the time of searches by words for the sentences of
// the documents.
func BenchmarkStoreScale(b *testing.B) {
	c := generated(b)
	n := 1000
	if s := os.Getenv("STORE_DOCUMENTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatalf("STORE_DOCUMENTS: %v", err)
		}
	}
	var files []string
	err := filepath.WalkDir(c.source, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	read := func(i int) document.Document { // beyond the corpus, documents are repeated under other names
		file := files[i%len(files)]
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("%d-%s", i/len(files), filepath.Base(file))
		d, err := ingest.Make(b.Context(), data, document.Document{ID: ingest.DocID("scale", name), Label: "scale", Path: name})
		if err != nil {
			b.Fatal(err)
		}
		return *d
	}
	for kind, s := range stores(b, nil) {
		b.Run(kind, func(b *testing.B) {
			var queries []string
			chunks := 0
			var writing time.Duration
			for from := 0; from < n; from += 1000 {
				var docs []document.Document
				for i := from; i < min(n, from+1000); i++ {
					docs = append(docs, read(i))
					chunks += len(docs[len(docs)-1].Chunks)
				}
				words := strings.Fields(docs[len(docs)/2].Text)
				for i := 20; i+6 < len(words) && i < 120; i += 10 {
					queries = append(queries, strings.Join(words[i:i+6], " "))
				}
				start := time.Now()
				fillStore(b, s, nil, docs)
				writing += time.Since(start)
			}
			var took []time.Duration
			for _, q := range queries {
				read, err := querytext.Read(q)
				if err != nil {
					continue
				}
				begin := time.Now()
				if _, err := s.Search(b.Context(), service.Query{Text: read.Text, Num: 8, Distinct: true, Passages: 6000}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			var bytes int64
			switch s := s.(type) {
			case *index.Index:
				stats, err := s.Stats(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				bytes = stats.FileBytes
			case *opensearch.Store:
				stats, err := s.Stats(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				bytes = stats.DiskBytes
			}
			b.ReportMetric(float64(chunks), "chunks")
			b.ReportMetric(float64(chunks)/writing.Seconds(), "chunks/s")
			b.ReportMetric(float64(bytes)/float64(chunks), "disk-B/chunk")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
