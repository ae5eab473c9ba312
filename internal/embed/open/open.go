// Package open chooses an embedder by a setting.
package open

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/embed/remote"
	"github.com/knowhow-mcp/knowhow/internal/embed/static"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Settings that are words.
const (
	Builtin = "builtin"
	None    = "none"
)

// Options configure the embedder. Each applies to some kinds of embedders, and is
// ignored by the others.
type Options struct {
	MaxTokens int // tokens of a text that are read; 0 means the model's limit (built in, folders of BERT)
	Threads   int // texts that are encoded at the same time; 0 means one for each processor (the same)

	Model     string        // of a service
	Key       string        // of a service
	Timeout   time.Duration // of one request to a service; 0 means 30 s
	Dimension int           // expected number of components of a service's vectors; 0 means any
	UserAgent string        // sent to a service; "" means "knowhow"
	Log       *slog.Logger  // of the calls to a service; nil discards

	// Getenv returns the environment variables that locate the cache of Hugging
	// Face, for settings that are names of models. nil means os.Getenv.
	Getenv func(string) string
}

// Embedder returns the embedder that a setting names:
//
//   - "builtin" or "": the one that is part of the program;
//   - "none": nil;
//   - a URL with http or https: a service;
//   - the path of a folder: a BERT or a model2vec model;
//   - the name of a model in the cache of Hugging Face, such as
//     "sentence-transformers/all-MiniLM-L6-v2".
//
// Invalid settings are errors of kind Invalid, missing folders and files of kind
// NotFound, damaged files of kind Corrupt, and other models of kind Unsupported.
func Embedder(setting string, o Options) (embed.Embedder, error) {
	local := bert.Options{MaxTokens: o.MaxTokens, Threads: o.Threads}
	switch scheme, _, isURL := strings.Cut(setting, "://"); {
	case setting == Builtin || setting == "":
		return minilm.New(local), nil
	case setting == None:
		return nil, nil
	case isURL && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")):
		return checked(remote.New(remote.Options{URL: setting, Model: o.Model, Key: o.Key, Timeout: o.Timeout,
			Dimension: o.Dimension, UserAgent: o.UserAgent, Log: o.Log}))
	case isURL:
		return nil, fmt.Errorf("choosing the embedder: want %s, %s, a folder, or a URL with http or https: %w", Builtin,
			None, errkind.Invalid)
	}
	dir := setting
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if o.Getenv == nil {
			o.Getenv = os.Getenv
		}
		if dir = bert.Find(setting, o.Getenv); dir == "" {
			return nil, fmt.Errorf("choosing the embedder: %.200q is neither %s, %s, a URL, an existing folder nor a model in the cache of Hugging Face: %w",
				setting, Builtin, None, errkind.NotFound)
		}
	}
	if static.Is(dir) {
		return checked(static.Open(dir))
	}
	return checked(bert.Open(dir, local))
}

// checked returns an embedder, or nil and an error. A nil pointer is not a nil
// interface.
func checked[E embed.Embedder](e E, err error) (embed.Embedder, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Candidates returns a function that returns the embedders that may have made the
// vectors of a model: one that is set, the built-in one, and, if none of them is of the
// model, the one that it names in the cache of Hugging Face. The function is safe for
// concurrent use.
func Candidates(set embed.Embedder, getenv func(string) string) func(model string) []embed.Embedder {
	list := []embed.Embedder{set}
	if builtin := minilm.New(bert.Options{}); builtin.ID() != set.ID() {
		list = append(list, builtin)
	}
	var mu sync.Mutex
	cached := map[string]embed.Embedder{} // nil if it cannot be opened
	return func(model string) []embed.Embedder {
		for _, e := range list {
			if embed.ModelName(e.ID()) == embed.ModelName(model) {
				return list
			}
		}
		dir := bert.Find(model, getenv)
		if dir == "" {
			return list
		}
		mu.Lock()
		defer mu.Unlock()
		e, ok := cached[model]
		if !ok {
			e, _ = Embedder(dir, Options{}) // without it, the vectors are not used, and the caller says so
			cached[model] = e
		}
		if e == nil {
			return list
		}
		return append([]embed.Embedder{e}, list...)
	}
}
