package cli

import (
	"errors"

	"knowhow/internal/embed"
	"knowhow/internal/embed/bert"
	"knowhow/internal/embed/minilm"
)

// searchModelHelp describes --embedder for commands that search.
const searchModelHelp = "the model for searches, besides the built-in one: builtin, none (search by words only), " +
	"a folder with a Hugging Face or model2vec model, or the URL of a server; it is used for the datasets whose vectors it made"

// modelFlags are the flags for the embedder of datasets.
type modelFlags struct {
	embedder string
}

// define declares the flags.
func (m *modelFlags) define(f *flagSet, help string) {
	f.Func(flag{Name: "embedder", Value: "MODEL", Default: "builtin", Help: help}, func(s string) error {
		if m.embedder = s; s != "builtin" && s != "none" {
			return errors.New("want builtin or none")
		}
		return nil
	})
}

// open returns the embedder and the name of its model; nil for none.
func (m *modelFlags) open(*invocation) (embed.Embedder, string, error) {
	if m.embedder == "none" {
		return nil, "", nil
	}
	return minilm.New(bert.Options{}), minilm.Model, nil
}

// embedders returns the embedders for [dataset.Options].
func (m *modelFlags) embedders(v *invocation) (func(model string) []embed.Embedder, error) {
	e, _, err := m.open(v)
	if e == nil || err != nil {
		return nil, err
	}
	return func(string) []embed.Embedder { return []embed.Embedder{e} }, nil
}
