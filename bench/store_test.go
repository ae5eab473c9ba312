package bench

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	querytext "github.com/knowhow-mcp/knowhow/internal/query"
	service "github.com/knowhow-mcp/knowhow/internal/search"
)

// A store is one of the stores that are compared.
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
	s, err := opensearch.New(opensearch.Options{Address: "opensearch+" + server + "/bench-" + strings.ToLower(cryptorand.Text()[:10]), Embedder: e, EmbedTime: time.Minute})
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
		d, err := ingest.Make(b.Context(), data, document.Document{ID: document.IDOf("cranfield", name), Label: "cranfield", Path: name})
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
					p, err := service.Relax(b.Context(), s, service.Query{Text: read, Num: 100, Distinct: true})
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

// BenchmarkStoreScale reports, for both stores and for OpenSearch without this
// project, how fast documents are added, the size on disk for each chunk, the
// memory of the process with the documents, and the time of searches by words.
// STORE_DOCUMENTS are the numbers of documents at which it measures, in ascending
// order and separated by commas; 1,000 by default. The documents are made while
// they are added, and all are different.
func BenchmarkStoreScale(b *testing.B) {
	counts := []int{1000}
	if s := os.Getenv("STORE_DOCUMENTS"); s != "" {
		counts = nil
		for n := range strings.SplitSeq(s, ",") {
			count, err := strconv.Atoi(n)
			if err != nil || count < 1 || len(counts) > 0 && count <= counts[len(counts)-1] {
				b.Fatalf("STORE_DOCUMENTS=%s: want numbers in ascending order, separated by commas", s)
			}
			counts = append(counts, count)
		}
	}
	paragraphs := documentation(b)
	for _, row := range []struct {
		name string
		open func(b *testing.B) scaled
	}{{"embedded", openEmbedded}, {"opensearch", openCluster}, {"plain", openPlain}} {
		b.Run(row.name, func(b *testing.B) {
			s := row.open(b)
			added, chunks, writing := 0, 0, time.Duration(0)
			shown := time.Now()
			for _, n := range counts {
				b.Run(strconv.Itoa(n), func(b *testing.B) {
					for added < n {
						var docs []document.Document
						for of := 0; added < n && of < 1000; added++ {
							d := scaleDocument(b, paragraphs, added)
							docs = append(docs, d)
							of += len(d.Chunks)
							chunks += len(d.Chunks)
						}
						begin := time.Now()
						s.add(b, docs)
						writing += time.Since(begin)
						if time.Since(shown) > 15*time.Second {
							shown = time.Now()
							fmt.Fprintf(os.Stderr, "%s: %d of %d documents, %d chunks, %.0f chunks/s\n", row.name, added, n, chunks, float64(chunks)/writing.Seconds())
						}
					}
					var took []time.Duration
					const queries = 200
					for i := range queries {
						words := strings.Fields(scaleDocument(b, paragraphs, i*n/queries).Text)
						at := 20 + i%10
						text, err := querytext.Read(strings.Join(words[at:at+6], " "))
						if err != nil {
							continue
						}
						begin := time.Now()
						s.search(b, text)
						took = append(took, time.Since(begin))
					}
					took = took[len(took)/10:] // the first ones load what the others use
					slices.Sort(took)
					disk, memory := s.size(b)
					b.ReportMetric(float64(chunks), "chunks")
					b.ReportMetric(float64(chunks)/writing.Seconds(), "chunks/s")
					b.ReportMetric(float64(disk)/float64(chunks), "disk-B/chunk")
					b.ReportMetric(memory, "memory-MB")
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
				})
			}
		})
	}
}

// scaleDocument returns document i of the benchmark: some paragraphs in a random
// order that differs for each document.
func scaleDocument(b *testing.B, paragraphs []string, i int) document.Document {
	b.Helper()
	random := rand.New(rand.NewPCG(3, uint64(i)))
	var text strings.Builder
	words := strings.Fields(paragraphs[random.IntN(len(paragraphs))])
	fmt.Fprintf(&text, "# Page %d: %s\n", i, strings.Trim(strings.Join(words[:min(5, len(words))], " "), "#|-` "))
	for range 4 + random.IntN(12) {
		sentences := strings.SplitAfter(paragraphs[random.IntN(len(paragraphs))], ". ")
		random.Shuffle(len(sentences), func(i, j int) { sentences[i], sentences[j] = sentences[j], sentences[i] })
		fmt.Fprintf(&text, "\n%s\n", strings.Join(sentences, " "))
	}
	name := fmt.Sprintf("page-%d.md", i)
	d, err := ingest.Make(b.Context(), []byte(text.String()), document.Document{ID: document.IDOf("scale", name), Label: "scale", Path: name})
	if err != nil {
		b.Fatal(err)
	}
	return *d
}

// A scaled is a store that BenchmarkStoreScale measures.
type scaled interface {
	add(b *testing.B, docs []document.Document)
	search(b *testing.B, text querytext.Text)            // for eight documents
	size(b *testing.B) (diskBytes int64, memory float64) // of the process with the documents, in MB
}

// A scaledStore is a store of this project.
type scaledStore struct {
	store
	disk    func() (int64, error)
	process int // its ID
}

