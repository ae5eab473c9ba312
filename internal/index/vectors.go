package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/index/segments"
	"knowhow/internal/search"
	"knowhow/internal/vector"
)

// The vectors of chunks are in the table vectors, by model and label. Their
// numbers increase and are never used again, so a process learns what is new
// by asking for greater numbers, and whether what it has in memory is still
// true by asking for the number. Each process keeps the codes of the labels
// that it searches in memory. They are candidates only: in the transaction of
// the search, it is checked that they still exist.

// vectorVersion is part of the name of a model in the table models. It changes
// when the text of a chunk that is embedded, or the form of a vector, does.
const vectorVersion = "chunk-1"

// Sizes and times of vectors.
const (
	embedTime     = 50 * time.Millisecond // for the vector of a query, by default
	embedText     = 1200                  // bytes of the text of a chunk that are embedded
	embedQuery    = 1000                  // bytes of a query that are embedded
	loadBatch     = 4096                  // vectors that one search loads at most
	modelLifetime = 24 * time.Hour        // vectors of a model that nobody has used for so long are deleted
)

// vectors is what the searches of an Index by meaning need.
type vectors struct {
	embedder embed.Embedder // nil: searches use words only
	limit    time.Duration  // of embedding a query
	loadSoon chan struct{}  // a signal for loadLoop
	queries  embed.Queries

	mu       sync.Mutex
	sets     map[string]*vectorSet // by label
	embedded embedPass
}

// modelName returns the name of an embedder's model in the table models.
func modelName(e embed.Embedder) string { return e.ID() + " " + vectorVersion }

// set returns the vectors of a label in memory.
func (v *vectors) set(label string) *vectorSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sets[label]
	if s == nil {
		if v.sets == nil {
			v.sets = map[string]*vectorSet{}
		}
		s = &vectorSet{label: label, stale: map[int64]int64{}}
		v.sets[label] = s
	}
	return s
}

// query returns the vector of a query, which must be there within limit. It
// returns nil for a query that the embedder does not understand.
func (v *vectors) query(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
	return v.queries.Vector(ctx, v.embedder, document.Truncate(text, embedQuery), limit)
}

// A vectorSet has the vectors of one label in memory. It is loaded by searches,
// and by loadLoop where that would take a search too long.
type vectorSet struct {
	label string

	mu     sync.Mutex
	last   int64           // greatest number that was loaded
	loaded int             // vectors that were loaded since the set was empty
	whole  int             // loaded, when the set was complete for the first time
	more   bool            // there may be more than was loaded
	pieces []*vectorPiece  // of decreasing size
	stale  map[int64]int64 // by document: vectors of it up to this number are gone
}

// A vectorPiece is an immutable part of a vectorSet, sorted by chunk. The ids of
// the index are the numbers of the vectors.
type vectorPiece struct {
	*vector.Index
	chunks []int64
}

// rowsOf returns the range of the rows of a document.
func (p *vectorPiece) rowsOf(doc int64) (from, to int) {
	from, _ = slices.BinarySearch(p.chunks, rowOf(doc, 0))
	to, _ = slices.BinarySearch(p.chunks[from:], rowOf(doc+1, 0))
	return from, from + to
}

// A vectorRow is a row of the table vectors.
type vectorRow struct {
	id, chunk int64
	vector    []float32
}

