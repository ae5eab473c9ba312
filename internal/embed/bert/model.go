package bert

import (
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/embed/kernel"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/embed/tokenizer"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A model is the weights and settings of an encoder. It does not change.
type model struct {
	hidden, heads, intermediate int
	epsilon                     float64
	words, positions, types     table
	embedNorm                   norm
	layers                      []layer
	pooling                     pooling
	normalize                   bool // it gives vectors a norm of 1
	tokenizer                   *tokenizer.Tokenizer
	maxTokens                   int // of a text, with special tokens
}

// A pooling is the way from the vectors of tokens to that of a text.
type pooling int

const (
	poolMean  pooling = iota
	poolFirst         // that of [CLS]
	poolMax
)

// A config has the members of a config.json that this package reads.
type config struct {
	Type          string  `json:"model_type"`
	Hidden        int     `json:"hidden_size"`
	Layers        int     `json:"num_hidden_layers"`
	Heads         int     `json:"num_attention_heads"`
	Intermediate  int     `json:"intermediate_size"`
	Positions     int     `json:"max_position_embeddings"`
	Types         int     `json:"type_vocab_size"`
	Vocabulary    int     `json:"vocab_size"`
	Epsilon       float64 `json:"layer_norm_eps"`
	Activation    string  `json:"hidden_act"`
	PositionTypes string  `json:"position_embedding_type"`
}

// parseConfig reads and checks a config.json.
func parseConfig(data []byte) (*config, error) {
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("reading config.json: %v: %w", err, errkind.Corrupt)
	}
	switch {
	case c.Type != "bert":
		return nil, unsupported("a model of type %.50q", c.Type)
	case c.Activation != "gelu":
		return nil, unsupported("the activation %.50q", c.Activation)
	case c.PositionTypes != "" && c.PositionTypes != "absolute":
		return nil, unsupported("position embeddings of type %.50q", c.PositionTypes)
	}
	for _, f := range []struct {
		name       string
		value, max int
	}{{"hidden_size", c.Hidden, 8192}, {"num_hidden_layers", c.Layers, 128}, {"num_attention_heads", c.Heads, 256},
		{"intermediate_size", c.Intermediate, 65536}, {"max_position_embeddings", c.Positions, 65536},
		{"type_vocab_size", c.Types, 1024}, {"vocab_size", c.Vocabulary, 1 << 22}} {
		if f.value < 1 || f.value > f.max {
			return nil, fmt.Errorf("reading config.json: %s is %d, want 1 to %d: %w", f.name, f.value, f.max,
				errkind.Corrupt)
		}
	}
	if c.Hidden%c.Heads != 0 || c.Hidden/c.Heads%kernel.Columns != 0 || c.Intermediate%kernel.Columns != 0 {
		return nil, unsupported("a model whose sizes are not multiples of %d (hidden_size %d, %d heads, intermediate_size %d)",
			kernel.Columns, c.Hidden, c.Heads, c.Intermediate)
	}
	if !(c.Epsilon >= 0 && c.Epsilon < 1) {
		return nil, fmt.Errorf("reading config.json: layer_norm_eps is %v: %w", c.Epsilon, errkind.Corrupt)
	}
	return &c, nil
}

// A loader reads the tensors of a model. It keeps the first error.
type loader struct {
	tensors map[string]safetensors.Tensor
	prefix  string // of all names
	packed  bool   // matrices are packed int8, as Pack writes them
	err     error
}

