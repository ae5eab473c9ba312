package cli

import (
	"strings"
	"time"

	"knowhow/internal/embed"
	"knowhow/internal/embed/bert"
	"knowhow/internal/embed/minilm"
	"knowhow/internal/embed/open"
)

// A serveModel is the choice of the model for searches by meaning. The zero value
// means none.
type serveModel struct{ embedder, model, key string }

const (
	// embedTokens is how many tokens of a passage are embedded. Reading more
	// takes time and finds hardly more.
	embedTokens = 128

	// serviceTime is how long a search waits for a service that turns its query
	// into a vector.
	serviceTime = 500 * time.Millisecond
)

// define declares the flags of a server that sends the passages of something to
// the model.
func (m *serveModel) define(f *flagSet, of string) {
	m.declare(f, flag{Name: "embedder", Value: "MODEL",
		Help: "model for searches by meaning: builtin (all-MiniLM-L6-v2, for English), none (search by words only), a folder with a Hugging Face or model2vec model, " +
			"or the URL of a server (the API of OpenAI or of Ollama), to which the passages of " + of + " are sent"})
}

// declare declares the flag d and the environment variables.
func (m *serveModel) declare(f *flagSet, d flag) {
	d.Default, d.Env = open.Builtin, "KNOWHOW_EMBEDDER"
	f.Path(&m.embedder, d)
	f.String(&m.model, flag{Env: "EMBED_MODEL", Help: "name of the model for that server"})
	f.Token(&m.key, flag{Env: "EMBED_API_KEY", Help: "key for that server"})
}

// open returns the embedders of queries and of documents, and how long a search
// waits for the first (0: the default); nil for none. The built-in model is not
// loaded before it is used.
func (m *serveModel) open() (queries, documents embed.Embedder, wait time.Duration, err error) {
	if m.embedder == "" {
		return nil, nil, 0, nil
	}
	queries, err = open.Embedder(m.embedder, open.Options{MaxTokens: embedTokens, Model: m.model, Key: m.key, UserAgent: "knowhow/" + version()})
	if err != nil {
		return nil, nil, 0, embedderError(m.embedder, err)
	}
	// Documents use one processor, and leave the others to queries.
	documentOptions := bert.Options{MaxTokens: embedTokens, Threads: 1}
	switch e := queries.(type) {
	case *minilm.Embedder:
		return e, e.With(documentOptions), 0, nil
	case *bert.Encoder:
		return e, e.With(documentOptions), 0, nil
	}
	if strings.Contains(m.embedder, "://") {
		wait = serviceTime
	}
	return queries, queries, wait, nil
}
