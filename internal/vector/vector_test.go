package vector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

var metrics = []Metric{InnerProduct, L2, Cosine}

// A generator returns n vectors of dimension dim.
type generator func(rnd *rand.Rand, n, dim int) []float32

// generators have vectors that are easy, that are alike, and that are extreme.
var generators = map[string]generator{
	"gauss": gauss,
	"clusters": func(rnd *rand.Rand, n, dim int) []float32 {
		centers, v := gauss(rnd, 8, dim), gauss(rnd, n, dim)
		for i := range v {
			v[i] = centers[(i/dim*8/n)*dim+i%dim] + 0.05*v[i]
		}
		return v
	},
	"duplicates": func(rnd *rand.Rand, n, dim int) []float32 {
		v := gauss(rnd, n, dim)
		for i := range n {
			copy(v[i*dim:(i+1)*dim], v[i%5*dim:])
		}
		return v
	},
	"small integers": func(rnd *rand.Rand, n, dim int) []float32 { // equal scores of different vectors
		v := make([]float32, n*dim)
		for i := range v {
			v[i] = float32(rnd.IntN(3) - 1)
		}
		return v
	},
	"zero": func(_ *rand.Rand, n, dim int) []float32 { return make([]float32, n*dim) },
	"scales": func(rnd *rand.Rand, n, dim int) []float32 {
		v := gauss(rnd, n, dim)
		for i := range v {
			v[i] *= float32(math.Pow(10, float64(i/dim%60-30)))
		}
		return v
	},
	"extreme": func(rnd *rand.Rand, n, dim int) []float32 {
		values := []float32{0, 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1e-42, 1e-38,
			3e19, -3e19}
		v := make([]float32, n*dim)
		for i := range v {
			v[i] = values[rnd.IntN(len(values))]
		}
		return v
	},
	"tiny": func(rnd *rand.Rand, n, dim int) []float32 {
		v := make([]float32, n*dim)
		for i := range v {
			v[i] = math.SmallestNonzeroFloat32 * float32(rnd.IntN(300)-150)
		}
		return v
	},
	"one value": func(rnd *rand.Rand, n, dim int) []float32 { // the worst case of the quantisation
		v := make([]float32, n*dim)
		for i := range v {
			v[i] = 0.01 * float32(rnd.NormFloat64())
			if i%dim == i/dim%dim {
				v[i] = 100
			}
		}
		return v
	},
}

func gauss(rnd *rand.Rand, n, dim int) []float32 {
	v := make([]float32, n*dim)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	return v
}

// bruteForce returns the best k allowed rows by their scores alone.
func bruteForce(t *testing.T, x *Index, query []float32, k int, allow func(int) bool) []Hit {
	t.Helper()
	rows := make([]int, x.Len())
	for i := range rows {
		rows[i] = i
	}
	scores, err := x.Scores(query, rows)
	if err != nil {
		t.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(i int) bool {
		return allow != nil && !allow(i) || x.at != nil && !finite(x.vector(i, nil))
	})
	slices.SortStableFunc(rows, func(a, b int) int {
		switch {
		case scores[a] == scores[b]:
			return 0
		case (scores[a] > scores[b]) != (x.Metric() == L2):
			return -1
		}
		return 1
	})
	var hits []Hit
	for _, row := range rows[:min(k, len(rows))] {
		hits = append(hits, Hit{row, scores[row]})
	}
	return hits
}

// TestSearchIsExact compares searches with all kernels, metrics and kinds of
// vectors with brute force: the same rows in the same order, with equal scores.
func TestSearchIsExact(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 100
	}
	for name, generate := range generators {
		for _, metric := range metrics {
			t.Run(fmt.Sprintf("%s/%v", name, metric), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(1, 2))
				for _, dim := range []int{1, 3, 64, 65} {
					vectors := generate(rnd, n, dim)
					queries := [][]float32{vectors[:dim], gauss(rnd, 1, dim), make([]float32, dim),
						generate(rnd, 1, dim)}
					floats, err := New(vectors, dim, metric)
					if err != nil {
						t.Fatal(err)
					}
					indexes := map[string]*Index{"floats": floats}
					if name != "extreme" {
						indexes["codes"] = codesOf(t, vectors, dim, metric)
					}
					for kind, x := range indexes {
						for _, kernel := range kernels() {
							x.dot = kernel.dot
							for _, k := range []int{1, 10, 55, n + 1} {
								got, err := x.SearchBatch(t.Context(), queries, k, Options{})
								if err != nil {
									t.Fatal(err)
								}
								for i, q := range queries {
									want := bruteForce(t, x, q, k, nil)
									if diff := cmp.Diff(want, got[i]); diff != "" {
										t.Fatalf("%s, %s, dim %d, k %d, query %d (-want +got):\n%s", kind, kernel.name,
											dim, k, i, diff)
									}
								}
							}
						}
					}
				}
			})
		}
	}
}

