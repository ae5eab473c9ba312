package datasetsearch_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
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

// pathOf returns the path that a document of the corpus has in a dataset.
func pathOf(d document.Document) string {
	return d.Label + "/" + strings.Replace(d.Path, ".md", ".txt", 1)
}

// TestContract runs the contract of all services over a dataset of the corpus.
func TestContract(t *testing.T) {
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			var records []dataset.Document
			for _, d := range docs {
				for i, c := range d.Chunks {
					records = append(records, dataset.Document{Title: d.Title, Path: pathOf(d), Heading: c.Heading,
						Content: strings.TrimSpace(d.Text[c.Offset : c.Offset+c.Length]), Chunk: i + 1})
				}
			}
			dir := t.TempDir()
			write(t, dir, "corpus", records)
			s, _ := open(t, dataset.Options{Dir: dir})
			return s
		},
		Served: func(d document.Document) document.Document {
			where := pathOf(d)
			mimeType, fileType := extract.TypeOf(where)
			u, _ := url.Parse(where)
			return document.Document{ID: document.IDOf("data", "corpus/"+where), Label: "data", Path: where,
				Title: d.Title, Text: d.Text, Hash: d.Hash, Size: int64(len(d.Text)), Chunks: d.Chunks,
				Filename: path.Base(u.Path), FileType: fileType, MIMEType: mimeType}
		},
		Label:      "data",
		NoTags:     true,
		NoPassages: true,
		NoWritten:  true,
	})
}
