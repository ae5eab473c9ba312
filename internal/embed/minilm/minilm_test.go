package minilm

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
)

// A reference has the vectors of sentence-transformers for some texts with the weights
// in float32.
type reference struct {
	Texts []struct {
		Name      string
		Text      string
		Embedding []float32
	}
}

// readReference reads the testdata.
func readReference(t *testing.T) *reference {
	t.Helper()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Texts) < 50 {
		t.Fatalf("the reference has %d texts, want at least 50", len(r.Texts))
	}
	return &r
}

// dot returns the cosine of two vectors of length 1.
func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestReference checks that the vectors are close to those of the weights in
// float32.
func TestReference(t *testing.T) {
	r := readReference(t)
	var texts []string
	for _, tt := range r.Texts {
		texts = append(texts, tt.Text)
	}
	e := New(bert.Options{})
	vectors, err := e.Embed(t.Context(), texts, embed.Document)
	if err != nil {
		t.Fatal(err)
	}
	least, sum := 1.0, 0.0
	for i, tt := range r.Texts {
		if len(vectors[i]) != dimension || math.Abs(dot(vectors[i], vectors[i])-1) > 1e-5 {
			t.Fatalf("%s: the vector has %d components and the square norm %v", tt.Name, len(vectors[i]),
				dot(vectors[i], vectors[i]))
		}
		c := dot(vectors[i], tt.Embedding)
		least, sum = min(least, c), sum+c
		if c < 0.99 {
			t.Errorf("%s: cosine %.4f to the original, want at least 0.99", tt.Name, c)
		}
	}
	t.Logf("cosine to the original: least %.4f, mean %.4f", least, sum/float64(len(texts)))
}

// TestOptions checks the limit of tokens, embedders made by With, and foreign texts.
func TestOptions(t *testing.T) {
	e := New(bert.Options{MaxTokens: 5})
	short := e.With(bert.Options{MaxTokens: 3, Threads: 1})
	if e.MaxTokens() != 5 || short.MaxTokens() != 3 || New(bert.Options{MaxTokens: 1000}).MaxTokens() != 256 {
		t.Errorf("MaxTokens() = %d, %d", e.MaxTokens(), short.MaxTokens())
	}
	for _, e := range []*Embedder{e, short} {
		encoder, err := e.encoder()
		if err != nil {
			t.Fatal(err)
		}
		if encoder.ID() != e.ID() || encoder.Dimension() != e.Dimension() || encoder.MaxTokens() != e.MaxTokens() {
			t.Errorf("the encoder is %s with %d components and %d tokens, the embedder %s with %d and %d",
				encoder.ID(), encoder.Dimension(), encoder.MaxTokens(), e.ID(), e.Dimension(), e.MaxTokens())
		}
	}
	got, err := e.Embed(t.Context(), []string{"one two three", "one two three four"}, embed.Query)
	if err != nil || dot(got[0], got[1]) < 0.99999 {
		t.Errorf("texts with the same first tokens have other vectors, error %v", err)
	}
	for text, want := range map[string]bool{words: false, "naïve café déjà vu": false,
		"kubectl rollout status -n prod": false, "λ calculus": false,
		"パスワードを変更する方法": true, "如何更改密码": true, "비밀번호 변경": true, "как сменить пароль": true, "password 変更 方法 教えて": true} {
		if got := embed.Foreign(e, text); got != want {
			t.Errorf("Foreign(%q) = %v, want %v", text, got, want)
		}
	}
}

// words are a query of ten words.
const words = "how do I change the password of my mail account"

// BenchmarkLoad reads the model, as the first use of an embedder does.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := New(bert.Options{}).encoder(); err != nil {
			b.Fatal(err)
		}
	}
}
