// Package embed defines what an embedder is: it turns texts into vectors whose
// directions are close for texts of similar meaning.
//
// The packages below it are embedders: bert (transformer encoders from a folder),
// minilm (the one that is part of the program), static (tables of words) and
// remote (HTTP services). Package open chooses one.
package embed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Kind is the purpose of a text. Some models treat queries and documents
// differently.
type Kind int

// The kinds of texts.
const (
	Document Kind = iota
	Query
)

// An Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in the same order, with an L2 norm
	// of 1. Text beyond what the model reads is ignored, and an empty text has a
	// vector as well. A text in which a model of words knows nothing has the
	// zero vector. Errors have a kind of package errkind, except that of a
	// context that ended.
	Embed(ctx context.Context, texts []string, kind Kind) ([][]float32, error)

	// ID identifies the vectors: those of embedders with the same ID can be
	// compared. It contains no credentials.
	ID() string

	// Dimension returns the number of components of a vector, or 0 if it is not
	// known before the first call of Embed.
	Dimension() int

	// MaxTokens returns how many tokens of a text the model reads, or 0 if it is
	// not known.
	MaxTokens() int
}

// Raw returns one vector for each text as [Embedder.Embed] does, but with the length
// that the model gives it, if the embedder knows that. Then a vector may be zero.
func Raw(ctx context.Context, e Embedder, texts []string, kind Kind) ([][]float32, error) {
	r, ok := e.(interface {
		EmbedRaw(ctx context.Context, texts []string, kind Kind) ([][]float32, error)
	})
	if !ok {
		return e.Embed(ctx, texts, kind)
	}
	return r.EmbedRaw(ctx, texts, kind)
}

// Foreign reports whether a text is in a language that the embedder was not made
// for, so that its vector means little. It is false for embedders that cannot
// tell.
func Foreign(e Embedder, text string) bool {
	f, ok := e.(interface{ Foreign(text string) bool })
	return ok && f.Foreign(text)
}

// Documents returns the vectors of documents, in the order of texts. That of a text
// that is foreign to the embedder is nil. Errors are those of Embed, and of kind
// Invalid if the embedder returns another number of vectors.
func Documents(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	var known []string
	var at []int
	for i, text := range texts {
		if !Foreign(e, text) {
			known, at = append(known, text), append(at, i)
		}
	}
	vectors := make([][]float32, len(texts))
	if len(known) == 0 {
		return vectors, nil
	}
	out, err := e.Embed(ctx, known, Document)
	if err != nil {
		return nil, err
	}
	if len(out) != len(known) {
		return nil, fmt.Errorf("embedding: got %d vectors for %d texts: %w", len(out), len(known), errkind.Invalid)
	}
	for i, v := range out {
		vectors[at[i]] = v
	}
	return vectors, nil
}

// Within returns the vectors of the first of some documents, of as many as are there
// within limit. Each processor computes one in a round, which is expected to take as
// long as the last one. With an error, it returns those that were computed before.
func Within(ctx context.Context, e Embedder, texts []string, limit time.Duration) (vectors [][]float32, err error) {
	begin := time.Now()
	for round := time.Duration(0); len(vectors) < len(texts) && time.Since(begin)+round < limit; {
		start, n := time.Now(), len(vectors)
		next, err := Documents(ctx, e, texts[n:min(n+runtime.GOMAXPROCS(0), len(texts))])
		if err != nil {
			return vectors, err
		}
		vectors, round = append(vectors, next...), time.Since(start)
	}
	return vectors, nil
}

// Stages are the order in which a store computes the vectors of documents: in each
// stage, all documents get those of so many of their first chunks. So long documents do
// not keep others waiting, and searches soon know what each document is about.
var Stages = [...]int{1, 4, 16, math.MaxInt}

// keptQueries is how many vectors of queries are kept.
const keptQueries = 64

// Queries computes the vectors of queries and keeps some. It is safe for concurrent
// use. The zero value has no vectors.
type Queries struct {
	mu      sync.Mutex
	vectors map[string][]float32
}

// Vector returns the vector of a query, with an L2 norm of 1. It is nil if the
// embedder does not know the language of the text, or nothing in it. The error is
// that of a context if the vector is not computed within limit. Calls for one
// Queries must have the same embedder.
func (q *Queries) Vector(ctx context.Context, e Embedder, text string, limit time.Duration) ([]float32, error) {
	q.mu.Lock()
	known := q.vectors[text]
	q.mu.Unlock()
	if known != nil || Foreign(e, text) {
		return known, nil
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := e.Embed(limited, []string{text}, Query)
	if err != nil || len(out) != 1 || !Normalize(out[0]) {
		return nil, cmp.Or(ctx.Err(), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.vectors == nil || len(q.vectors) >= keptQueries {
		q.vectors = map[string][]float32{}
	}
	q.vectors[text] = out[0]
	return out[0], nil
}

// Norm returns the L2 norm of a vector.
func Norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// HasDirection reports whether the L2 norm of a vector is finite and not zero.
func HasDirection(v []float32) bool { return scales(Norm(v)) }

// scales reports whether a vector can be divided by its norm.
func scales(norm float64) bool { return norm != 0 && !math.IsInf(norm, 0) && !math.IsNaN(norm) }

// Normalize scales a vector to an L2 norm of 1. It reports false, and leaves the
// vector as it is, if the norm is zero or not finite.
func Normalize(v []float32) bool {
	norm := Norm(v)
	if !scales(norm) {
		return false
	}
	scale := 1 / norm
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}

// aliases are the names that Ollama gives to models, without tags.
var aliases = map[string]string{
	"all-minilm":              "all-minilm-l6-v2",
	"bge-large":               "bge-large-en-v1.5",
	"bge-m3":                  "bge-m3",
	"mxbai-embed-large":       "mxbai-embed-large-v1",
	"nomic-embed-text":        "nomic-embed-text-v1.5",
	"paraphrase-multilingual": "paraphrase-multilingual-minilm-l12-v2",
	"snowflake-arctic-embed":  "snowflake-arctic-embed-l",
}

// tags are the names with tags of Ollama that are other models than those without.
var tags = map[string]string{
	"all-minilm:33m":              "all-minilm-l12-v2",
	"all-minilm:l12":              "all-minilm-l12-v2",
	"snowflake-arctic-embed:22m":  "snowflake-arctic-embed-xs",
	"snowflake-arctic-embed:33m":  "snowflake-arctic-embed-s",
	"snowflake-arctic-embed:110m": "snowflake-arctic-embed-m",
	"snowflake-arctic-embed:137m": "snowflake-arctic-embed-m-long",
}

// ModelName returns the name by which a model can be compared: in lower case,
// without the organization and the tag, and without what follows the "@" of an
// [Embedder] ID. "sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2" and
// Ollama's "all-minilm:latest" are the same model.
func ModelName(name string) string {
	name = strings.ToLower(strings.Trim(strings.TrimSpace(name), "/"))
	name, _, _ = strings.Cut(name, "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if s, ok := tags[name]; ok {
		return s
	}
	base, tag, _ := strings.Cut(name, ":")
	if tag != "" {
		// The quantization of a tag, as in 22m-l6-v2-fp16, changes the vectors
		// a little, but not the model.
		for long := tag; long != ""; {
			if s, ok := tags[base+":"+long]; ok {
				return s
			}
			cut := strings.LastIndexByte(long, '-')
			long = long[:max(cut, 0)]
		}
	}
	if s, ok := aliases[base]; ok {
		return s
	}
	return base
}
