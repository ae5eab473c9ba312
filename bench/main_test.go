// Package bench measures the compiled program as a client: over pipes and over
// HTTP. It contains only benchmarks; bench/run runs them and prints the results
// as a table.
//
// Environment:
//
//	KNOWHOW_BIN  the program; built if it is not set
//	BENCH_DIR    folder for corpora and indexes, kept between runs; by default
//	             knowhow-bench in the user's cache folder
//	KNOWHOW_EMBEDDER the model; none if it is not set
//	DEBIAN_DOCS  folder that bench/debian-docs filled
//	DEBIAN_DOCS_SECOND, DEBIAN_DOCS_LANGUAGES  the same with -second and -languages
//	DEBIAN_DOCS_ADMINISTRATION, DEBIAN_DOCS_PROGRAMMING  with -administration and -programming
//	ANSWERS_PEERS folder that bench/answers-peers filled
//	MIXED_DOCS   folder that bench/mixed filled
//	OLD_BIN      another version of the program, for bench/mixed and bench/answers
//	CRANFIELD    folder of the Cranfield collection
//	FAISS_PYTHON a Python with faiss-cpu; bench/faiss installs one
//	DATASETS_PYTHON a Python with the packages that bench/datasets installs
package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// builtProgram returns the path of the program, building it where none is named.
var builtProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("KNOWHOW_BIN"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := benchDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "knowhow")
	cmd := exec.Command("go", "build", "-o", path, "github.com/knowhow-mcp/knowhow/cmd/knowhow")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

// program returns the path of the program.
func program(b *testing.B) string {
	b.Helper()
	path, err := builtProgram()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// benchDir returns the folder for corpora and indexes.
func benchDir() (string, error) {
	dir := os.Getenv("BENCH_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for the corpora: %w; set BENCH_DIR", err)
		}
		dir = filepath.Join(cache, "knowhow-bench")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// workDir is benchDir for a benchmark.
func workDir(b testing.TB) string {
	b.Helper()
	dir, err := benchDir()
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// fileHash returns a hash of a file's bytes.
func fileHash(b *testing.B, path string) string {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Times are measured durations.
type Times []time.Duration

// at returns the p-th quantile, with p in 0..1, by the nearest-rank method.
func (t Times) at(p float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t))
	rank := int(p*float64(len(s)) + 0.999999)
	return s[min(max(rank-1, 0), len(s)-1)]
}

// ms returns d in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// report reports quantiles of t in milliseconds.
func (t Times) report(b *testing.B, high float64) {
	b.ReportMetric(0, "ns/op") // the loop also contains work that is not measured
	b.ReportMetric(ms(t.at(0.5)), "p50-ms")
	b.ReportMetric(ms(t.at(high)), fmt.Sprintf("p%.0f-ms", 100*high))
}

func TestTimesAt(t *testing.T) {
	hundred := make(Times, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		t    Times
		p    float64
		want time.Duration
	}{
		{nil, 0.5, 0}, {Times{7}, 0.5, 7}, {Times{7}, 0.99, 7}, {Times{3, 1, 2}, 0.5, 2}, {Times{4, 1, 3, 2}, 0.5, 2},
		{hundred, 0.5, 50}, {hundred, 0.95, 95}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
	} {
		if got := c.t.at(c.p); got != c.want {
			t.Errorf("Times(%d of them).at(%v) = %d, want %d", len(c.t), c.p, got, c.want)
		}
	}
}

// ended reports whether err means that a process exited with a status, not
// because of a signal.
func ended(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return err == nil || ok
}

// maxWait is the maximum time of any wait for the program.
const maxWait = 30 * time.Minute

// waitContext returns a context that ends after the benchmark's cleanup or
// after maxWait.
func waitContext(b *testing.B) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), maxWait)
	b.Cleanup(cancel)
	return ctx
}
