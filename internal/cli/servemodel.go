package cli

import (
	"strings"
	"time"

	"knowhow/internal/embed"
	"knowhow/internal/embed/bert"
	"knowhow/internal/embed/minilm"
	"knowhow/internal/embed/open"
)

// An embedServer has the environment variables for a server of embeddings.
type embedServer struct {
	Model string `env:"EMBED_MODEL" help:"name of the model for that server"`
	Key   token  `env:"EMBED_API_KEY" secret:"token" help:"key for that server"`
}

// embedderFlags choose the model for searches by meaning. A nil pointer
// means none.
type embedderFlags struct {
	Embedder filePath `flag:"{name}" value:"MODEL" default:"builtin" env:"KNOWHOW_EMBEDDER" help:"{model}"`
	embedServer
}

// serverEmbedder are embedderFlags of a server, which sends passages to the model.
type serverEmbedder struct {
	embedderFlags `name:"embedder" model:"model for searches by meaning: builtin (all-MiniLM-L6-v2, for English), none (search by words only), a folder with a Hugging Face or model2vec model, or the URL of a server (the API of OpenAI or of Ollama), to which the passages of {of} are sent"`
}

const (
	// embedTokens is how many tokens of a passage are embedded. Reading more
	// takes time and finds hardly more.
	embedTokens = 128

	// serviceTime is how long a search waits for a service that turns its query
	// into a vector.
	serviceTime = 500 * time.Millisecond
)

// open returns the embedders of queries and of documents, and how long a search
// waits for the first (0: the default); nil for none. The built-in model is not
// loaded before it is used.
func (m *embedderFlags) open() (queries, documents embed.Embedder, wait time.Duration, err error) {
	if m == nil || m.Embedder == "" {
		return nil, nil, 0, nil
	}
	queries, err = open.Embedder(string(m.Embedder), open.Options{MaxTokens: embedTokens, Model: m.Model, Key: string(m.Key), UserAgent: "knowhow/" + version()})
	if err != nil {
		return nil, nil, 0, embedderError(string(m.Embedder), err)
	}
	// Documents use one processor, and leave the others to queries.
	documentOptions := bert.Options{MaxTokens: embedTokens, Threads: 1}
	switch e := queries.(type) {
	case *minilm.Embedder:
		return e, e.With(documentOptions), 0, nil
	case *bert.Encoder:
		return e, e.With(documentOptions), 0, nil
	}
	if strings.Contains(string(m.Embedder), "://") {
		wait = serviceTime
	}
	return queries, queries, wait, nil
}
