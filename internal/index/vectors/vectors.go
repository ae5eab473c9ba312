// Package vectors keeps the vectors of chunks, which an embedder has computed, in a
// database, and searches them.
//
// The table vectors has a row for each chunk and model. Its numbers increase and are
// never used again, so a process learns what is new by asking for greater numbers,
// and whether what it has in memory is still true by asking for the number. There is
// no file that processes share and no order in which they must act.
//
// Each process keeps the vectors of the labels that it searches in memory: for each
// label one block, and a tail of those that were stored since. They are candidates
// only: in the transaction of the search, it is checked that they still exist.
//
// The tables docs and chunks are those of package index.
package vectors

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/vector"
)

// version is part of the name of a model in the table models. It changes when the
// text of a chunk that is embedded, or the form of a vector, does.
const version = "chunk-1"

// Sizes of vectors.
const (
	embedQuery = 1000 // bytes of a query that are embedded
	loadBatch  = 4096 // vectors that one transaction loads at most
	tailShare  = 32   // of the vectors of a block, the tail may have one in so many, beside loadBatch
)

// Tables are statements that create the tables of vectors. models.used is when
// vectors of the model were last written or looked for.
const Tables = `
CREATE TABLE models(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, used INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vectors(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
	model INTEGER NOT NULL REFERENCES models(id),
	label TEXT NOT NULL,
	vector BLOB NOT NULL,
	UNIQUE(chunk, model));
CREATE INDEX vectors_label ON vectors(label, model, id);
`

// CountQuery counts the chunks with a vector of the model that was used last.
const CountQuery = `SELECT count(*) FROM vectors WHERE model=(SELECT id FROM models ORDER BY used DESC LIMIT 1)`

// Options configures [New].
type Options struct {
	DB       *database.DB   // required
	Embedder embed.Embedder // of queries; nil: nothing is searched
	Log      *slog.Logger   // required

	// Text returns a part of the text of a document.
	Text func(ctx context.Context, q database.Querier, document, from, to int64) (string, error)

	// Generation returns a text that changes with each change of documents.
	Generation func(ctx context.Context, q database.Querier) (string, error)
}

// A Store is the vectors of a database. Its methods are safe for concurrent use.
type Store struct {
	o         Options
	queries   embed.Queries
	loadSoon  chan struct{} // a signal for Run
	storeSoon chan struct{} // the same
	computing sync.Mutex    // held by Compute

	mu       sync.Mutex
	sets     map[string]*set // by label
	computed []computed      // by searches, and not stored yet
	pass     pass
}

// New returns the vectors of a database that has their tables.
func New(o Options) *Store {
	return &Store{o: o, loadSoon: make(chan struct{}, 1), storeSoon: make(chan struct{}, 1), sets: map[string]*set{}}
}

// Query returns the vector of a query, which must be there within limit. It returns
// nil for a query that the embedder does not understand.
func (s *Store) Query(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
	return s.queries.Vector(ctx, s.o.Embedder, document.Truncate(text, embedQuery), limit)
}

// Run loads vectors that would take a search too long, and stores those that searches
// have computed, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			s.storeComputed(ctx)
			return
		case <-s.storeSoon:
			s.storeComputed(ctx)
			continue
		case <-s.loadSoon:
		}
		if err := s.loadAll(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Debug("vectors were not loaded; the next search tries again", "error", err)
		}
	}
}

// loadAll loads again the sets that are due.
func (s *Store) loadAll(ctx context.Context) error {
	s.mu.Lock()
	sets := slices.Collect(maps.Values(s.sets))
	s.mu.Unlock()
	name := modelName(s.o.Embedder)
	for _, old := range sets {
		if !old.due() {
			continue
		}
		fresh := newSet(old.label)
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.o.DB.Read(ctx, "loading vectors", func(tx *sql.Tx) error {
				model, err := modelOf(ctx, tx, name)
				if err == nil {
					more, err = fresh.load(ctx, tx, model)
				}
				return err
			}); err != nil {
				return err
			}
		}
		block, err := fresh.tail.part()
		if err != nil {
			return err
		}
		old.mu.Lock()
		old.last, old.more, old.block, old.tail, old.recent = fresh.last, false, block, rows{}, nil
		clear(old.stale)
		old.mu.Unlock()
	}
	return nil
}

// set returns the vectors of a label in memory.
func (s *Store) set(label string) *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.sets[label]
	if v == nil {
		v = newSet(label)
		s.sets[label] = v
	}
	return v
}

// A set has the vectors of one label in memory.
type set struct {
	label string

	mu     sync.Mutex
	last   int64           // greatest number that was loaded
	more   bool            // there may be more than was loaded
	block  *part           // nil until it was loaded
	tail   rows            // stored after the block was loaded
	recent *part           // of the tail; nil if it is empty
	stale  map[int64]int64 // by document: vectors of it up to this number are gone
}

func newSet(label string) *set { return &set{label: label, stale: map[int64]int64{}} }

// due reports whether the set should be loaded again, because it is not complete, or
// because the tail is so long that it takes long to add to it, and many vectors of
// the block may be gone.
func (s *set) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dueLocked()
}

func (s *set) dueLocked() bool {
	return s.more || len(s.tail.chunks) > loadBatch+s.block.len()/tailShare
}

