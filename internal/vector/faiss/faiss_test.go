package faiss

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A fixture is an index that FAISS 1.7.3 wrote, with the results of its searches.
type fixture struct {
	File, Fourcc, Metric, Vectors string
	Params                        string `json:"search_params"`
	D, Ntotal                     int
	Expected                      struct {
		IDs    [][]int64
		Scores [][]float64
	}
}

// fixtures returns the fixtures of testdata.
func fixtures(t testing.TB) []fixture {
	t.Helper()
	var expected struct {
		D, N, K  int
		Fixtures []fixture
	}
	if err := json.Unmarshal(readFile(t, "expected.json"), &expected); err != nil {
		t.Fatal(err)
	}
	if len(expected.Fixtures) != 49 || expected.K != 5 {
		t.Fatalf("%d fixtures, k is %d", len(expected.Fixtures), expected.K)
	}
	return expected.Fixtures
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readVectors returns the vectors of dimension 16 in a file of float32.
func readVectors(t testing.TB, name string) (vectors [][]float32) {
	t.Helper()
	for row := range slices.Chunk(readFile(t, name), 64) {
		v := make([]float32, 16)
		flat{16}.decode(v, row)
		vectors = append(vectors, v)
	}
	return vectors
}

func read(data []byte, opts Options) (*Index, error) {
	return Read(context.Background(), bytes.NewReader(data), int64(len(data)), opts)
}

// score is the score that FAISS gives a vector.
func score(m Metric, q, v []float32) (sum float64) {
	for i := range q {
		a, b := float64(q[i]), float64(v[i])
		switch m {
		case InnerProduct:
			sum += a * b
		case L2:
			sum += (a - b) * (a - b)
		default:
			sum += math.Abs(a - b)
		}
	}
	return sum
}

// TestFixtures searches what is read from each fixture exactly. The scores must be
// those of FAISS, or better where FAISS searches only a part. Vectors with equal
// scores may be in another order.
func TestFixtures(t *testing.T) {
	queries := map[bool][][]float32{true: readVectors(t, "queries_norm.f32"), false: readVectors(t, "queries_raw.f32")}
	for _, f := range fixtures(t) {
		t.Run(strings.TrimSuffix(f.File, ".index"), func(t *testing.T) {
			data := readFile(t, f.File)
			x, err := read(data, Options{})
			if strings.HasPrefix(f.File, "unsupported") {
				if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), f.Fourcc) {
					t.Errorf("got %v, want Unsupported with the name %s", err, f.Fourcc)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			metric := map[string]Metric{"IP": InnerProduct, "L2": L2, "2": 2}[f.Metric]
			want := Header{Type: f.Fourcc, Dim: f.D, Count: f.Ntotal, Metric: metric, Trained: true}
			if x.Header != want {
				t.Errorf("got %+v, want %+v", x.Header, want)
			}
			if len(x.Vectors) != x.Count*x.Stored || x.IDs != nil && len(x.IDs) != x.Count {
				t.Fatalf("%d values of %d vectors with %d ids", len(x.Vectors), x.Count, len(x.IDs))
			}
			there, err := read(data, Options{InPlace: true})
			if err != nil {
				t.Fatal(err)
			}
			if kind := f.Fourcc; (kind == "IxFI" || kind == "IxF2" || kind == "IHNf") && there.Vectors != nil {
				t.Error("the vectors are in memory")
			}
			buf := make([]float32, x.Stored)
			for i := range x.Count {
				v, err := there.Vector(i, buf)
				if err != nil || !slices.Equal(v, x.Vectors[i*x.Stored:][:x.Stored]) {
					t.Fatalf("vector %d in its place: %v, %v", i, v, err)
				}
			}
			normal := strings.HasPrefix(f.Vectors, "norm") || metric == InnerProduct &&
				!strings.Contains(f.Vectors, "raw")
			for i, q := range queries[normal] {
				compare(t, f, x, q, f.Expected.IDs[i], f.Expected.Scores[i])
			}
		})
	}
}

// compare compares the best vectors of x for q with those that FAISS found.
func compare(t *testing.T, f fixture, x *Index, q []float32, ids []int64, scores []float64) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) }
	q, err := x.Query(q)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[int64]float64{}
	var best []float64
	for i := range x.Count {
		s := score(x.Metric, q, x.Vectors[i*x.Stored:(i+1)*x.Stored])
		id := int64(i)
		if x.IDs != nil {
			id = x.IDs[i]
		}
		byID[id] = s
		best = append(best, s)
	}
	if len(byID) != x.Count {
		t.Errorf("%d ids of %d vectors", len(byID), x.Count)
	}
	slices.SortFunc(best, func(a, b float64) int {
		if x.Metric == InnerProduct {
			a, b = b, a
		}
		return cmp.Compare(a, b)
	})
	partial := strings.Contains(f.Params, "nlist=8 nprobe=3") || strings.HasPrefix(f.Params, "hnsw_pq")
	for i, id := range ids {
		if id < 0 && i >= x.Count { // fewer vectors than FAISS was asked for
			continue
		}
		if got, ok := byID[id]; !ok || !near(got, scores[i]) {
			t.Errorf("vector %d has score %v, want %v", id, got, scores[i])
		}
		better := partial && (best[i] < scores[i]) == (x.Metric != InnerProduct)
		if !near(best[i], scores[i]) && !better {
			t.Errorf("score %d is %v, want %v", i, best[i], scores[i])
		}
	}
}

