package dataset

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"
)

// A sample is a valid dataset that tests break.
type sample struct {
	manifest map[string]any
	metadata any
	vectors  [][]float32
}

// newSample returns a dataset of three documents, whose vectors have two
// dimensions.
func newSample(id string) *sample {
	return &sample{
		manifest: map[string]any{"id": id, "name": "Sample", "description": "Three documents", "index": "index",
			"metadata": "metadata.json"},
		metadata: []map[string]any{
			{"id": "a", "title": "Leave", "path": "hr/leave.md", "content": "Employees have thirty days of leave."},
			{"id": "b", "title": "Travel", "path": "hr/travel.md", "content": "Book flights early, and trains late."},
			{"id": "c", "title": "Security", "path": "it/security.md", "content": "Passwords are kept in a vault."},
		},
		vectors: [][]float32{{1, 0}, {0, 1}, {0.6, -0.8}},
	}
}

// write writes the dataset to a subfolder of root.
func (s *sample) write(t testing.TB, root, folder string) {
	t.Helper()
	dir := filepath.Join(root, folder)
	writeJSON(t, filepath.Join(dir, "manifest.json"), s.manifest)
	writeJSON(t, filepath.Join(dir, "metadata.json"), s.metadata)
	writeIndex(t, filepath.Join(dir, "index", "docs.index"), s.vectors)
}

func writeJSON(t testing.TB, name string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	put(t, name, string(data))
}

// put writes a file and its folders. Its modification time is one that no file
// of the test had before, because clocks of file systems are coarse.
func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeIndex writes a flat index of vectors.
func writeIndex(t testing.TB, name string, vectors [][]float32) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	dim := 1
	if len(vectors) > 0 {
		dim = len(vectors[0])
	}
	var data bytes.Buffer
	if err := faiss.WriteFlat(&data, faiss.InnerProduct, dim, slices.Concat(vectors...)); err != nil {
		t.Fatal(err)
	}
	put(t, name, data.String())
}

// open returns a Registry of a folder after one scan.
func open(t testing.TB, dir string) *Registry {
	t.Helper()
	r, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	return r
}

func scan(t testing.TB, r *Registry) {
	t.Helper()
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// list returns the datasets by id.
func list(t testing.TB, r *Registry) map[string]Info {
	t.Helper()
	infos, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Info{}
	for _, i := range infos {
		byID[i.ID] = i
	}
	return byID
}
