// Package bert runs BERT encoders, such as all-MiniLM-L6-v2, on the processor. It
// reads the folders of models that the sentence-transformers library reads.
//
// Matrices are multiplied by package kernel. Models from folders are computed in
// float32; those that Pack has written in int8 weights and activations, which is
// faster and changes the vectors by about 1 % of their length. Every processor
// gives the same vectors up to rounding.
package bert

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
)

// Options configure an Encoder.
type Options struct {
	// MaxTokens is the number of tokens of a text that are read, including the
	// two that the model adds. 0 means the model's own limit, which is also the
	// upper bound.
	MaxTokens int

	// Threads is the number of texts that are encoded at the same time, in all
	// calls together. 0 means the number of processors that Go uses.
	Threads int

	// Background makes encoders that are not in the background, and have the same
	// weights, go first: a text is begun when none of these is encoding, or after
	// 100 ms. So all processors can work on documents without delaying queries.
	Background bool
}

// An Encoder turns texts into vectors. It implements embed.Embedder.
type Encoder struct {
	model     *model
	id        string
	prompts   map[embed.Kind]string
	maxTokens int
	slots     chan *scratch // free working memory, nil where none is allocated yet

	background bool
	first      *atomic.Int32 // calls of encoders that are not in the background
}

// newEncoder returns an encoder that uses the weights of m.
func newEncoder(m *model, id string, prompts map[embed.Kind]string, o Options) *Encoder {
	return (&Encoder{model: m, id: id, prompts: prompts, first: &atomic.Int32{}}).With(o)
}

// With returns an encoder with the same weights and other options. It has its own
// threads, so that work in the background does not delay queries.
func (e *Encoder) With(o Options) *Encoder {
	m := e.model
	e = &Encoder{model: m, id: e.id, prompts: e.prompts, maxTokens: m.maxTokens, background: o.Background, first: e.first}
	if o.MaxTokens > 0 {
		e.maxTokens = min(max(o.MaxTokens, minTokens), m.maxTokens)
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	e.slots = make(chan *scratch, o.Threads)
	for range o.Threads {
		e.slots <- nil
	}
	return e
}

// minTokens is the lowest limit of tokens: those that the model adds and one.
const minTokens = 3

// ID implements embed.Embedder.
func (e *Encoder) ID() string { return e.id }

// Dimension implements embed.Embedder.
func (e *Encoder) Dimension() int { return e.model.hidden }

// MaxTokens implements embed.Embedder.
func (e *Encoder) MaxTokens() int { return e.maxTokens }

// Foreign reports whether most words of a text are foreign to the model, so that
// its vector means little. See [tokenizer.Tokenizer.Foreign].
func (e *Encoder) Foreign(text string) bool { return e.model.tokenizer.Foreign(text) }

// Embed implements embed.Embedder. The only error is that of ctx.
func (e *Encoder) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	return e.embed(ctx, texts, kind, false)
}

// EmbedRaw is like Embed, but the vectors have the lengths that the model gives
// them. See [embed.Raw].
func (e *Encoder) EmbedRaw(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	return e.embed(ctx, texts, kind, true)
}

func (e *Encoder) embed(ctx context.Context, texts []string, kind embed.Kind, raw bool) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("encoding texts: %w", err)
	}
	if !e.background {
		e.first.Add(1)
		defer e.first.Add(-1)
	}
	out := make([][]float32, len(texts))
	ranges := batches(texts)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	work := func() {
		s, err := e.acquire(ctx)
		if err != nil {
			failed.Store(&err)
			return
		}
		defer func() { e.slots <- s }()
		for failed.Load() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(ranges) {
				return
			}
			if err := e.wait(ctx); err != nil {
				failed.Store(&err)
				return
			}
			r := ranges[i]
			if err := e.encode(ctx, out[r[0]:r[1]], texts[r[0]:r[1]], kind, raw, s); err != nil {
				failed.Store(&err)
			}
		}
	}
	var wait sync.WaitGroup
	for range min(cap(e.slots), len(ranges)) - 1 {
		wait.Go(work)
	}
	if len(ranges) > 0 {
		work()
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return nil, fmt.Errorf("encoding texts: %w", *err)
	}
	return out, nil
}

// acquire waits for working memory.
func (e *Encoder) acquire(ctx context.Context) (*scratch, error) {
	select {
	case s := <-e.slots:
		if s == nil {
			s = &scratch{}
		}
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Times that an encoder in the background waits.
const (
	waitInterval = time.Millisecond // short beside the time for a text
	waitLimit    = 100 * time.Millisecond
)

// wait waits until an encoder in the background may begin a text: while others work, but
// not so long that many queries stop it.
func (e *Encoder) wait(ctx context.Context) error {
	for begin := time.Now(); e.background && e.first.Load() > 0 && time.Since(begin) < waitLimit; {
		select {
		case <-time.After(waitInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Limits of the texts that are encoded together. A batch ends with the text that
// exceeds one. More texts than that are not faster, and need more memory.
const (
	batchTexts = 16
	batchBytes = 512
)

// batches divides texts into ranges that are encoded together.
func batches(texts []string) [][2]int {
	var ranges [][2]int
	start, size := 0, 0
	for i, t := range texts {
		size += len(t)
		if size >= batchBytes || i+1-start == batchTexts || i+1 == len(texts) {
			ranges = append(ranges, [2]int{start, i + 1})
			start, size = i+1, 0
		}
	}
	return ranges
}

// encode sets the vectors of one batch.
func (e *Encoder) encode(
	ctx context.Context, out [][]float32, texts []string, kind embed.Kind, raw bool, s *scratch,
) error {
	b := &s.batch
	b.ids, b.texts = b.ids[:0], b.texts[:0]
	var ids []int32
	for _, text := range texts {
		ids = e.model.tokenizer.Encode(ids[:0], e.prompts[kind]+text, e.maxTokens)
		b.add(ids)
	}
	x, err := e.model.encode(ctx, b, s, nil)
	if err != nil {
		return err
	}
	for i, t := range b.texts {
		out[i] = e.model.pool(x, t)
		switch {
		case !raw || e.model.normalize:
			embed.Normalize(out[i])
		case e.model.pooling == poolMean:
			for j := range out[i] {
				out[i][j] /= float32(t.n)
			}
		}
	}
	return nil
}
