package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixtures are the index files of package faiss: 64 vectors of 16 dimensions.
const fixtures = "../vector/faiss/testdata"

// Indexes of every type that stores vectors are loaded, the others are refused by
// name, and truncated ones are refused.
func TestIndexTypes(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(fixtures, "*.index"))
	if err != nil || len(names) < 30 {
		t.Fatalf("%d fixtures, %v", len(names), err)
	}
	root := t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		id := strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(name), ".index"), "_", "-"))
		for suffix, data := range map[string][]byte{"": data, "-cut": data[:len(data)-9]} {
			s := newSample(id + suffix)
			docs := make([]map[string]any, 64)
			for i := range docs {
				docs[i] = map[string]any{"content": "text"}
			}
			s.metadata = docs
			s.write(t, root, id+suffix)
			put(t, filepath.Join(root, id+suffix, "index", "docs.index"), string(data))
		}
	}
	for id, got := range list(t, open(t, root)) {
		cut := strings.HasSuffix(id, "-cut")
		unsupported := strings.HasPrefix(id, "unsupported")
		want, vectors := Ready, 64
		if cut || unsupported {
			want, vectors = Error, 0
		}
		switch {
		case strings.Contains(id, "empty"):
			vectors = 0
		case strings.Contains(id, "sparse") && !cut:
			vectors = 6
		}
		if got.State != want || got.Vectors != vectors {
			t.Errorf("%s: %s with %d vectors: %v, want %s with %d", id, got.State, got.Vectors, got.Problems, want, vectors)
		}
		if fourcc := strings.ToLower(got.Failure()); unsupported && !cut && !strings.Contains(fourcc, id[strings.LastIndexByte(id, '-')+1:]) {
			t.Errorf("%s: %q does not name the type", id, got.Failure())
		}
	}
}

// FuzzLoad loads datasets with any index and metadata. Whatever they are, the
// dataset is ready or there is a reason, and a search does not fail.
func FuzzLoad(f *testing.F) {
	index, err := os.ReadFile(filepath.Join(fixtures, "idmap_flat_ip_IxMp.index"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index, []byte(`[{"content":"some text"}]`))
	f.Add(index[:100], []byte(`{"documents":[],"model":1}`))
	sample, err := os.ReadFile("testdata/mcpower-sample/index/docs.index")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample, []byte(`{"stats":{"embeddingDimensions":384},"documents":[{"text":"x"},{}]}`))
	dir := f.TempDir()
	p := place{filepath.Join(dir, "index"), filepath.Join(dir, "metadata")}
	f.Fuzz(func(t *testing.T, index, metadata []byte) {
		put(t, p.index, string(index))
		put(t, p.metadata, string(metadata))
		s, found := load(t.Context(), Manifest{ID: "x", DefaultTopK: 5}, p, rowsEach)
		for _, x := range found {
			if strings.Contains(x.Message, "defect") || len(x.Message) > 2000 {
				t.Fatal(x)
			}
		}
		if (s == nil) != found.failed() {
			t.Fatalf("loaded: %v, findings %v", s != nil, found)
		}
		if s != nil {
			if _, err := search(t.Context(), []*set{s}, Query{Text: "text x"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
