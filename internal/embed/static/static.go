// Package static is an embedder with a table of one vector for each token, as
// model2vec makes (https://github.com/MinishLab/model2vec). The vector of a text is
// the mean of those of its tokens.
package static

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/embed/tokenizer"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxTokens is the number of tokens of a text that are read, the default of
// model2vec.
const maxTokens = 512

// An Embedder looks tokens up in a table. It implements embed.Embedder.
type Embedder struct {
	id        string
	tokenizer *tokenizer.Tokenizer
	dimension int
	rows      []float32 // dimension numbers for each row
	row       []int32   // of each token; nil means the token's number
	weight    []float32 // of each token; nil means 1
	maxRunes  int       // of a text
}

// Open reads the model in a folder: model.safetensors and tokenizer.json, either
// there (model2vec) or in 0_StaticEmbedding (sentence-transformers).
//
// A missing folder or file is an error of kind NotFound, a damaged file one of
// kind Corrupt, and a tokenizer that cannot be read one of kind Unsupported.
func Open(dir string) (*Embedder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the model: %w", err)
	}
	return open(os.DirFS(dir), filepath.Base(abs))
}

// open reads the model in a folder with this name.
func open(files fs.FS, name string) (*Embedder, error) {
	if _, err := fs.Stat(files, "model.safetensors"); errors.Is(err, fs.ErrNotExist) {
		if sub, err := fs.Sub(files, "0_StaticEmbedding"); err == nil {
			files = sub
		}
	}
	data, err := embed.ReadFile(files, "model.safetensors", 4<<30)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading model.safetensors: %w", err)
	}
	tokens, err := embed.ReadFile(files, "tokenizer.json", 64<<20)
	if err != nil {
		return nil, err
	}
	e := &Embedder{}
	if e.tokenizer, err = tokenizer.Read(tokens); err != nil {
		return nil, err
	}
	if err := e.load(f.Tensors); err != nil {
		return nil, err
	}
	hash := sha256.New()
	hash.Write(tokens)
	hash.Write(data)
	e.id = fmt.Sprintf("%s@%x", embed.ModelName(name), hash.Sum(nil)[:6])
	return e, nil
}

// load reads the tensors.
func (e *Embedder) load(tensors map[string]safetensors.Tensor) error {
	t, ok := tensors["embeddings"]
	if !ok {
		t, ok = tensors["embedding.weight"]
	}
	if !ok || len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
		return fmt.Errorf("reading the model: it has no table of embeddings; use a BERT or a model2vec model: %w",
			errkind.Corrupt)
	}
	var err error
	if e.rows, err = t.Float32(); err != nil {
		return fmt.Errorf("reading the table of embeddings: %w", err)
	}
	rows := t.Shape[0]
	e.dimension = t.Shape[1]
	size := e.tokenizer.Size()
	if t, ok := tensors["mapping"]; ok {
		if e.row, err = integers(t); err != nil {
			return err
		}
		if len(e.row) < size || slices.Min(e.row) < 0 || int(slices.Max(e.row)) >= rows {
			return fmt.Errorf("reading the model: its mapping does not fit its %d tokens and %d embeddings: %w", size,
				rows, errkind.Corrupt)
		}
	} else if rows < size {
		return fmt.Errorf("reading the model: it has %d embeddings for %d tokens: %w", rows, size, errkind.Corrupt)
	}
	if t, ok := tensors["weights"]; ok {
		if e.weight, err = t.Float32(); err != nil {
			return fmt.Errorf("reading the weights of tokens: %w", err)
		}
		if len(e.weight) < size {
			return fmt.Errorf("reading the model: it has %d weights for %d tokens: %w", len(e.weight), size,
				errkind.Corrupt)
		}
	}
	e.maxRunes = maxTokens * e.medianLength()
	return nil
}

// integers returns the values of a tensor of integers.
func integers(t safetensors.Tensor) ([]int32, error) {
	var out []int32
	switch t.Type {
	case "I32":
		for b := t.Data; len(b) >= 4; b = b[4:] {
			out = append(out, int32(binary.LittleEndian.Uint32(b)))
		}
	case "I64":
		for b := t.Data; len(b) >= 8; b = b[8:] {
			v := int64(binary.LittleEndian.Uint64(b))
			if v != int64(int32(v)) {
				v = -1
			}
			out = append(out, int32(v))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading the model: its mapping has the type %.20q and %d bytes: %w", t.Type,
			len(t.Data), errkind.Corrupt)
	}
	return out, nil
}

// medianLength returns the median length of tokens in characters. model2vec cuts
// texts by it before it splits them.
func (e *Embedder) medianLength() int {
	var lengths []int
	for token := range e.tokenizer.Vocabulary() {
		lengths = append(lengths, utf8.RuneCountInString(token))
	}
	if len(lengths) == 0 {
		return 1
	}
	slices.Sort(lengths)
	n := len(lengths)
	return max((lengths[(n-1)/2]+lengths[n/2])/2, 1)
}

// ID implements embed.Embedder.
func (e *Embedder) ID() string { return e.id }

// Dimension implements embed.Embedder.
func (e *Embedder) Dimension() int { return e.dimension }

// MaxTokens implements embed.Embedder.
func (e *Embedder) MaxTokens() int { return maxTokens }

// Foreign reports whether most words of a text are foreign to the model. See
// [tokenizer.Tokenizer.Foreign].
func (e *Embedder) Foreign(text string) bool { return e.tokenizer.Foreign(text) }

// Embed implements embed.Embedder. The only error is that of ctx.
func (e *Embedder) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("encoding texts: %w", err)
		}
		out[i] = e.vector(text)
	}
	return out, nil
}

// vector returns the vector of a text. It is zero if the table has no token of it.
func (e *Embedder) vector(text string) []float32 {
	runes := 0
	for i := range text {
		if runes == e.maxRunes {
			text = text[:i]
			break
		}
		runes++
	}
	v := make([]float32, e.dimension)
	n := 0
	// Unknown tokens are left out before the tokens are counted.
	for _, id := range e.tokenizer.Append(nil, text, len(text)+1) {
		if id == e.tokenizer.Unknown() {
			continue
		}
		if n++; n > maxTokens {
			break
		}
		row, weight := id, float32(1)
		if e.row != nil {
			row = e.row[id]
		}
		if e.weight != nil {
			weight = e.weight[id]
		}
		for j, x := range e.rows[int(row)*e.dimension:][:e.dimension] {
			v[j] += x * weight
		}
	}
	embed.Normalize(v) // the mean has the same direction as the sum
	return v
}

// Is reports whether the folder has a model of this kind.
func Is(dir string) bool {
	files := os.DirFS(dir)
	if _, err := fs.Stat(files, "0_StaticEmbedding"); err == nil {
		return true
	}
	data, err := embed.ReadFile(files, "config.json", 1<<20)
	var c struct {
		Type   string `json:"model_type"`
		Hidden int    `json:"hidden_size"`
	}
	return err == nil && json.Unmarshal(data, &c) == nil && (c.Type == "model2vec" || c.Type == "" && c.Hidden == 0)
}