func (s scaledStore) add(b *testing.B, docs []document.Document) {
	b.Helper()
	changes := make([]document.Change, len(docs))
	for i := range docs {
		changes[i].Put = &docs[i]
	}
	if err := s.Apply(b.Context(), changes); err != nil {
		b.Fatal(err)
	}
}

func (s scaledStore) search(b *testing.B, text querytext.Text) {
	b.Helper()
	if _, err := s.Search(b.Context(), service.Query{Text: text, Num: 8, Distinct: true, Passages: 6000}); err != nil {
		b.Fatal(err)
	}
}

func (s scaledStore) size(b *testing.B) (int64, float64) {
	b.Helper()
	disk, err := s.disk()
	if err != nil {
		b.Fatal(err)
	}
	return disk, memoryOf(b, s.process, "VmRSS")
}

func openEmbedded(b *testing.B) scaled {
	b.Helper()
	x, err := index.Open(b.Context(), index.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	return scaledStore{x, func() (int64, error) {
		stats, err := x.Stats(b.Context())
		return stats.FileBytes, err
	}, os.Getpid()}
}

func openCluster(b *testing.B) scaled {
	b.Helper()
	c := newCluster(b)
	s, err := opensearch.New(opensearch.Options{Address: "opensearch+" + c.url + "/" + c.prefix})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return scaledStore{s, func() (int64, error) {
		stats, err := s.Stats(b.Context())
		return stats.DiskBytes, err
	}, c.process(b)}
}

// A plainCluster is an index of whole documents with the analyzer of OpenSearch.
type plainCluster struct {
	testCluster
	pid int
}

func openPlain(b *testing.B) scaled {
	b.Helper()
	c := plainCluster{testCluster: newCluster(b)}
	c.pid = c.process(b)
	c.ask(b, http.MethodPut, "/"+c.prefix, `{"mappings":{"properties":{"title":{"type":"text"},"text":{"type":"text"}}}}`, nil)
	return c
}

func (c plainCluster) add(b *testing.B, docs []document.Document) {
	b.Helper()
	var body strings.Builder
	for _, d := range docs {
		row, err := json.Marshal(map[string]string{"title": d.Title, "text": d.Text})
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&body, "{\"index\":{\"_id\":%q}}\n%s\n", d.ID, row)
	}
	var answer struct {
		Errors bool `json:"errors"`
	}
	c.ask(b, http.MethodPost, "/"+c.prefix+"/_bulk?refresh=true", body.String(), &answer)
	if answer.Errors {
		b.Fatal("OpenSearch has not stored all documents")
	}
}

func (c plainCluster) search(b *testing.B, text querytext.Text) {
	b.Helper()
	body, err := json.Marshal(map[string]any{"size": 8, "_source": []string{"title"}, "query": map[string]any{"match": map[string]any{"text": text.String()}}})
	if err != nil {
		b.Fatal(err)
	}
	var answer struct {
		Hits struct {
			Hits []json.RawMessage `json:"hits"`
		} `json:"hits"`
	}
	c.ask(b, http.MethodPost, "/"+c.prefix+"/_search", string(body), &answer)
	if len(answer.Hits.Hits) == 0 {
		b.Fatalf("OpenSearch finds nothing for %q", text)
	}
}

func (c plainCluster) size(b *testing.B) (int64, float64) {
	b.Helper()
	var stats struct {
		All struct {
			Total struct {
				Store struct {
					Size int64 `json:"size_in_bytes"`
				} `json:"store"`
			} `json:"total"`
		} `json:"_all"`
	}
	c.ask(b, http.MethodGet, "/"+c.prefix+"/_stats/store", "", &stats)
	return stats.All.Total.Store.Size, memoryOf(b, c.pid, "VmRSS")
}

// A testCluster is the server at KNOWHOW_TEST_OPENSEARCH. The indexes whose names
// begin with prefix are deleted at the end.
type testCluster struct{ url, prefix string }

func newCluster(b *testing.B) testCluster {
	b.Helper()
	c := testCluster{os.Getenv("KNOWHOW_TEST_OPENSEARCH"), "bench-" + strings.ToLower(cryptorand.Text()[:10])}
	if c.url == "" {
		b.Skip("KNOWHOW_TEST_OPENSEARCH is not set: run .ci/real-opensearch go test ./bench -bench Store")
	}
	b.Cleanup(func() {
		var indexes map[string]json.RawMessage
		c.ask(b, http.MethodGet, "/"+c.prefix+"*", "", &indexes)
		for name := range indexes {
			c.ask(b, http.MethodDelete, "/"+name, "", nil)
		}
	})
	return c
}

// ask sends a request and decodes the answer into out, unless it is nil.
func (c testCluster) ask(b *testing.B, method, path, body string, out any) {
	b.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(b.Context()), method, c.url+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		b.Fatalf("%s %s: %s %.200s, %v", method, path, resp.Status, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			b.Fatal(err)
		}
	}
}

// process returns the ID of the process of the server.
func (c testCluster) process(b *testing.B) int {
	b.Helper()
	var nodes struct {
		Nodes map[string]struct {
			Process struct {
				ID int `json:"id"`
			} `json:"process"`
		} `json:"nodes"`
	}
	c.ask(b, http.MethodGet, "/_nodes/_local/process", "", &nodes)
	for _, n := range nodes.Nodes {
		return n.Process.ID
	}
	b.Fatal("OpenSearch does not name its process")
	return 0
}