// modelOf returns the number of a model, or 0 if there is none.
func modelOf(ctx context.Context, q querier, name string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM models WHERE name=?`, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// load loads up to loadBatch vectors that the set does not have, and returns
// what the set has then. It reports whether there may be more.
func (s *vectorSet) load(ctx context.Context, q querier, name string, model int64) (pieces []*vectorPiece, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []vectorRow
	last, n := s.last, 0
	err = collect(ctx, q, func(r *sql.Rows) error {
		var v vectorRow
		var blob sql.RawBytes
		if err := r.Scan(&v.id, &v.chunk, &blob); err != nil {
			return err
		}
		n++
		last = max(last, v.id)
		if v.vector = decodeVector(blob); v.vector != nil {
			rows = append(rows, v)
		}
		return nil
	}, `SELECT id, chunk, vector FROM vectors WHERE label=? AND model=? AND id>? ORDER BY id LIMIT ?`, s.label, model, s.last, loadBatch)
	if err != nil {
		return nil, false, err
	}
	if len(rows) > 0 {
		if err := s.add(name, rows); err != nil {
			return nil, false, err
		}
	}
	s.last, s.loaded, s.more = last, s.loaded+n, n == loadBatch
	if !s.more && s.whole == 0 {
		s.whole = s.loaded
	}
	return slices.Clone(s.pieces), s.more || s.bloated(), nil
}

// bloated reports whether at least half of the vectors may be gone. The caller
// must have locked mu.
func (s *vectorSet) bloated() bool { return s.whole > 0 && s.loaded > 2*s.whole+loadBatch }

// add adds rows as a piece, and merges it with pieces that are not much larger.
// So there are few pieces, and a vector is copied few times.
func (s *vectorSet) add(name string, rows []vectorRow) error {
	for _, r := range rows {
		// A chunk that has a new vector belongs to a new version of its
		// document.
		for _, p := range s.pieces {
			if i, ok := slices.BinarySearch(p.chunks, r.chunk); ok {
				doc := r.chunk >> chunkBits
				s.stale[doc] = max(s.stale[doc], int64(p.ID(i)))
			}
		}
	}
	slices.SortFunc(rows, func(a, b vectorRow) int { return cmp.Compare(a.chunk, b.chunk) })
	dim := len(rows[0].vector)
	if len(s.pieces) > 0 {
		dim = s.pieces[0].Dim()
	}
	w, err := vector.NewWriter(name, dim, vector.Cosine)
	if err != nil {
		return err
	}
	p := &vectorPiece{}
	for _, r := range rows {
		if len(r.vector) != dim {
			continue // a service has changed its model
		}
		if err := w.Add(uint64(r.id), r.vector); err != nil {
			continue // not finite: it is never a result
		}
		p.chunks = append(p.chunks, r.chunk)
	}
	if p.Index, err = vector.Open(w.Bytes()); err != nil {
		return err
	}
	s.pieces = append(s.pieces, p)
	for n := len(s.pieces); n > 1 && s.pieces[n-2].Len() <= 2*s.pieces[n-1].Len(); n = len(s.pieces) {
		if p, err = s.merge(name, s.pieces[n-2], s.pieces[n-1]); err != nil {
			return err
		}
		s.pieces = append(s.pieces[:n-2:n-2], p)
	}
	return nil
}

// merge returns the vectors of two pieces, without those that are known to be
// gone.
func (s *vectorSet) merge(name string, a, b *vectorPiece) (*vectorPiece, error) {
	w, err := vector.NewWriter(name, a.Dim(), vector.Cosine)
	if err != nil {
		return nil, err
	}
	out := &vectorPiece{}
	for i, j := 0, 0; i < a.Len() || j < b.Len(); {
		p, row := a, i
		if i == a.Len() || j < b.Len() && b.chunks[j] < a.chunks[i] {
			p, row = b, j
			j++
		} else {
			i++
		}
		chunk, id := p.chunks[row], p.ID(row)
		if int64(id) <= s.stale[chunk>>chunkBits] {
			continue
		}
		if err := w.AddFrom(p.Index, row, id); err != nil {
			return nil, err
		}
		out.chunks = append(out.chunks, chunk)
	}
	out.Index, err = vector.Open(w.Bytes())
	return out, err
}

// gone records that the vectors of a document up to a number do not exist.
func (s *vectorSet) gone(doc, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale[doc] = max(s.stale[doc], id)
}

// staleness returns a copy of what is known to be gone.
func (s *vectorSet) staleness() map[int64]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[int64]int64, len(s.stale))
	for doc, id := range s.stale {
		out[doc] = id
	}
	return out
}

// loadLoop loads vectors that would take a search too long, until ctx ends.
func (x *Index) loadLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.vectors.loadSoon:
		}
		if err := x.loadAll(ctx); err != nil && ctx.Err() == nil {
			x.log.Debug("vectors were not loaded; the next search tries again", "error", err)
		}
	}
}

// loadAll loads the rest of the sets that are not complete.
func (x *Index) loadAll(ctx context.Context) error {
	x.vectors.mu.Lock()
	var sets []*vectorSet
	for _, s := range x.vectors.sets {
		sets = append(sets, s)
	}
	x.vectors.mu.Unlock()
	name := modelName(x.vectors.embedder)
	for _, s := range sets {
		s.mu.Lock()
		more, into := s.more, s
		if s.bloated() {
			more, into = true, &vectorSet{label: s.label, stale: map[int64]int64{}}
		}
		s.mu.Unlock()
		for more && ctx.Err() == nil {
			err := x.read(ctx, "loading vectors", func(tx *sql.Tx) error {
				model, err := modelOf(ctx, tx, name)
				if err == nil {
					_, more, err = into.load(ctx, tx, name, model)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		if into != s && ctx.Err() == nil {
			s.mu.Lock()
			s.last, s.loaded, s.whole, s.more, s.pieces = into.last, into.loaded, into.whole, false, into.pieces
			clear(s.stale)
			s.mu.Unlock()
		}
	}
	return ctx.Err()
}

// A stored vector is its scale, a float32, and one code of int8 for each value;
// the value is the product. No bytes at all mean that the model cannot tell the
// meaning of the text.

// encodeVector returns the stored form of a vector.
func encodeVector(v []float32) []byte {
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

// decodeVector returns the vector of a stored form, or nil if there is none.
func decodeVector(b []byte) []float32 {
	if len(b) < 5 {
		return nil
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(b))
	v := make([]float32, len(b)-4)
	for i, c := range b[4:] {
		v[i] = scale * float32(int8(c))
	}
	return v
}

// An embedPass is a pass of EmbedNext over the chunks.
type embedPass struct {
	sync.Mutex
	key        string // the model and the labels
	generation string // of the index when the pass began
	rest       bool   // the first chunks of all documents are done
	after      int64  // chunks up to this one are done
	done       bool   // no chunk is left
}

// An unembedded is a chunk without a vector.
type unembedded struct {
	id, off, len         int64
	heading, title, hash string
	text                 string // what is embedded
}

// EmbedNext computes the vectors of up to n chunks of documents with one of the
// labels (nil: all) and stores them, in a short transaction. It returns how many
// it has stored. 0 without an error means that no chunk is left until documents
// change. Chunks that have a vector of the embedder are not computed again.
// The first chunks of all documents are computed before the others, so that each
// document is found soon. Vectors of other models are deleted a day after their
// last use.
func (x *Index) EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error) {
	p := &x.vectors.embedded
	p.Lock()
	defer p.Unlock()
	name := modelName(e)
	key, _ := json.Marshal([]any{name, labels}) // strings always marshal
	for {
		var chunks []unembedded
		var generation string
		err := x.read(ctx, "looking for chunks without vectors", func(tx *sql.Tx) error {
			var err error
			if generation, err = segments.Generation(ctx, tx); err != nil {
				return err
			}
			if p.key != string(key) || p.done && p.generation != generation {
				p.key, p.generation, p.rest, p.after, p.done = string(key), generation, false, 0, false
			}
			if p.done {
				return nil
			}
			model, err := modelOf(ctx, tx, name)
			if err == nil {
				chunks, err = chunksWithout(ctx, tx, model, labels, p.rest, p.after, n)
			}
			return err
		})
		if err != nil || p.done {
			return 0, err
		}
		if len(chunks) == 0 && !p.rest {
			p.rest, p.after = true, 0
			continue
		}
		if len(chunks) == 0 {
			if p.after == 0 || p.generation == generation {
				p.generation, p.done = generation, true
				return 0, x.dropModels(ctx, name, labels)
			}
			p.generation, p.rest, p.after = generation, false, 0 // documents may have changed behind the pass
			continue
		}
		if err := x.embedChunks(ctx, e, name, chunks); err != nil {
			return 0, err
		}
		p.after = chunks[len(chunks)-1].id
		return len(chunks), nil
	}
}

// chunksWithout returns up to n chunks with a greater number than after that have
// no vector of a model: of each document the first one, or also the rest.
func chunksWithout(ctx context.Context, tx *sql.Tx, model int64, labels []string, rest bool, after int64, n int) ([]unembedded, error) {
	where, args := "1", []any{after >> chunkBits, after, model}
	if labels != nil {
		list, _ := json.Marshal(labels) // strings always marshal
		where = `+d.label IN (SELECT value FROM json_each(?4))`
		args = append(args, string(list))
	}
	last := 0 // part of a document
	if rest {
		last = maxParts - 1
	}
	var chunks []unembedded
	err := collect(ctx, tx, func(rows *sql.Rows) error {
		var c unembedded
		err := rows.Scan(&c.id, &c.off, &c.len, &c.heading, &c.title, &c.hash)
		chunks = append(chunks, c)
		return err
	}, fmt.Sprintf(`SELECT c.id, c.off, c.len, c.heading, d.title, d.hash FROM docs d CROSS JOIN chunks c ON c.id BETWEEN d.id<<%d AND (d.id<<%[1]d)+%d
		WHERE d.id>=?1 AND c.id>?2 AND %s AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.chunk=c.id AND v.model=?3)
		ORDER BY d.id, c.id LIMIT %d`, chunkBits, last, where, n), args...)
	if err != nil {
		return nil, err
	}
	for i := range chunks {
		c := &chunks[i]
		text, err := window(ctx, tx, c.id>>chunkBits, c.off, c.off+min(c.len, embedText))
		if err != nil {
			return nil, err
		}
		// A heading path begins with the title in many documents.
		title := document.Truncate(c.title, titleSize)
		c.text = strings.ToValidUTF8(strings.Join(slices.DeleteFunc([]string{title, c.heading, text}, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n"), " ")
	}
	return chunks, nil
}

// embedChunks computes and stores the vectors of chunks.
func (x *Index) embedChunks(ctx context.Context, e embed.Embedder, name string, chunks []unembedded) error {
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.text
	}
	vectors, err := embed.Documents(ctx, e, texts)
	if err != nil {
		return err
	}
	blobs := make([][]byte, len(chunks))
	for i, v := range vectors {
		blobs[i] = []byte{}
		if v != nil {
			blobs[i] = encodeVector(v)
		}
	}
	return x.write(ctx, "writing vectors", func(tx *sql.Tx) error {
		model, err := useModel(ctx, tx, name)
		if err != nil {
			return err
		}
		put, err := tx.PrepareContext(ctx, fmt.Sprintf(`INSERT OR IGNORE INTO vectors(chunk, model, label, vector)
			SELECT c.id, ?, d.label, ? FROM chunks c CROSS JOIN docs d ON d.id=c.id>>%d
			WHERE c.id=? AND c.off=? AND c.len=? AND c.heading=? AND d.title=? AND d.hash=?`, chunkBits))
		if err != nil {
			return err
		}
		defer put.Close()
		for i, c := range chunks { // a chunk of a document that has changed meanwhile is left for the next pass
			if _, err := put.ExecContext(ctx, model, blobs[i], c.id, c.off, c.len, c.heading, c.title, c.hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// A keptVector is a vector of a document that is replaced by one with the same
// text.
type keptVector struct {
	row, model int64
	vector     []byte
	chunk      document.Chunk
}

// keepVectors returns the vectors of a stored document, if d has the same title
// and text.
func (w *writer) keepVectors(ctx context.Context, doc int64, d *document.Document) (kept []keptVector, err error) {
	err = collect(ctx, w.tx, func(rows *sql.Rows) error {
		var v keptVector
		err := rows.Scan(&v.row, &v.model, &v.vector, &v.chunk.Offset, &v.chunk.Length, &v.chunk.Heading)
		kept = append(kept, v)
		return err
	}, `SELECT v.chunk, v.model, v.vector, c.off, c.len, c.heading FROM docs d CROSS JOIN vectors v CROSS JOIN chunks c ON c.id=v.chunk
		WHERE d.id=? AND d.hash=? AND d.title=? AND v.chunk BETWEEN ? AND ? AND d.hash<>''`, doc, d.Hash, d.Title, rowOf(doc, 0), rowOf(doc, maxParts-1))
	return kept, err
}

// useModel returns the number of a model, and records that it is used.
func useModel(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO models(name, used) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET used=excluded.used RETURNING id`,
		name, time.Now().UnixMilli()).Scan(&id)
	return id, err
}

