package bert

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/embed/kernel"
	"github.com/knowhow-mcp/knowhow/internal/embed/safetensors"
	"github.com/knowhow-mcp/knowhow/internal/embed/tokenizer"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Pack returns the file of a model with int8 weights that [ReadPacked] reads: the
// tensors of a BERT model, its config.json and its vocabulary. Tables of words
// have one scale for each row, matrices one for each column of the product, in the
// layout of package kernel. The other tensors are float32. maxTokens is the
// maximum length of a text; the file has no more positions. factors are those that
// [Smooth] returns. Every processor makes the same file.
func Pack(weights, configJSON []byte, vocabulary string, maxTokens int, factors []float32) ([]byte, error) {
	f, c, err := readBERT(weights, configJSON, maxTokens)
	if err != nil {
		return nil, err
	}
	if want := 2 * c.Layers * c.Hidden; len(factors) != want {
		return nil, fmt.Errorf("packing the model: %d factors, want %d: %w", len(factors), want, errkind.Invalid)
	}
	next := func() (of []float32) {
		of, factors = factors[:c.Hidden], factors[c.Hidden:]
		return of
	}
	p := &packer{tensors: map[string]safetensors.Tensor{}}
	p.rows(wordEmbeddings, f.Tensors[wordEmbeddings])
	positions := f.Tensors["embeddings.position_embeddings.weight"]
	v := p.values(positions)
	p.floats("embeddings.position_embeddings.weight", v[:maxTokens*c.Hidden], maxTokens, c.Hidden)
	for _, name := range []string{"embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight",
		"embeddings.LayerNorm.bias"} {
		p.floats(name, p.values(f.Tensors[name]), f.Tensors[name].Shape...)
	}
	for i := range c.Layers {
		attention, up := smoothed(i)
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		p.linears(f.Tensors, layer+"attention.self"+factorsSuffix, next(), attention...)
		p.linears(f.Tensors, "", nil, layer+"attention.output.dense")
		p.linears(f.Tensors, layer+"intermediate"+factorsSuffix, next(), up...)
		p.linears(f.Tensors, "", nil, layer+"output.dense")
		for _, name := range []string{"attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
			"output.LayerNorm.weight", "output.LayerNorm.bias"} {
			p.floats(layer+name, p.values(f.Tensors[layer+name]), c.Hidden)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	p.put(vocabularyName, "U8", []byte(vocabulary), len(vocabulary))
	c.Positions = maxTokens
	settings, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return safetensors.Append(nil, map[string]string{"format": packedFormat, "config": string(settings)}, p.names,
		p.tensors)
}

// readBERT reads a model for Pack and Smooth.
func readBERT(weights, configJSON []byte, maxTokens int) (*safetensors.File, *config, error) {
	f, err := safetensors.Parse(weights)
	if err != nil {
		return nil, nil, err
	}
	c, err := parseConfig(configJSON)
	if err != nil {
		return nil, nil, err
	}
	if maxTokens < minTokens || maxTokens > c.Positions {
		return nil, nil, fmt.Errorf("packing the model: %d tokens, want %d to %d: %w", maxTokens, minTokens,
			c.Positions, errkind.Invalid)
	}
	if _, ok := f.Tensors[wordEmbeddings]; !ok {
		return nil, nil, unsupported("packing a model whose tensors have other names")
	}
	if _, err := load(f.Tensors, c, false); err != nil {
		return nil, nil, err
	}
	return f, c, nil
}

// smoothed returns the names of the linear layers in a layer whose inputs are
// smoothed: those of the attention, which have a common input, and that of the
// feed-forward network.
func smoothed(layer int) (attention, up []string) {
	name := fmt.Sprintf("encoder.layer.%d.", layer)
	self := name + "attention.self."
	return []string{self + "query", self + "key", self + "value"}, []string{name + "intermediate.dense"}
}

// smoothing is the part of the differences between activations that moves to the
// weights. 0.5 to 0.8 are about equally good for all-MiniLM-L6-v2.
const smoothing = 0.75

// Smooth returns the factors by which [Pack] multiplies the weights of a model:
// for each layer, one for each component of the input of the attention, and one
// for each of the input of the feed-forward network. The components of the inputs
// are divided by them.
//
// Some components of the activations are much larger than others. The factors move
// a part of this difference to the weights (SmoothQuant, arXiv:2211.10438), which
// halves the error of the vectors. They depend a little on how the processor
// rounds.
func Smooth(ctx context.Context, weights, configJSON []byte, maxTokens int) ([]float32, error) {
	f, c, err := readBERT(weights, configJSON, maxTokens)
	if err != nil {
		return nil, err
	}
	m, err := load(f.Tensors, c, false)
	if err != nil {
		return nil, err
	}
	largest, err := m.largest(ctx, c, maxTokens)
	if err != nil {
		return nil, err
	}
	p := &packer{}
	var factors []float32
	add := func(largest []float32, names []string) {
		const least = 1e-3 // avoids extreme factors
		top := slices.Repeat([]float32{least}, c.Hidden)
		for _, name := range names {
			for i, w := range p.values(f.Tensors[name+".weight"]) {
				top[i%c.Hidden] = max(top[i%c.Hidden], w, -w)
			}
		}
		for k, t := range top {
			factors = append(factors, float32(math.Pow(float64(max(largest[k], least)), smoothing)/math.Pow(float64(t),
				1-smoothing)))
		}
	}
	for i := range c.Layers {
		attention, up := smoothed(i)
		add(largest[place{i, layerInput}], attention)
		add(largest[place{i, upInput}], up)
	}
	return factors, p.err
}

// largest returns the largest absolute value of each component of the activations
// at each place, for random tokens: texts are not needed, because some components
// are large for every token.
func (m *model) largest(ctx context.Context, c *config, maxTokens int) (map[place][]float32, error) {
	largest := map[place][]float32{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range min(128, maxTokens-1) {
		ids := []int32{101 % int32(c.Vocabulary)} // [CLS]
		for range n {
			ids = append(ids, rnd.Int32N(int32(c.Vocabulary)))
		}
		var b batch
		b.add(append(ids, 102%int32(c.Vocabulary))) // [SEP]
		_, err := m.encode(ctx, &b, &scratch{}, func(where place, x []float32) {
			if largest[where] == nil {
				largest[where] = make([]float32, c.Hidden)
			}
			for i, v := range x[:(n+2)*c.Hidden] {
				p := &largest[where][i%c.Hidden]
				*p = max(*p, v, -v)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return largest, nil
}

// A packer collects the tensors of a file. It keeps the first error.
type packer struct {
	names   []string
	tensors map[string]safetensors.Tensor
	err     error
}

// put adds a tensor.
func (p *packer) put(name, typ string, data []byte, shape ...int) {
	p.names = append(p.names, name)
	p.tensors[name] = safetensors.Tensor{Type: typ, Shape: shape, Data: data}
}

// values returns the numbers of a tensor.
func (p *packer) values(t safetensors.Tensor) []float32 {
	v, err := t.Float32()
	if p.err == nil {
		p.err = err
	}
	return v
}

// floats adds a tensor of float32.
func (p *packer) floats(name string, v []float32, shape ...int) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	p.put(name, "F32", b, shape...)
}

// rows adds a table with one scale for each row.
func (p *packer) rows(name string, t safetensors.Tensor) {
	codes, scale := quantizeRows(p.values(t), t.Shape[1])
	p.floats(name+scaleSuffix, scale, t.Shape[0])
	p.put(name, "I8", bytesOf(codes), t.Shape...)
}

// linears adds linear layers with a common input. factors, if not nil, are those
// of its components; their inverses are added under a name.
func (p *packer) linears(tensors map[string]safetensors.Tensor, inverseName string, factors []float32,
	names ...string) {
	inner := tensors[names[0]+".weight"].Shape[1]
	weights := make([][]float32, len(names))
	for i, name := range names {
		weights[i] = p.values(tensors[name+".weight"])
	}
	if factors != nil {
		inverse := make([]float32, inner)
		for k, factor := range factors {
			inverse[k] = 1 / factor
			for _, w := range weights {
				for at := k; at < len(w); at += inner {
					w[at] *= factor
				}
			}
		}
		p.floats(inverseName, inverse, inner)
	}
	for i, name := range names {
		columns := len(weights[i]) / inner
		codes, scale := quantizeRows(weights[i], inner)
		p.floats(name+".weight"+scaleSuffix, scale, columns)
		p.put(name+".weight", "I8", bytesOf(kernel.PackInt8(codes, inner, columns)), columns/kernel.Columns, inner/4,
			kernel.Columns, 4)
		bias := tensors[name+".bias"]
		p.floats(name+".bias", p.values(bias), bias.Shape...)
	}
}

// Names in a packed file.
const (
	packedFormat   = "knowhow packed BERT 1"
	vocabularyName = "vocab.txt"
)

// quantizeRows quantizes each row of n numbers.
func quantizeRows(v []float32, n int) (codes []int8, scale []float32) {
	codes = make([]int8, len(v))
	for at := 0; at < len(v); at += n {
		scale = append(scale, kernel.Quantize(codes[at:at+n], v[at:at+n]))
	}
	return codes, scale
}

// bytesOf returns numbers as bytes.
func bytesOf(v []int8) []byte {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	return b
}

// ReadPacked returns the encoder of a file that [Pack] has written. The encoder
// refers to data, which must not change. The file is trusted: its weights are not
// checked. A file of another format is an error of kind Corrupt.
func ReadPacked(data []byte, id string, o Options) (*Encoder, error) {
	f, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	if f.Metadata["format"] != packedFormat {
		return nil, fmt.Errorf("reading the packed model: its format is %.100q, want %q: %w", f.Metadata["format"],
			packedFormat, errkind.Corrupt)
	}
	c, err := parseConfig([]byte(f.Metadata["config"]))
	if err != nil {
		return nil, err
	}
	m, err := load(f.Tensors, c, true)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.ReadVocabulary(string(f.Tensors[vocabularyName].Data), tokenizer.Options{})
	if err != nil {
		return nil, err
	}
	if err := m.setTokenizer(t, c.Positions, c); err != nil {
		return nil, err
	}
	return newEncoder(m, id, nil, o), nil
}