// load returns the model with these tensors and settings.
func load(tensors map[string]safetensors.Tensor, c *config, packed bool) (*model, error) {
	l := &loader{tensors: tensors, packed: packed}
	if _, ok := tensors["bert."+wordEmbeddings]; ok {
		l.prefix = "bert."
	}
	m := &model{hidden: c.Hidden, heads: c.Heads, intermediate: c.Intermediate, epsilon: c.Epsilon}
	m.words = l.table(wordEmbeddings, c.Vocabulary, c.Hidden)
	m.positions = l.table("embeddings.position_embeddings.weight", c.Positions, c.Hidden)
	m.types = l.table("embeddings.token_type_embeddings.weight", c.Types, c.Hidden)
	m.embedNorm = l.norm("embeddings.LayerNorm", c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		m.layers = append(m.layers, layer{
			query:      l.linear(p+"attention.self.query", c.Hidden, c.Hidden),
			key:        l.linear(p+"attention.self.key", c.Hidden, c.Hidden),
			value:      l.linear(p+"attention.self.value", c.Hidden, c.Hidden),
			output:     l.linear(p+"attention.output.dense", c.Hidden, c.Hidden),
			outputNorm: l.norm(p+"attention.output.LayerNorm", c.Hidden),
			up:         l.linear(p+"intermediate.dense", c.Hidden, c.Intermediate),
			down:       l.linear(p+"output.dense", c.Intermediate, c.Hidden),
			downNorm:   l.norm(p+"output.LayerNorm", c.Hidden),
		})
		if packed {
			last := &m.layers[i]
			last.attentionFactors = l.floats(p+"attention.self"+factorsSuffix, c.Hidden)
			last.upFactors = l.floats(p+"intermediate"+factorsSuffix, c.Hidden)
		}
		if l.err != nil {
			return nil, l.err
		}
	}
	return m, l.err
}

const wordEmbeddings = "embeddings.word_embeddings.weight"

// tensor returns a tensor of this shape.
func (l *loader) tensor(name string, shape ...int) safetensors.Tensor {
	t, ok := l.tensors[l.prefix+name]
	if !ok || !t.Has(shape...) {
		l.fail(fmt.Errorf("reading the model: tensor %s is missing or does not have the shape %v: %w", name, shape,
			errkind.Corrupt))
		return safetensors.Tensor{}
	}
	return t
}

// floats returns the numbers of a tensor of this shape, as many as the shape has.
func (l *loader) floats(name string, shape ...int) []float32 {
	t := l.tensor(name, shape...)
	if l.err != nil {
		return nil
	}
	v, err := t.Float32()
	if err != nil {
		l.fail(fmt.Errorf("reading tensor %s of the model: %w", name, err))
	}
	return v
}

// fail keeps the first error.
func (l *loader) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// table reads a table of embeddings.
func (l *loader) table(name string, rows, columns int) table {
	if l.packed && l.tensors[name].Type == "I8" {
		return table{int8: int8s(l.tensor(name, rows, columns)), scale: l.floats(name+scaleSuffix, rows)}
	}
	return table{float32: l.floats(name, rows, columns)}
}

// norm reads the weights of a layer normalization. Old files call them gamma and
// beta.
func (l *loader) norm(name string, n int) norm {
	if _, ok := l.tensors[l.prefix+name+".gamma"]; ok {
		return norm{l.floats(name+".gamma", n), l.floats(name+".beta", n)}
	}
	return norm{l.floats(name+".weight", n), l.floats(name+".bias", n)}
}

// linear reads a linear layer.
func (l *loader) linear(name string, inner, columns int) linear {
	layer := linear{bias: l.floats(name+".bias", columns)}
	if l.packed {
		t := l.tensor(name+".weight", columns/kernel.Columns, inner/4, kernel.Columns, 4)
		layer.int8 = &kernel.Int8{Inner: inner, Columns: columns, Weights: int8s(t),
			Scale: l.floats(name+".weight"+scaleSuffix, columns)}
		return layer
	}
	w := l.floats(name+".weight", columns, inner)
	if l.err == nil {
		layer.float32 = &kernel.Float32{Inner: inner, Columns: columns, Weights: kernel.PackFloat32(w, inner, columns)}
	}
	return layer
}

// Suffixes of the names of tensors in packed files.
const (
	scaleSuffix   = "_scale"         // of the scales of a tensor of int8
	factorsSuffix = ".input_factors" // of the factors of the components of an input
)

// int8s returns the values of a tensor without a copy.
func int8s(t safetensors.Tensor) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data))
}

// unsupported returns an error of kind Unsupported.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("reading the model: "+format+" is not supported; use a BERT model such as all-MiniLM-L6-v2 or bge-small-en-v1.5: %w",
		append(args, errkind.Unsupported)...)
}
