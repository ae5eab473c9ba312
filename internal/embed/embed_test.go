package embed

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestModelName(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"},
		{" all-MiniLM-L6-v2/ ", "all-minilm-l6-v2"},
		{"all-minilm-l6-v2@int8-1", "all-minilm-l6-v2"},
		{"all-minilm", "all-minilm-l6-v2"},
		{"all-minilm:latest", "all-minilm-l6-v2"},
		{"all-minilm:22m", "all-minilm-l6-v2"},
		{"all-minilm:l6-v2", "all-minilm-l6-v2"},
		{"all-minilm:33m", "all-minilm-l12-v2"},
		{"all-minilm:33m-l12-v2-fp16", "all-minilm-l12-v2"},
		{"all-minilm:l12-v2", "all-minilm-l12-v2"},
		{"nomic-embed-text:v1.5", "nomic-embed-text-v1.5"},
		{"mxbai-embed-large", "mxbai-embed-large-v1"},
		{"BAAI/bge-small-en-v1.5", "bge-small-en-v1.5"},
		{"snowflake-arctic-embed:22m", "snowflake-arctic-embed-xs"},
		{"text-embedding-3-small", "text-embedding-3-small"},
		{"", ""},
	} {
		if got := ModelName(tt.name); got != tt.want {
			t.Errorf("ModelName(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNormalize(t *testing.T) {
	v := []float32{3, -4}
	if !Normalize(v) || v[0] != 0.6 || v[1] != -0.8 {
		t.Errorf("Normalize() = %v", v)
	}
	huge := []float32{math.MaxFloat32, 0}
	if !Normalize(huge) || huge[0] != 1 {
		t.Errorf("Normalize() of a huge vector = %v", huge)
	}
	for _, v := range [][]float32{nil, {0, 0}, {float32(math.NaN())}, {float32(math.Inf(1)), 1}} {
		if Normalize(v) {
			t.Errorf("Normalize() of a vector without a direction = true, %v", v)
		}
	}
}

// plain is an embedder that cannot tell foreign texts.
type plain struct{}

func (plain) Embed(context.Context, []string, Kind) ([][]float32, error) { return nil, nil }
func (plain) ID() string                                                 { return "" }
func (plain) Dimension() int                                             { return 0 }
func (plain) MaxTokens() int                                             { return 0 }

// telling is an embedder to which texts with an x are foreign.
type telling struct{ plain }

func (telling) Foreign(text string) bool { return strings.Contains(text, "x") }

func TestForeign(t *testing.T) {
	if Foreign(plain{}, "x") || Foreign(telling{}, "y") || !Foreign(telling{}, "x") {
		t.Error("Foreign() is not what the embedder reports")
	}
}

func TestReadFile(t *testing.T) {
	files := fstest.MapFS{"a": {Data: []byte("12345")}, "d/x": {}}
	if data, err := ReadFile(files, "a", 5); err != nil || string(data) != "12345" {
		t.Errorf("ReadFile() = %q, %v", data, err)
	}
	for _, tt := range []struct {
		name string
		kind error
	}{{"a", errkind.TooLarge}, {"b", errkind.NotFound}, {"d", errkind.Invalid}} {
		if _, err := ReadFile(files, tt.name, 4); !errors.Is(err, tt.kind) {
			t.Errorf("ReadFile(%s) = %v, want kind %v", tt.name, err, tt.kind)
		}
	}
}

// A slow embedder needs 10 ms for each call, and fails after some.
type slow struct {
	Embedder
	calls int
}

func (s *slow) Embed(_ context.Context, texts []string, _ Kind) ([][]float32, error) {
	if s.calls--; s.calls < 0 {
		return nil, errkind.Unavailable
	}
	time.Sleep(10 * time.Millisecond)
	return make([][]float32, len(texts)), nil
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := runtime.GOMAXPROCS(0)
		for _, tt := range []struct {
			texts, calls int
			limit        time.Duration
			want         int
			err          error
		}{
			{texts: 9 * n, calls: 9, limit: 35 * time.Millisecond, want: 3 * n}, // a fourth round would not end in time
			{texts: 9 * n, calls: 9, limit: time.Millisecond, want: n},
			{texts: 9 * n, calls: 9, limit: 0, want: 0},
			{texts: n + 1, calls: 9, limit: time.Second, want: n + 1},
			{texts: 9 * n, calls: 2, limit: time.Second, want: 2 * n, err: errkind.Unavailable},
		} {
			got, err := Within(t.Context(), &slow{calls: tt.calls}, make([]string, tt.texts), tt.limit)
			if len(got) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Within() of %d texts in %v = %d vectors, %v, want %d, %v", tt.texts, tt.limit, len(got), err,
					tt.want, tt.err)
			}
		}
	})
}
