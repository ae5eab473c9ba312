package datasetsearch_test

import (
	"path"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// pathOf returns the path that a document of the corpus has in a dataset.
func pathOf(d document.Document) string { return d.Label + "/" + d.Path }

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
			return document.Document{ID: document.IDOf("data", "corpus/"+where), Label: "data", Path: where,
				Title: d.Title, Text: d.Text, Hash: d.Hash, Size: int64(len(d.Text)), Chunks: d.Chunks,
				Filename: path.Base(where), FileType: fileType, MIMEType: mimeType}
		},
		Label:      "data",
		NoTags:     true,
		NoPassages: true,
		NoWritten:  true,
	})
}