// dropModels deletes vectors of models that were not used for modelLifetime.
func (x *Index) dropModels(ctx context.Context, name string, labels []string) error {
	const batch = 2000
	for {
		var n int64
		err := x.write(ctx, "removing vectors of other models", func(tx *sql.Tx) error {
			if _, err := useModel(ctx, tx, name); err != nil {
				return err
			}
			where, args := conditions{labels: labels}.where()
			r, err := tx.ExecContext(ctx, `DELETE FROM vectors WHERE id IN (SELECT d.id FROM vectors d JOIN models m ON m.id=d.model WHERE `+where+` AND m.used<? LIMIT ?)`,
				append(args, time.Now().Add(-modelLifetime).UnixMilli(), batch)...)
			if err == nil {
				n, err = r.RowsAffected()
			}
			return err
		})
		if err != nil || n < batch {
			return err
		}
	}
}

// Embedded returns how many chunks of documents with one of the labels (nil: all)
// have a vector of an embedder, and how many chunks there are. It looks at all of
// them, and so should not be called often.
func (x *Index) Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error) {
	err = x.read(ctx, "counting vectors", func(tx *sql.Tx) error {
		where, args := conditions{labels: labels}.where()
		if err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM docs d CROSS JOIN chunks c ON c.id BETWEEN d.id<<%d AND (d.id<<%[1]d)+%d WHERE `, chunkBits, maxParts-1)+where,
			args...).Scan(&total); err != nil {
			return err
		}
		model, err := modelOf(ctx, tx, modelName(e))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM vectors d WHERE `+where+` AND d.model=?`, append(args, model)...).Scan(&done)
	})
	return done, total, err
}

// Embedding returns how many chunks have a vector while vectors are being computed;
// see [search.Indexer].
func (x *Index) Embedding(ctx context.Context, labels []string) (done, total int, err error) {
	var left time.Duration
	if err := x.read(ctx, "reading the time left for vectors", func(tx *sql.Tx) error {
		var err error
		left, err = vectorTime(ctx, tx)
		return err
	}); err != nil || left == 0 || x.vectors.embedder == nil {
		return 0, 0, err
	}
	return x.Embedded(ctx, x.vectors.embedder, labels)
}

// Vectors returns the state of the vectors of documents with one of the labels
// (nil: all), by the embedder of the index. See [Index.Embedded] for its cost.
func (x *Index) Vectors(ctx context.Context, labels []string) (search.VectorState, error) {
	e := x.vectors.embedder
	if e == nil {
		return search.VectorState{}, nil
	}
	s := search.VectorState{Model: e.ID(), Dimensions: e.Dimension()}
	var err error
	s.Embedded, s.Chunks, err = x.Embedded(ctx, e, labels)
	return s, err
}

// signal sends to a channel that has a place for one signal, unless there is one
// already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