func TestFlatValues(t *testing.T) {
	for file, vectors := range map[string]string{"flat_ip_IxFI.index": "vectors_norm.f32",
		"flat_l2_IxF2.index": "vectors_raw.f32", "hnsw_flat_l2_IHNf.index": "vectors_raw.f32"} {
		x, err := read(readFile(t, file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Concat(readVectors(t, vectors)...); !slices.Equal(x.Vectors, want) || x.IDs != nil ||
			x.Stored != 16 {
			t.Errorf("%s: the vectors differ", file)
		}
	}
}

func TestIDs(t *testing.T) {
	for file, id := range map[string]func(i int64) int64{
		"idmap_flat_l2_IxMp.index":             func(i int64) int64 { return 500 + 3*i },
		"idmap2_flat_ip_IxM2.index":            func(i int64) int64 { return 11*(63-i) - 5 },
		"idmap_hnsw_ip_IxMp.index":             func(i int64) int64 { return 1 + i },
		"ivf_flat_l2_dmhash_IwFl.index":        func(i int64) int64 { return 1000 + 7*i },
		"ivf_flat_sparse_l2_IwFl.index":        func(i int64) int64 { return i },
		"pretransform_opq_ivfpq_ip_IxPT.index": func(i int64) int64 { return i },
	} {
		x, err := read(readFile(t, file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for i := range int64(x.Count) {
			want = append(want, id(i))
		}
		got := slices.Clone(x.IDs)
		if strings.HasPrefix(file, "ivf") || strings.HasPrefix(file, "pre") { // in the order of the lists
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: ids %v, want %v", file, got, want)
		}
	}
}

// TestWriteFlat compares files that are written with those of FAISS.
func TestWriteFlat(t *testing.T) {
	for _, c := range []struct {
		file, vectors string
		metric        Metric
	}{{"flat_ip_IxFI.index", "vectors_norm.f32", InnerProduct}, {"flat_l2_IxF2.index", "vectors_raw.f32", L2},
		{"flat_ip_empty_IxFI.index", "", InnerProduct}} {
		var vectors []float32
		if c.vectors != "" {
			vectors = slices.Concat(readVectors(t, c.vectors)...)
		}
		var b bytes.Buffer
		if err := WriteFlat(&b, c.metric, 16, vectors); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), readFile(t, c.file)) {
			t.Errorf("%s: the bytes differ", c.file)
		}
	}
}

func TestWriteFlatInvalid(t *testing.T) {
	for _, c := range []struct {
		metric Metric
		dim, n int
	}{{2, 1, 1}, {L2, 0, 0}, {L2, -1, 0}, {InnerProduct, 2, 3}, {L2, maxDim + 1, 0}} {
		if err := WriteFlat(&bytes.Buffer{}, c.metric, c.dim, make([]float32, c.n)); !errors.Is(err, errkind.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", c, err)
		}
	}
	full := errors.New("disk full")
	if err := WriteFlat(failingWriter{full}, L2, 1, make([]float32, 100_000)); !errors.Is(err, full) {
		t.Errorf("got %v, want the error of the writer", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestQueryDimension(t *testing.T) {
	x, err := read(readFile(t, "pretransform_pca8_flat_ip_IxPT.index"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x.Dim != 16 || x.Stored != 8 {
		t.Errorf("dimensions %d and %d, want 16 and 8", x.Dim, x.Stored)
	}
	if _, err := x.Query(make([]float32, 8)); !errors.Is(err, errkind.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := readFile(t, "flat_ip_IxFI.index")
	if _, err := Read(ctx, bytes.NewReader(data), int64(len(data)), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestFloat16(t *testing.T) {
	for bits, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 1.0 / (1 << 24),
		0x03ff: 1023.0 / (1 << 24),
		0x0400: 1.0 / (1 << 14), 0x3555: 0.33325195, 0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1))} {
		if got := float16(bits); got != want {
			t.Errorf("%#04x: got %v, want %v", bits, got, want)
		}
	}
	if got := float16(0x7e00); got == got {
		t.Errorf("got %v, want NaN", got)
	}
}

// TestScalarQuantizer decodes the types of which there is no fixture.
func TestScalarQuantizer(t *testing.T) {
	for _, c := range []struct {
		kind int
		code []byte
		want []float32
	}{
		{sq8Direct, []byte{0, 7, 255}, []float32{0, 7, 255}},
		{sq8DirectSigned, []byte{0, 128, 255}, []float32{-128, 0, 127}},
		{sqBfloat16, []byte{0x80, 0x3f, 0, 0xc0, 0x80, 0x7f}, []float32{1, -2, float32(math.Inf(1))}},
	} {
		q := scalarQuantizer{d: 3, kind: c.kind}
		got := make([]float32, 3)
		if q.decode(got, c.code); !slices.Equal(got, c.want) || q.size() != len(c.code) {
			t.Errorf("type %d: got %v in %d bytes, want %v in %d", c.kind, got, q.size(), c.want, len(c.code))
		}
	}
}