// load adds up to loadBatch vectors that the set does not have to its tail. It
// reports whether there may be more.
func (s *set) load(ctx context.Context, q database.Querier, model int64) (more bool, err error) {
	n := 0
	var v []float32
	err = database.Collect(ctx, q, func(r *sql.Rows) error {
		var id, chunk int64
		var blob sql.RawBytes
		if err := r.Scan(&id, &chunk, &blob); err != nil {
			return err
		}
		n++
		s.last = max(s.last, id)
		if v = decode(v, blob); len(v) == 0 {
			return nil
		}
		// A chunk that has a new vector belongs to a new version of its document.
		doc := chunk >> database.PartBits
		for _, p := range []*part{s.block, s.recent} {
			if row, ok := p.find(chunk); ok {
				s.stale[doc] = max(s.stale[doc], int64(p.ID(row)))
			}
		}
		return s.tail.add(id, chunk, v)
	}, `SELECT id, chunk, vector FROM vectors WHERE label=? AND model=? AND id>?
		ORDER BY id LIMIT ?`, s.label, model, s.last, loadBatch)
	return n == loadBatch, err
}

// refresh loads vectors that the set does not have, as many as a search has time
// for, and returns what the set has then.
func (s *set) refresh(ctx context.Context, q database.Querier, model int64) (v viewSet, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := len(s.tail.chunks); !s.more || before == 0 { // otherwise, Run is loading all
		if s.more, err = s.load(ctx, q, model); err != nil {
			return v, false, err
		}
		if len(s.tail.chunks) > before {
			if s.recent, err = s.tail.part(); err != nil {
				return v, false, err
			}
		}
	}
	v = viewSet{set: s, stale: maps.Clone(s.stale)}
	for _, p := range []*part{s.block, s.recent} {
		if p != nil {
			v.parts = append(v.parts, p)
		}
	}
	return v, s.dueLocked(), nil
}

// gone records that the vectors of a document up to a number do not exist.
func (s *set) gone(doc, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale[doc] = max(s.stale[doc], id)
}

// rows are vectors in the order of their numbers. The zero rows are empty.
type rows struct {
	w      *vector.Writer
	dim    int
	chunks []int64
}

// add adds a vector. One of another dimension than the others, or with a value that
// is not finite, is ignored: it is never a result.
func (r *rows) add(id, chunk int64, v []float32) (err error) {
	if r.w == nil {
		if r.w, err = vector.NewWriter("", len(v), vector.Cosine); err != nil {
			return err
		}
		r.dim = len(v)
	}
	if len(v) == r.dim && r.w.Add(uint64(id), v) == nil {
		r.chunks = append(r.chunks, chunk)
	}
	return nil
}

// part returns the rows in the form that is searched, nil if there are none.
func (r *rows) part() (*part, error) {
	if len(r.chunks) == 0 {
		return nil, nil
	}
	x, err := vector.Open(r.w.Bytes())
	if err != nil {
		return nil, err
	}
	p := &part{x, slices.Clip(r.chunks), make([]int32, len(r.chunks))}
	for i := range p.order {
		p.order[i] = int32(i)
	}
	slices.SortStableFunc(p.order, func(a, b int32) int { return cmp.Compare(p.chunks[a], p.chunks[b]) })
	return p, nil
}

// A part is vectors that do not change. Their ids are their numbers.
type part struct {
	*vector.Index
	chunks []int64 // by row
	order  []int32 // rows, sorted by chunk
}

func (p *part) len() int {
	if p == nil {
		return 0
	}
	return p.Len()
}

// from returns where the rows of a chunk, or of those after it, begin in order.
func (p *part) from(chunk int64) int {
	i, _ := slices.BinarySearchFunc(p.order, chunk, func(row int32, chunk int64) int {
		return cmp.Compare(p.chunks[row], chunk)
	})
	return i
}

// find returns the last row of a chunk.
func (p *part) find(chunk int64) (row int, ok bool) {
	if p == nil {
		return 0, false
	}
	i := p.from(chunk+1) - 1
	if i < 0 || p.chunks[p.order[i]] != chunk {
		return 0, false
	}
	return int(p.order[i]), true
}

// rowsOf returns the rows of the chunks of a document.
func (p *part) rowsOf(doc int64) []int32 {
	return p.order[p.from(database.PartRow(doc, 0)):p.from(database.PartRow(doc+1, 0))]
}

// A stored vector is its scale, a float32, and one code of int8 for each value;
// the value is the product. No bytes at all mean that the model cannot tell the
// meaning of the text.

// encode returns the stored form of a vector.
func encode(v []float32) []byte {
	var most float32
	for _, f := range v {
		most = max(most, float32(math.Abs(float64(f))))
	}
	scale := most / 127
	if !(scale > 0) || math.IsInf(float64(scale), 0) {
		return []byte{}
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(v)), math.Float32bits(scale))
	for _, f := range v {
		out = append(out, byte(int8(max(-127, min(127, math.RoundToEven(float64(f)/float64(scale)))))))
	}
	return out
}

// decode returns the vector of a stored form, or an empty one if there is none. It
// uses the memory of v.
func decode(v []float32, b []byte) []float32 {
	v = v[:0]
	if len(b) < 5 {
		return v
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(b))
	for _, c := range b[4:] {
		v = append(v, scale*float32(int8(c)))
	}
	return v
}

// modelName returns the name of an embedder's model in the table models.
func modelName(e embed.Embedder) string { return e.ID() + " " + version }

// modelOf returns the number of a model, or 0 if there is none.
func modelOf(ctx context.Context, q database.Querier, name string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM models WHERE name=?`, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// signal sends to a channel that has a place for one signal, unless there is one
// already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
