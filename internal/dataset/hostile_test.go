package dataset

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
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
			t.Errorf("%s: %s with %d vectors: %v, want %s with %d", id, got.State, got.Vectors, got.Problems, want,
				vectors)
		}
		if fourcc := strings.ToLower(got.Failure()); unsupported && !cut &&
			!strings.Contains(fourcc, id[strings.LastIndexByte(id, '-')+1:]) {
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
		s, found := load(t.Context(), Manifest{ID: "x", DefaultTopK: 5}, p, RowsEach, false, &budget{left: 1 << 30})
		for _, x := range found {
			if strings.Contains(x.Message, "defect") || len(x.Message) > 2000 {
				t.Fatal(x)
			}
		}
		if (s == nil) != found.failed() {
			t.Fatalf("loaded: %v, findings %v", s != nil, found)
		}
		if s != nil {
			if _, err := search(t.Context(), []*Set{s}, Query{Text: "text x"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An index of far more vectors than documents is refused before memory is
// allocated, however little space its file takes on the disk.
func TestSparseIndex(t *testing.T) {
	root := t.TempDir()
	newSample("sparse").write(t, root, "sparse")
	const n, dim = 1 << 25, 16
	head := []byte("IxFI")
	head = binary.LittleEndian.AppendUint32(head, dim)
	head = binary.LittleEndian.AppendUint64(head, n)
	head = append(head, make([]byte, 16)...)
	head = append(head, 1)
	head = binary.LittleEndian.AppendUint32(head, 0)
	head = binary.LittleEndian.AppendUint64(head, n*dim)
	name := filepath.Join(root, "sparse", "index", "docs.index")
	put(t, name, string(head))
	if err := os.Truncate(name, int64(len(head))+4*n*dim); err != nil {
		t.Skip(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := list(t, open(t, root))["sparse"]
	runtime.ReadMemStats(&after)
	if got.State != Error || !strings.Contains(got.Failure(), "create it again for the 3 documents") {
		t.Errorf("%s: %s", got.State, got.Failure())
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 16<<20 {
		t.Errorf("%d bytes were allocated", bytes)
	}
}

// All datasets share the memory. One that does not fit is in error until another
// one is gone.
func TestMemory(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{"one", "two"} {
		s := newSample(id)
		s.metadata = []map[string]any{{"content": strings.Repeat("words ", 1000)}, {"content": "b"}, {"content": "c"}}
		s.write(t, root, id)
	}
	var log bytes.Buffer
	r, err := New(Options{Dir: root, MaxMemory: 12_000, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		scan(t, r)
	}
	if got := list(t, r); got["one"].State != Ready || got["two"].State != Error ||
		!strings.Contains(got["two"].Failure(), "more memory than the others leave") {
		t.Fatalf("one is %s, two is %s: %s", got["one"].State, got["two"].State, got["two"].Failure())
	}
	if n := strings.Count(log.String(), "more memory"); n != 1 {
		t.Errorf("the error was logged %d times", n)
	}
	if err := os.RemoveAll(filepath.Join(root, "one")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r)["two"]; got.State != Ready {
		t.Errorf("with more memory two is %s: %s", got.State, got.Failure())
	}
}

// A file of vectors that becomes shorter while it is used does no harm.
func TestShortenedIndex(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	r := open(t, root)
	s := r.snapshot()[0].set
	if err := os.Truncate(filepath.Join(root, "one", "index", "docs.index"), 10); err != nil {
		t.Fatal(err)
	}
	err := s.vectors.search(t.Context(), []float32{1, 0}, 3, func(int, float64) {})
	if err != nil {
		t.Error(err)
	}
	scan(t, r)
	if got := list(t, r)["one"]; got.State != Error {
		t.Errorf("after the next scan: %s", got.State)
	}
}
