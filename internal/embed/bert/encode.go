package bert

import (
	"context"
	"math"
	"runtime"

	"github.com/knowhow-mcp/knowhow/internal/embed/kernel"
)

// A weights is the matrix of a linear layer. One of its fields is set.
type weights struct {
	int8    *kernel.Int8
	float32 *kernel.Float32
}

// A linear is a linear layer.
type linear struct {
	weights
	bias []float32
}

// A norm is a layer normalization.
type norm struct{ weight, bias []float32 }

// A layer is one layer of the encoder.
type layer struct {
	query, key, value linear
	output            linear // of the attention
	outputNorm        norm
	up, down          linear // of the feed-forward network
	downNorm          norm

	// Factors of the components of the inputs of query, key and value, and of
	// up, before these are quantized. The weights contain their inverse. nil
	// means 1.
	attentionFactors, upFactors []float32
}

// A table is a matrix of embeddings. Exactly one of float32 and int8 is set.
type table struct {
	float32 []float32
	int8    []int8
	scale   []float32 // by row of int8
}

// add adds a row of the table to x.
func (t *table) add(x []float32, row int) {
	n := len(x)
	if t.int8 != nil {
		scale := t.scale[row]
		for i, v := range t.int8[row*n:][:n] {
			x[i] += float32(float32(v) * scale)
		}
		return
	}
	for i, v := range t.float32[row*n:][:n] {
		x[i] += v
	}
}

// A batch is some texts that are encoded together.
type batch struct {
	ids   []int32 // tokens of all texts, one row each; rows that fill up a tile are 0
	texts []span
}

// A span is the rows of one text in a batch.
type span struct{ start, n int }

// add adds a text to the batch.
func (b *batch) add(ids []int32) {
	b.texts = append(b.texts, span{len(b.ids), len(ids)})
	b.ids = append(b.ids, ids...)
	for len(b.ids)%kernel.Rows != 0 {
		b.ids = append(b.ids, 0)
	}
}

// A scratch is the working memory of one encoder of texts. Its slices grow to the
// size of the largest batch.
type scratch struct {
	x, q, k, v, mixed, inner []float32
	keys, scores             []float32
	scaled                   []float32 // one row
	codes                    []int8
	scale                    []float32
	batch                    batch
}

// rows prepares the scratch for a batch of n rows.
func (s *scratch) rows(n int, m *model) {
	if len(s.x) >= n*m.hidden {
		return
	}
	for _, p := range []*[]float32{&s.x, &s.q, &s.k, &s.v, &s.mixed} {
		*p = make([]float32, n*m.hidden)
	}
	s.inner = make([]float32, n*m.intermediate)
	s.scale = make([]float32, n)
	s.scaled = make([]float32, m.hidden)
	s.codes = make([]int8, n*max(m.hidden, m.intermediate))
	// The scores of one head of one text: at most as many rows and columns as
	// the batch has rows.
	columns := kernel.RoundUp(n, kernel.Columns)
	s.keys = make([]float32, m.hidden/m.heads*columns)
	s.scores = make([]float32, n*columns)
}

// encode returns the output of the last layer, one row for each token of the
// batch. It is valid until the scratch is used again. watch, if not nil, is
// called with the input of each layer and of its feed-forward network, and with
// the output of the last layer.
func (m *model) encode(ctx context.Context, b *batch, s *scratch, watch func(where place, x []float32)) ([]float32,
	error) {
	n, h := len(b.ids), m.hidden
	s.rows(n, m)
	x := s.x[:n*h]
	clear(x)
	for _, t := range b.texts {
		for i := range t.n {
			row := x[(t.start+i)*h:][:h]
			m.words.add(row, int(b.ids[t.start+i]))
			m.positions.add(row, i)
			m.types.add(row, 0)
		}
	}
	layerNorm(x, h, m.embedNorm.weight, m.embedNorm.bias, m.epsilon)
	for i := range m.layers {
		if watch != nil {
			watch(place{i, layerInput}, x)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runtime.Gosched() // what waits for a processor need not wait for the whole text
		l := &m.layers[i]
		in := s.input(x, n, h, &l.query.weights, l.attentionFactors)
		l.query.apply(s.q, in, n)
		l.key.apply(s.k, in, n)
		l.value.apply(s.v, in, n)
		for _, t := range b.texts {
			m.attend(t, s)
		}
		l.output.apply(s.q, s.input(s.mixed, n, h, &l.output.weights, nil), n)
		add(x, s.q)
		layerNorm(x, h, l.outputNorm.weight, l.outputNorm.bias, m.epsilon)
		if watch != nil {
			watch(place{i, upInput}, x)
		}
		l.up.apply(s.inner, s.input(x, n, h, &l.up.weights, l.upFactors), n)
		kernel.GELU(s.inner[:n*m.intermediate])
		l.down.apply(s.q, s.input(s.inner, n, m.intermediate, &l.down.weights, nil), n)
		add(x, s.q)
		layerNorm(x, h, l.downNorm.weight, l.downNorm.bias, m.epsilon)
	}
	if watch != nil {
		watch(place{len(m.layers), layerInput}, x)
	}
	return x, nil
}

// A place is a point of the computation. The output of the last layer is the input
// of one that does not exist.
type place struct {
	layer int
	point point
}

// A point is a point in a layer.
type point int

const (
	layerInput point = iota
	upInput
)

// multiply sets dst to the products of the numbers of x and y, and returns it.
func multiply(dst, x, y []float32) []float32 {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * y[i]
	}
	return dst
}

