package datasetsearch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"
)

// write writes a dataset without vectors.
func write(t testing.TB, dir, id string, records []dataset.Document) {
	t.Helper()
	put := func(name string, v any) {
		t.Helper()
		data, ok := v.([]byte)
		if !ok {
			var err error
			if data, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, id, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var index bytes.Buffer
	if err := faiss.WriteFlat(&index, faiss.InnerProduct, 1, nil); err != nil {
		t.Fatal(err)
	}
	if records == nil {
		records = []dataset.Document{}
	}
	put("manifest.json", map[string]any{"id": id, "name": id, "description": "A dataset of a test", "index": "index",
		"metadata": "metadata.json"})
	put("metadata.json", records)
	put("index/docs.index", index.Bytes())
}

// open returns the service of a folder, whose label is "data", after one scan.
func open(t testing.TB, o dataset.Options) (*datasetsearch.Service, *dataset.Registry) {
	t.Helper()
	o.Written = true
	r, err := dataset.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := datasetsearch.New(r, "data", nil)
	t.Cleanup(s.Close)
	return s, r
}

// find returns the page of a search that must succeed.
func find(t testing.TB, s search.Service, text string) *search.Page {
	t.Helper()
	p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100})
	if err != nil {
		t.Fatalf("Search(%q) = %v", text, err)
	}
	return p
}

// paths returns the paths of hits.
func paths(p *search.Page) []string {
	out := []string{}
	for _, h := range p.Hits {
		out = append(out, h.Path)
	}
	return out
}

// read returns the whole text of a document.
func read(t testing.TB, s search.Service, id string) string {
	t.Helper()
	x, err := s.ReadText(t.Context(), id, nil, 0, 1<<30)
	if err != nil {
		t.Fatalf("ReadText(%q) = %v", id, err)
	}
	return x.Window
}

// A fakeModel is an embedder for which words with the same meaning are the same.
type fakeModel struct{}

var meanings = strings.NewReplacer("holiday", "leave", "vacation", "leave", "plane", "flight", "secret", "password")

func (fakeModel) ID() string     { return "fake" }
func (fakeModel) Dimension() int { return 64 }
func (fakeModel) MaxTokens() int { return 0 }

func (fakeModel) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, 64)
		for _, w := range strings.Fields(meanings.Replace(strings.ToLower(text))) {
			h := fnv.New64a()
			h.Write([]byte(strings.Trim(w, ".,")))
			x := h.Sum64()
			for i := range v {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				v[i] += float32(int64(x)) / (1 << 63)
			}
		}
		embed.Normalize(v)
		out = append(out, v)
	}
	return out, ctx.Err()
}
