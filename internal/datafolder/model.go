package datafolder

import (
	"runtime"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
	"github.com/knowhow-mcp/knowhow/internal/embed/minilm"
	"github.com/knowhow-mcp/knowhow/internal/embed/open"
)

// A Model makes the vectors for searches by meaning. Without one, searches use words
// only.
type Model struct {
	Queries, Documents embed.Embedder
	Wait               time.Duration // for the vector of a query; 0 is the default of the index
	Compute            time.Duration // for vectors that documents lack in a search; 0: none are computed
}

const (
	// embedTokens is how many tokens of a passage are embedded. Reading more
	// takes time and finds hardly more.
	embedTokens = 128

	// embedThreads is how many passages are embedded at the same time at most. Each takes
	// 2 MB of memory.
	embedThreads = 8

	// computeTime is how long a search computes the vectors that its best documents
	// lack. A service gets no texts from searches.
	computeTime = 150 * time.Millisecond

	// serviceTime is how long a search waits for a service that turns its query
	// into a vector.
	serviceTime = 500 * time.Millisecond
)

// OpenModel opens the model that a setting names; see [open.Embedder]. The built-in
// model is not loaded before it is used.
func OpenModel(setting string, o open.Options) (Model, error) {
	o.MaxTokens = embedTokens
	queries, err := open.Embedder(setting, o)
	if queries == nil || err != nil {
		return Model{}, err
	}
	forDocuments := bert.Options{MaxTokens: embedTokens, Threads: min(runtime.GOMAXPROCS(0), embedThreads),
		Background: true}
	m := Model{Queries: queries, Documents: queries, Compute: computeTime}
	switch e := queries.(type) {
	case *minilm.Embedder:
		m.Documents = e.With(forDocuments)
	case *bert.Encoder:
		m.Documents = e.With(forDocuments)
	default:
		if strings.Contains(setting, "://") {
			m.Wait, m.Compute = serviceTime, 0
		}
	}
	return m, nil
}
