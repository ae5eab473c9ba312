package index_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

var _ search.Service = (*index.Index)(nil)

// open opens the index in a folder until the test ends.
func open(t testing.TB, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return x
}

// put stores documents.
func put(t testing.TB, x *index.Index, docs ...document.Document) {
	t.Helper()
	if err := x.Apply(t.Context(), puts(docs...)); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
}

func puts(docs ...document.Document) []document.Change {
	changes := make([]document.Change, len(docs))
	for i := range docs {
		changes[i].Put = &docs[i]
	}
	return changes
}

// doc makes a document with a chunk for each paragraph.
func doc(label, file, title, text string) document.Document {
	hash := sha256.Sum256([]byte(text))
	d := document.Document{
		ID: document.IDOf(label, file), Label: label, Path: file, URL: "file:///srv/" + label + "/" + file,
		FromSource: true, Title: title, Lang: "en", MIMEType: "text/plain", FileType: "txt", Filename: path.Base(file),
		Modified: time.Date(2025, 1, 1, 0, 0, len(text), 0, time.UTC),
		Hash:     "sha256:" + hex.EncodeToString(hash[:]), Text: text,
		Size:  int64(len(text)),
		Stamp: document.Stamp{Size: int64(len(text)), ModTime: time.Date(2025, 1, 1, 0, 0, 0, 123456789, time.UTC)},
	}
	for off := 0; off < len(text); {
		n := len(text) - off
		if i := strings.Index(text[off:], "\n\n"); i >= 0 {
			n = i + 2
		}
		d.Chunks = append(d.Chunks, document.Chunk{Offset: off, Length: n})
		off += n
	}
	return d
}

// find searches and returns the paths of all hits in order.
func find(t testing.TB, x *index.Index, q search.Query) []string {
	t.Helper()
	paths := []string{}
	for _, h := range page(t, x, q).Hits {
		_, p, _ := strings.Cut(strings.TrimPrefix(h.URL, "file:///srv/"), "/")
		paths = append(paths, p)
	}
	return paths
}

// page searches. If q.Num is 0, it asks for 100 hits.
func page(t testing.TB, x *index.Index, q search.Query) *search.Page {
	t.Helper()
	if q.Num == 0 {
		q.Num = 100
	}
	p, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search(%+v) = %v", q, err)
	}
	return p
}