// codesOf returns an index of codes alone.
func codesOf(t testing.TB, vectors []float32, dim int, metric Metric) *Index {
	t.Helper()
	w, err := NewWriter("test model", dim, metric)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(vectors) / dim {
		if err := w.Add(uint64(1000-i), vectors[i*dim:(i+1)*dim]); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Open(w.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestScores compares scores with sums in the order of the values.
func TestScores(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 2, 5, 384} {
		v, q := gauss(rnd, 1, dim), gauss(rnd, 1, dim)
		var ip, vv, qq, l2 float64
		for i := range v {
			a, b := float64(v[i]), float64(q[i])
			ip, vv, qq, l2 = ip+a*b, vv+a*a, qq+b*b, l2+(a-b)*(a-b)
		}
		for metric, want := range map[Metric]float64{InnerProduct: ip, L2: l2, Cosine: ip / math.Sqrt(vv*qq)} {
			x, err := New(v, dim, metric)
			if err != nil {
				t.Fatal(err)
			}
			got, err := x.Scores(q, []int{0})
			if err != nil || math.Abs(got[0]-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("%v, dim %d: got %v, %v, want %v", metric, dim, got, err, want)
			}
		}
	}
}

// TestBounds checks that each score is between the bounds from the codes.
func TestBounds(t *testing.T) {
	for name, generate := range generators {
		for _, metric := range metrics {
			rnd := rand.New(rand.NewPCG(3, 4))
			const n, dim = 50, 70
			vectors := generate(rnd, n, dim)
			x, err := New(vectors, dim, metric)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range [][]float32{vectors[:dim], gauss(rnd, 1, dim), generate(rnd, 1, dim)} {
				q := x.newQuery(v)
				dots := make([]int32, n)
				x.dot(dots, x.codes, &q.codes)
				for i, r := range x.rows {
					key := x.exact(v, q.norm, i, nil)
					if metric == L2 {
						key = -key
					}
					middle, err := q.bounds(&r, dots[i])
					most, least := float64(middle+err)+q.offset, float64(middle-err)+q.offset
					if key > most || key < least {
						t.Errorf("%s, %v: row %d: key %v is not in %v to %v", name, metric, i, key, least, most)
					}
				}
			}
		}
	}
}

func TestAllow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const n, dim = 9000, 16
	x, err := New(gauss(rnd, n, dim), dim, Cosine)
	if err != nil {
		t.Fatal(err)
	}
	for _, every := range []int{1, 2, 100, n, n + 1} {
		allow := func(row int) bool { return row%every == every-1 }
		q := gauss(rnd, 1, dim)
		got, err := x.Search(t.Context(), q, 20, Options{Allow: allow, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bruteForce(t, x, q, 20, allow), got); diff != "" && len(got) > 0 {
			t.Errorf("every %d (-want +got):\n%s", every, diff)
		}
		if want := min(20, n/every); len(got) != want {
			t.Errorf("every %d: %d hits, want %d", every, len(got), want)
		}
	}
}

// TestThreads checks that the result does not depend on the number of threads,
// even if many vectors have equal scores.
func TestThreads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const n, dim = 20000, 8
	for _, name := range []string{"gauss", "duplicates", "small integers", "zero"} {
		x, err := New(generators[name](rnd, n, dim), dim, InnerProduct)
		if err != nil {
			t.Fatal(err)
		}
		q := gauss(rnd, 1, dim)
		want := bruteForce(t, x, q, 30, nil)
		for threads := range 6 {
			got, err := x.Search(t.Context(), q, 30, Options{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %d threads (-want +got):\n%s", name, threads, diff)
			}
		}
	}
}

func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	vectors := []float32{1, 0, nan, 1, 0, 1, inf, 1, 1, -inf}
	for _, metric := range metrics {
		x, err := New(vectors, 2, metric)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := x.Search(t.Context(), []float32{1, 0}, 9, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) != 2 || hits[0].Row != 0 || hits[1].Row != 2 {
			t.Errorf("%v: got %v, want rows 0 and 2", metric, hits)
		}
		for _, bad := range [][]float32{{nan, 0}, {0, inf}, {1}, {1, 2, 3}, nil} {
			if _, err := x.Search(t.Context(), bad, 1, Options{}); !errors.Is(err, errkind.Invalid) {
				t.Errorf("%v: query %v: got %v, want Invalid", metric, bad, err)
			}
			if _, err := x.Scores(bad, nil); !errors.Is(err, errkind.Invalid) {
				t.Errorf("%v: scores for %v: got %v, want Invalid", metric, bad, err)
			}
		}
	}
}

func TestNewInvalid(t *testing.T) {
	for _, c := range []struct {
		n, dim int
		metric Metric
	}{{0, 0, L2}, {0, -1, L2}, {7, 2, L2}, {0, MaxDim + 1, L2}, {2, 2, 3}, {2, 2, -1}} {
		if _, err := New(make([]float32, c.n), c.dim, c.metric); !errors.Is(err, errkind.Invalid) {
			t.Errorf("New with %d values, dim %d and %v: got %v, want Invalid", c.n, c.dim, c.metric, err)
		}
		if c.n != 7 {
			if _, err := NewWriter("", c.dim, c.metric); !errors.Is(err, errkind.Invalid) {
				t.Errorf("NewWriter with dim %d and %v: got %v, want Invalid", c.dim, c.metric, err)
			}
		}
	}
	x, err := New([]float32{1, 2}, 2, L2)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []int{-1, 1} {
		if _, err := x.Scores([]float32{1, 2}, []int{row}); !errors.Is(err, errkind.Invalid) {
			t.Errorf("Scores of row %d: got %v, want Invalid", row, err)
		}
	}
}

func TestEmpty(t *testing.T) {
	x, err := New(nil, 3, Cosine)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := x.Search(t.Context(), []float32{1, 2, 3}, 5, Options{})
	if err != nil || len(hits) != 0 {
		t.Errorf("got %v, %v, want no hits", hits, err)
	}
	batch, err := x.SearchBatch(t.Context(), nil, 5, Options{})
	if err != nil || len(batch) != 0 {
		t.Errorf("got %v, %v, want no results", batch, err)
	}
}

func TestCancel(t *testing.T) {
	x, err := New(gauss(rand.New(rand.NewPCG(1, 2)), 10000, 8), 8, L2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err = x.Search(ctx, make([]float32, 8), 10000, Options{Threads: 1, Allow: func(int) bool {
		calls++
		cancel()
		return true
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if calls >= 10000 {
		t.Errorf("the search continued after the context ended")
	}
	if _, err := x.Search(ctx, make([]float32, 8), 0, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("k = 0: got %v, want Canceled", err)
	}
}

// BenchmarkSearch measures searches in 100,000 vectors of dimension 384. They are
// distributed like embeddings: 500 clusters around points of a space of 64
// dimensions.
func BenchmarkSearch(b *testing.B) {
	const n, dim = 100_000, 384
	rnd := rand.New(rand.NewPCG(1, 2))
	vectors, queries := embeddingLike(rnd, n, dim), embeddingLike(rnd, 64, dim)
	x, err := New(vectors, dim, InnerProduct)
	if err != nil {
		b.Fatal(err)
	}
	codes := codesOf(b, vectors, dim, InnerProduct)
	for _, bench := range []struct {
		name  string
		index *Index
		batch int
	}{{"floats", x, 1}, {"floats", x, 32}, {"codes", codes, 1}} {
		for _, kernel := range kernels() {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/batch=%d/threads=%d", bench.name, kernel.name, bench.batch, threads),
					func(b *testing.B) {
						bench.index.dot = kernel.dot
						i, best := 0, time.Hour // the best is what a busy machine falsifies least
						for b.Loop() {
							start := time.Now()
							batch := make([][]float32, bench.batch)
							for j := range batch {
								batch[j] = queries[i%64*dim:][:dim]
								i++
							}
							if _, err := bench.index.SearchBatch(b.Context(), batch, 10,
								Options{Threads: threads}); err != nil {
								b.Fatal(err)
							}
							best = min(best, time.Since(start))
						}
						b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.batch), "ns/query")
						b.ReportMetric(float64(best.Nanoseconds())/float64(bench.batch), "best-ns/query")
					})
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	vectors := gauss(rand.New(rand.NewPCG(1, 2)), 10_000, 384)
	for b.Loop() {
		if _, err := New(vectors, 384, Cosine); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*10_000), "ns/vector")
}

// embeddingLike returns unit vectors as they are described at BenchmarkSearch.
func embeddingLike(rnd *rand.Rand, n, dim int) []float32 {
	const inner, clusters = 64, 500
	fixed := rand.New(rand.NewPCG(7, 7)) // the same space for all calls
	mix, centers := gauss(fixed, inner, dim), gauss(fixed, clusters, inner)
	vectors := make([]float32, n*dim)
	for i := range n {
		v, center := vectors[i*dim:(i+1)*dim], centers[rnd.IntN(clusters)*inner:]
		for j := range inner {
			w := center[j] + 0.7*float32(rnd.NormFloat64())
			for k, m := range mix[j*dim : (j+1)*dim] {
				v[k] += w * m
			}
		}
		length := float32(norm(v))
		for k := range v {
			v[k] /= length
		}
	}
	return vectors
}
