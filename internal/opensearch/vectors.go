package opensearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// The vectors of a model are in a field of their own, so that several models can
// be used at the same time. Its name begins with vectorField.
const vectorField = "vector_"

// vectorVersion is the version of what vectors are made of. Vectors of another
// version are not used.
const vectorVersion = "chunk-1"

// fieldOfModel returns the field of an embedder's vectors.
func fieldOfModel(e embed.Embedder) string {
	sum := sha256.Sum256([]byte(e.ID() + " " + vectorVersion))
	return vectorField + hex.EncodeToString(sum[:8])
}

// A vectorRow is a row of the index of vectors. Each document has one whose ID is
// its number, as soon as a chunk has been dealt with, and one for each chunk. A row
// counts only while the document has the same print.
type vectorRow struct {
	Number int64    `json:"number"`
	Label  string   `json:"label"`
	Print  string   `json:"print"`
	Models []string `json:"models"`           // fields of the models that have dealt with it
	Chunks int      `json:"chunks,omitempty"` // of a document: how many first chunks they have dealt with
	N      *int     `json:"n,omitempty"`      // of a chunk
	Hash   string   `json:"hash,omitempty"`   // of a chunk: of what its vectors are made of
}

// dealt returns how many first chunks of a document in the state with a print a model
// is known to have dealt with. r is the row of the document, nil if there is none.
func (r *vectorRow) dealt(field, print string) int {
	if r == nil || r.Print != print || !slices.Contains(r.Models, field) {
		return 0
	}
	return r.Chunks
}

// withoutVectors is what is read of a row.
var withoutVectors = []string{"number", "label", "print", "models", "chunks", "n", "hash"}

// vectorRows returns those of the rows with some IDs that exist.
func (s *Store) vectorRows(ctx context.Context, ids []string) (map[string]*vectorRow, error) {
	out := map[string]*vectorRow{}
	err := s.get(ctx, inVectors, ids, withoutVectors, func(id string, _ version, data json.RawMessage) error {
		out[id] = &vectorRow{}
		return json.Unmarshal(data, out[id])
	})
	return out, err
}

