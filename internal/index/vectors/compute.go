package vectors

import (
	"context"
	"fmt"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/vector"
)

// Limits of computing in searches.
const (
	maxComputed = 1000 // vectors that wait to be stored, about
	storeTime   = 300 * time.Millisecond
)

// A computed is a vector that a search has computed, and that is not stored yet.
type computed struct {
	chunk  unembedded
	vector []float32
}

// Compute computes the vectors of chunks, given by their rows, in order, until no time
// is left for more, and returns the chunks with their cosines to query. [Store.Run]
// stores the vectors. While another search computes some, it returns nothing, so that
// many searches together do not compute more than one. If the embedder fails, the chunks
// have no vectors; the error is that of ctx or of the database.
func (s *Store) Compute(
	ctx context.Context, q database.Querier, query []float32, rows []int64, limit time.Duration,
) ([]Hit, error) {
	if len(rows) == 0 || limit <= 0 || !s.computing.TryLock() {
		return nil, nil
	}
	defer s.computing.Unlock()
	begin := time.Now()
	chunks, err := readChunks(ctx, q, fmt.Sprintf(`SELECT c.id, c.off, c.len, c.heading, d.title, d.hash
		FROM json_each(?) j CROSS JOIN chunks c ON c.id=j.value CROSS JOIN docs d ON d.id=c.id>>%d ORDER BY j.key`,
		database.PartBits), database.List(rows))
	if err != nil {
		return nil, err
	}
	if err := s.readTexts(ctx, q, chunks); err != nil {
		return nil, err
	}
	vectors, err := embed.Within(ctx, s.o.Embedder, textsOf(chunks), limit-time.Since(begin))
	if err != nil {
		s.o.Log.Debug("documents without vectors were ranked by words only", "error", err)
	}
	var hits []Hit
	var done []computed
	for i, v := range vectors {
		c := chunks[i]
		done = append(done, computed{c, v})
		if len(v) == len(query) {
			hits = append(hits, Hit{Document: c.id >> database.PartBits, Chunk: int(c.id & (database.MaxParts - 1)),
				Score: vector.Dot(query, v)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.DB.Writable() && len(s.computed) < maxComputed {
		s.computed = append(s.computed, done...)
		signal(s.storeSoon)
	}
	return hits, ctx.Err()
}

// storeComputed stores the vectors that searches have computed, also after ctx has
// ended.
func (s *Store) storeComputed(ctx context.Context) {
	s.mu.Lock()
	done := s.computed
	s.computed = nil
	s.mu.Unlock()
	if len(done) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	chunks, vectors := make([]unembedded, len(done)), make([][]float32, len(done))
	for i, c := range done {
		chunks[i], vectors[i] = c.chunk, c.vector
	}
	if err := s.put(ctx, modelName(s.o.Embedder), chunks, vectors); err != nil {
		s.o.Log.Debug("vectors that searches have computed were not stored", "error", err)
	}
}
