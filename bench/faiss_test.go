package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/vector"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"
)

// BenchmarkFaiss compares searches of package vector with those of FAISS, which
// take turns. FAISS_PYTHON is a Python that has faiss-cpu; FAISS_ROWS is the
// number of vectors.
func BenchmarkFaiss(b *testing.B) {
	python := os.Getenv("FAISS_PYTHON")
	if python == "" {
		b.Skip("FAISS_PYTHON is not set; run bench/faiss")
	}
	const dim, count = 384, 64
	rows := 100_000
	if s := os.Getenv("FAISS_ROWS"); s != "" {
		var err error
		if rows, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	vectors := embeddings(rnd, rows+count, dim)
	vectors, flat := vectors[:rows*dim], vectors[rows*dim:]
	dir := b.TempDir()
	index, err := os.Create(filepath.Join(dir, "index"))
	if err != nil {
		b.Fatal(err)
	}
	if err := faiss.WriteFlat(index, faiss.InnerProduct, dim, vectors); err != nil {
		b.Fatal(err)
	}
	if err := index.Close(); err != nil {
		b.Fatal(err)
	}
	var raw []byte
	for _, f := range flat {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	if err := os.WriteFile(filepath.Join(dir, "queries"), raw, 0o600); err != nil {
		b.Fatal(err)
	}
	queries := make([][]float32, count)
	for i := range queries {
		queries[i] = flat[i*dim : (i+1)*dim]
	}
	x, err := vector.New(vectors, dim, vector.InnerProduct)
	if err != nil {
		b.Fatal(err)
	}

	cmd := exec.Command(python, "faiss_peer.py", index.Name(), filepath.Join(dir, "queries"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	}()
	lines := bufio.NewReader(out)
	ask := func(question string) string {
		if question != "" {
			fmt.Fprintln(in, question)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	b.Logf("FAISS %s", ask(""))

	// Both must find the same vectors. FAISS computes with float32, so a few
	// nearly equal ones may differ.
	found, err := x.SearchBatch(b.Context(), queries, 10, vector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ids := strings.Fields(ask("ids"))
	same := 0
	for i, hits := range found {
		for _, h := range hits {
			for _, id := range ids[10*i : 10*i+10] {
				if id == strconv.Itoa(h.Row) {
					same++
				}
			}
		}
	}
	recall := float64(same) / float64(10*count)
	if recall < 0.995 {
		b.Errorf("recall@10 against FAISS is %v", recall)
	}

	for _, c := range []struct{ batch, threads int }{{1, 1}, {1, 2}, {32, 1}, {32, 2}} {
		b.Run(fmt.Sprintf("batch-%d-threads-%d", c.batch, c.threads), func(b *testing.B) {
			ours, theirs := time.Hour, time.Hour
			for i := range b.N {
				at := i * c.batch % (count - c.batch + 1)
				for range 3 {
					start := time.Now()
					if _, err := x.SearchBatch(b.Context(), queries[at:at+c.batch], 10, vector.Options{Threads: c.threads}); err != nil {
						b.Fatal(err)
					}
					ours = min(ours, time.Since(start)/time.Duration(c.batch))
				}
				ns, err := strconv.Atoi(ask(fmt.Sprintf("%d %d 3", c.batch, c.threads)))
				if err != nil {
					b.Fatal(err)
				}
				theirs = min(theirs, time.Duration(ns))
			}
			b.ReportMetric(ours.Seconds()*1e3, "best-ms/query")
			b.ReportMetric(theirs.Seconds()*1e3, "FAISS-best-ms/query")
			b.ReportMetric(recall, "recall@10")
			b.ReportMetric(0, "ns/op") // the time of both together means nothing
		})
	}
}

// embeddings returns n unit vectors that are distributed like embeddings: 500
// clusters in a space of 64 dimensions.
func embeddings(rnd *rand.Rand, n, dim int) []float32 {
	const inner, clusters = 64, 500
	normal := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rnd.NormFloat64())
		}
		return v
	}
	mix, centers := normal(inner*dim), normal(clusters*inner)
	vectors := make([]float32, n*dim)
	for i := range n {
		v, center := vectors[i*dim:(i+1)*dim], centers[rnd.IntN(clusters)*inner:]
		for j := range inner {
			w := center[j] + 0.7*float32(rnd.NormFloat64())
			for k, m := range mix[j*dim : (j+1)*dim] {
				v[k] += w * m
			}
		}
		var sum float64
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		for k := range v {
			v[k] /= float32(math.Sqrt(sum))
		}
	}
	return vectors
}