// vectorID returns the ID of the row of a chunk of a document, or of the document
// if n is negative.
func vectorID(number int64, n int) string {
	if n < 0 {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("%d-%d", number, n)
}

// vectorOp returns an operation on a row.
func (s *Store) vectorOp(action, id string, body any) operation {
	return operation{action: action, meta: object{"_index": s.index(inVectors), "_id": id}, body: body}
}

// forget returns operations after which a document counts as one without vectors,
// and its first n chunks have none.
func (s *Store) forget(number int64, n int) []operation {
	if !s.HasVectors() {
		return nil
	}
	ops := []operation{s.vectorOp("delete", vectorID(number, -1), nil)}
	for i := range n {
		ops = append(ops, s.vectorOp("delete", vectorID(number, i), nil))
	}
	return ops
}

// addField adds a field of vectors, unless it exists.
func (s *Store) addField(ctx context.Context, field string, dimension int) error {
	s.mu.Lock()
	known := s.fields[field]
	s.mu.Unlock()
	if known {
		return nil
	}
	err := s.client.do(ctx, http.MethodPut, "/"+s.index(inVectors)+"/_mapping", nil,
		object{"properties": object{field: object{"type": "knn_vector", "dimension": dimension,
			"method": object{"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}}}}, nil)
	if err == nil {
		s.mu.Lock()
		s.fields[field] = true
		s.mu.Unlock()
	}
	return err
}

// Limits of EmbedNext.
const (
	embedPage   = 500              // documents that are looked at together, where nothing is to do
	passOverlap = 10 * time.Minute // what the clocks of machines may differ by
)

// A pass is how far EmbedNext has looked for documents without vectors. In each stage,
// it looks at them in the order of their changes.
type pass struct {
	generation string            // of the documents when it began
	since      time.Time         // when this generation was seen first
	began      time.Time         // the pass
	from       int64             // documents that were changed since this time are looked at
	stage      int               // of embed.Stages
	after      []json.RawMessage // place of the last document of the stage that was dealt with; nil at the beginning
	latest     int64             // time of the change of the last document of the first stage, which has all
	ended      bool
}

// pass returns the pass to continue, or nil if no document has changed since the
// last one. A change is part of the generation before searches see it, so a pass is
// the last one only if it began some time after the change.
func (s *Store) pass(key, generation string) *pass {
	p, now := s.passes[key], time.Now()
	switch {
	case p == nil:
		p = &pass{generation: generation, since: now, began: now}
		s.passes[key] = p
	case !p.ended:
	case p.generation != generation:
		*p = pass{generation: generation, since: now, began: now, from: p.latest - passOverlap.Milliseconds(),
			latest: p.latest}
	case p.began.Sub(p.since) < 2*s.o.Timeout:
		*p = pass{generation: generation, since: p.since, began: now, from: p.latest - passOverlap.Milliseconds(),
			latest: p.latest}
	default:
		return nil
	}
	return p
}

// EmbedNext computes the vectors of up to n chunks of documents with one of the
// labels (nil: all) and stores them, in the order of [embed.Stages]. It returns how many
// chunks it has dealt with; 0 without an error means that no chunk is left until
// documents change. The error is of kind Unsupported if the cluster has no k-NN plugin.
func (s *Store) EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error) {
	if err := s.Open(ctx); err != nil {
		return 0, err
	}
	if !s.HasVectors() {
		return 0, errNoVectors
	}
	s.embedding.Lock()
	defer s.embedding.Unlock()
	field := fieldOfModel(e)
	generation, err := s.Generation(ctx)
	if err != nil {
		return 0, err
	}
	p := s.pass(field+" "+strings.Join(labels, " "), generation)
	if p == nil {
		return 0, nil
	}
	for size := n; !p.ended; size *= 4 {
		size = min(size, embedPage)
		which := append(filters(labels, nil, nil), object{"range": object{"updated": object{"gte": p.from}}})
		if p.stage > 0 { // the others have all vectors
			which = append(which, object{"range": object{"chunk_count": object{"gt": embed.Stages[p.stage-1]}}})
		}
		body := only(object{"size": size, "track_total_hits": false,
			"sort": []object{{"updated": "asc"}, {"number": "asc"}}, "query": all(which...)},
			"number", "doc_id", "print", "updated", "chunk_count")
		if p.after != nil {
			body["search_after"] = p.after
		}
		r, err := s.search(ctx, inDocuments, body)
		if err != nil {
			return 0, err
		}
		dealt, whole, err := s.embedPage(ctx, e, field, r.Hits.Hits, n, p)
		if whole && len(r.Hits.Hits) < size {
			p.stage, p.after = p.stage+1, nil
			p.ended = p.stage == len(embed.Stages)
		}
		if err != nil || dealt > 0 {
			return dealt, err
		}
	}
	return 0, nil
}

var errNoVectors = fmt.Errorf("OpenSearch has no k-NN plugin, so documents are found by words only: install the plugin opensearch-knn: %w", errkind.Unsupported)

// An embedded is the work on the vectors of a document.
type embedded struct {
	row   row
	place []json.RawMessage
	old   *vectorRow // of the document; nil if there is none
	full  *row       // with the text
	texts []string   // what the vectors of the first chunks are made of
	done  bool       // there is nothing to do
}

// embedPage computes the vectors of up to n chunks of some documents, and records
// which documents need nothing more in the stage. It returns how many chunks it has
// dealt with, and whether all of the documents need nothing more.
func (s *Store) embedPage(ctx context.Context, e embed.Embedder, field string, hits []rawHit, n int,
	p *pass) (dealt int, whole bool, err error) {
	docs, ids := make([]embedded, len(hits)), make([]string, len(hits))
	for i, h := range hits {
		docs[i].place = h.Sort
		if docs[i].row, err = h.row(); err != nil {
			return 0, false, err
		}
		ids[i] = vectorID(docs[i].row.Number, -1)
	}
	rows, err := s.vectorRows(ctx, ids)
	if err != nil {
		return 0, false, err
	}
	var todo []string // IDs of the documents whose chunks are looked at
	first, chunks, last := embed.Stages[p.stage], 0, len(docs)
	for i := range docs {
		d := &docs[i]
		d.old = rows[ids[i]]
		missing := min(first, d.row.ChunkCount) - d.old.dealt(field, d.row.Print)
		if d.done = missing <= 0; d.done {
			continue
		}
		if chunks >= n {
			last = i
			break
		}
		todo, chunks = append(todo, d.row.ID), chunks+missing
	}
	full, err := s.latest(ctx, todo, []string{"number", "label", "print", "title", "text", "kept.chunks"})
	if err != nil {
		return 0, false, err
	}
	b := &embedBatch{s: s, field: field, left: n}
	var wanted []string
	for i := range docs[:last] {
		d := &docs[i]
		f := full[d.row.ID]
		if d.done = d.done || f == nil; d.done { // a document that was deleted meanwhile needs nothing
			continue
		}
		d.full, d.texts = &f.row, embedTexts(f.row.document())
		d.texts = d.texts[:min(first, len(d.texts))]
		for n := d.old.dealt(field, d.full.Print); n < len(d.texts); n++ {
			wanted = append(wanted, vectorID(d.row.Number, n))
		}
	}
	if rows, err = s.vectorRows(ctx, wanted); err != nil {
		return 0, false, err
	}
	for i := range docs[:last] {
		if !docs[i].done && !b.add(&docs[i], rows) {
			last = i
			break
		}
	}
	if err := b.store(ctx, e, full); err != nil {
		return 0, false, err
	}
	if last > 0 {
		if p.after = docs[last-1].place; p.stage == 0 {
			p.latest = max(p.latest, docs[last-1].row.Updated)
		}
	}
	return len(b.texts) + b.kept, last == len(docs), nil
}

// An embedBatch is the work of one call of EmbedNext.
type embedBatch struct {
	s     *Store
	field string
	left  int // chunks that may be added
	kept  int // chunks whose vectors only get another print
	texts []string
	put   []func(vector []float32) operation // what stores the vector of each text
	ops   []operation
}

// add adds those of the first chunks of a document that have no vectors. rows are those
// of chunks. It reports whether all of the chunks have vectors when the batch is stored.
func (b *embedBatch) add(d *embedded, rows map[string]*vectorRow) bool {
	r, old := d.full, d.old
	done := old.dealt(b.field, r.Print)
	for ; done < len(d.texts) && b.left > 0; done++ {
		id, n := vectorID(r.Number, done), done
		sum := sha256.Sum256([]byte(d.texts[n]))
		now := vectorRow{Number: r.Number, Label: r.Label, Print: r.Print, N: &n, Hash: hex.EncodeToString(sum[:12]),
			Models: []string{b.field}}
		switch before := rows[id]; {
		case before != nil && before.Hash == now.Hash && slices.Contains(before.Models, b.field):
			if before.Print != now.Print || before.Label != now.Label {
				b.ops = append(b.ops, b.s.vectorOp("update", id,
					object{"doc": object{"label": now.Label, "print": now.Print}}))
				b.kept++
			}
			continue
		case before != nil && before.Hash == now.Hash: // it has the vector of another model
			now.Models = append(now.Models, before.Models...)
			b.put = append(b.put, func(v []float32) operation {
				return b.s.vectorOp("update", id, object{"doc": now.with(b.field, v)})
			})
		default:
			b.put = append(b.put, func(v []float32) operation { return b.s.vectorOp("index", id, now.with(b.field, v)) })
		}
		b.texts = append(b.texts, d.texts[n])
		b.left--
	}
	now := vectorRow{Number: r.Number, Label: r.Label, Print: r.Print, Chunks: done, Models: []string{b.field}}
	switch {
	case old == nil:
	case old.Print != now.Print:
		for n := max(len(r.Kept.Chunks), 1); n < old.Chunks; n++ {
			b.ops = append(b.ops, b.s.vectorOp("delete", vectorID(r.Number, n), nil))
		}
	case done < old.Chunks:
		return done >= len(d.texts) // the row is that of other models, which are further
	case done == old.Chunks:
		now.Models = sorted(append(old.Models, b.field))
	}
	b.ops = append(b.ops, b.s.vectorOp("index", vectorID(r.Number, -1), now))
	return done >= len(d.texts)
}

// with returns the row with a vector, unless that is nil, in a field.
func (r vectorRow) with(field string, v []float32) object {
	out := object{"number": r.Number, "label": r.Label, "print": r.Print, "n": r.N, "hash": r.Hash, "models": r.Models}
	if v != nil {
		out[field] = v
	}
	return out
}

// store computes and stores the vectors of a batch. rows are the documents that it
// is about.
func (b *embedBatch) store(ctx context.Context, e embed.Embedder, rows map[string]*versionedRow) error {
	if len(b.texts) > 0 {
		vectors, err := embed.Documents(ctx, e, b.texts)
		if err != nil {
			return err
		}
		var ops []operation
		for i, v := range vectors {
			if v != nil && !embed.Normalize(v) {
				v = nil // the model can make no vector of this chunk
			}
			if v != nil {
				if err := b.s.addField(ctx, b.field, len(v)); err != nil {
					return err
				}
			}
			ops = append(ops, b.put[i](v))
		}
		b.ops = append(ops, b.ops...)
	}
	if len(b.ops) == 0 {
		return nil
	}
	errs, err := b.s.client.bulk(ctx, b.ops, true)
	for _, e := range errs {
		// Meanwhile, the document has changed, or another process has stored the vector.
		if !errors.Is(e, errMissing) && !errors.Is(e, errChanged) {
			err = cmp.Or(err, e)
		}
	}
	if err != nil {
		return err
	}
	// Documents that have been changed or deleted meanwhile have no vectors.
	ids := []string{}
	for id := range rows {
		ids = append(ids, id)
	}
	now, err := b.s.latest(ctx, ids, []string{"print"})
	if err != nil {
		return err
	}
	var stale []operation
	for id, f := range rows {
		switch n := now[id]; {
		case n == nil:
			stale = append(stale, b.s.forget(f.row.Number, max(len(f.row.Kept.Chunks), 1))...)
		case n.row.Print != f.row.Print:
			stale = append(stale, b.s.forget(f.row.Number, 0)...)
		}
	}
	if len(stale) > 0 {
		_, err = b.s.client.bulk(ctx, stale, true)
	}
	return err
}

// Embedded returns how many chunks of documents with one of the labels (nil:
// all) have a vector of an embedder, and how many chunks there are. Of a document that
// the embedders of several processes deal with, those of the slower one count when it
// has caught up.
func (s *Store) Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error) {
	if err := s.Open(ctx); err != nil {
		return 0, 0, err
	}
	sum := func(field string, filter []object, n *int) asked {
		return asked{inDocuments, object{"size": 0, "track_total_hits": false, "query": all(filter...),
			"aggs": object{"chunks": object{"sum": object{"field": field}}}}, func(r *result) error {
			*n = r.value("chunks")
			return nil
		}}
	}
	list := []asked{sum("chunk_count", filters(labels, nil, nil), &total)}
	if s.HasVectors() {
		list = append(list, sum("chunks", append(filters(labels, nil, nil), term("models", fieldOfModel(e))), &done))
		list[1].in = inVectors
	}
	err = s.searchAll(ctx, list)
	return min(done, total), total, err
}

// Vectors returns the state of the vectors; see kb.Store.
func (s *Store) Vectors(ctx context.Context, labels []string) (search.VectorState, error) {
	if err := s.Open(ctx); err != nil {
		return search.VectorState{}, err
	}
	e := s.o.Embedder
	switch {
	case e == nil:
		return search.VectorState{}, nil
	case !s.HasVectors():
		return search.VectorState{Reason: errkind.Message(errNoVectors)}, nil
	}
	v := search.VectorState{Model: e.ID(), Dimensions: e.Dimension()}
	var err error
	v.Embedded, v.Chunks, err = s.Embedded(ctx, e, labels)
	return v, err
}