// add adds y to x.
func add(x, y []float32) {
	y = y[:len(x)]
	for i, v := range y {
		x[i] += v
	}
}

// An activations is the input of linear layers: float32, or int8 with a scale for
// each row.
type activations struct {
	float32 []float32
	int8    []int8
	scale   []float32
}

// input prepares n rows of x as the input of a layer with these weights.
func (s *scratch) input(x []float32, n, width int, w *weights, factors []float32) activations {
	if w.int8 == nil {
		return activations{float32: x}
	}
	for i := range n {
		row := x[i*width:][:width]
		if factors != nil {
			row = multiply(s.scaled, row, factors)
		}
		s.scale[i] = kernel.Quantize(s.codes[i*width:][:width], row)
	}
	return activations{int8: s.codes[:n*width], scale: s.scale[:n]}
}

// apply computes n rows of the layer's output.
func (l *linear) apply(dst []float32, in activations, n int) {
	if l.int8 != nil {
		kernel.MultiplyInt8(dst, in.int8, in.scale, n, l.int8, l.bias)
		return
	}
	kernel.MultiplyFloat32(dst, in.float32, n, l.float32, l.bias)
}

// attend computes the attention of one text from s.q, s.k and s.v to s.mixed.
func (m *model) attend(t span, s *scratch) {
	h := m.hidden
	size := h / m.heads
	rows := kernel.RoundUp(t.n, kernel.Rows)
	columns := kernel.RoundUp(t.n, kernel.Columns)
	scale := float32(1 / math.Sqrt(float64(size)))
	keys, scores := s.keys[:size*columns], s.scores[:rows*columns]
	for head := range m.heads {
		at := t.start*h + head*size
		// Transpose the keys.
		for j := range t.n {
			for i, v := range s.k[at+j*h:][:size] {
				keys[i*columns+j] = v * scale
			}
		}
		for i := range size {
			clear(keys[i*columns+t.n : (i+1)*columns])
		}
		kernel.Multiply(kernel.Matrix{Data: scores, Stride: columns}, kernel.Matrix{Data: s.q[at:], Stride: h},
			kernel.Matrix{Data: keys, Stride: columns}, rows, size, columns)
		for i := range rows {
			kernel.Softmax(scores[i*columns:][:columns], t.n)
		}
		kernel.Multiply(kernel.Matrix{Data: s.mixed[at:], Stride: h}, kernel.Matrix{Data: scores, Stride: columns},
			kernel.Matrix{Data: s.v[at:], Stride: h}, rows, t.n, size)
	}
}

// pool returns the vector of a text from the output of the last layer.
func (m *model) pool(x []float32, t span) []float32 {
	h := m.hidden
	v := make([]float32, h)
	rows := x[t.start*h:][:t.n*h]
	switch m.pooling {
	case poolFirst:
		copy(v, rows)
	case poolMax:
		copy(v, rows)
		for ; len(rows) > 0; rows = rows[h:] {
			for i := range v {
				v[i] = max(v[i], rows[i])
			}
		}
	case poolMean: // this is the sum, of the same direction
		for ; len(rows) > 0; rows = rows[h:] {
			add(v, rows[:h])
		}
	}
	return v
}
