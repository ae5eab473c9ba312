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

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/fusion"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// The vectors of a model are in a field of their own, so that several models can
// be used at the same time. Its name begins with vectorField.
const vectorField = "vector_"

// Constants of vectors, as in package index.
const (
	vectorVersion = "chunk-1"
	embedText     = 1200 // bytes of the text of a chunk that are embedded
	embedQuery    = 1000 // bytes of a query that are embedded
	allowedDocs   = 10_000
)

// fieldOfModel returns the field of an embedder's vectors.
func fieldOfModel(e embed.Embedder) string {
	sum := sha256.Sum256([]byte(e.ID() + " " + vectorVersion))
	return vectorField + hex.EncodeToString(sum[:8])
}

// A dense is the ranking by meaning in one search. The zero dense does nothing.
type dense struct {
	s         *Store
	field     string
	query     []float32
	filter    []object
	near      []chunkHit // the best chunk of each of the best documents, with its cosine
	documents bool       // documents are ranked by it, and not only chunks
}

// errEmbedding is a failure of the embedder.
var errEmbedding = errors.New("the vector of the query")

// dense prepares the ranking of documents by meaning. For a query that asks for
// exact words or another order, the result does nothing.
func (s *Store) dense(ctx context.Context, m *matching, q search.Query) (*dense, error) {
	byScore := len(q.Sort) == 0 || q.Sort[0] == (search.SortKey{Field: "score", Desc: true})
	if !m.some || !byScore {
		return &dense{}, nil
	}
	d, err := s.wordsOrMeaning(ctx, m, q)
	if err != nil || d.query == nil {
		return &dense{}, err
	}
	d.documents = true
	r := &round{s: s}
	d.findNear(r)
	if err := r.send(ctx); err != nil {
		return nil, err
	}
	d.widen(m, q, relevance.NearWords, relevance.NearCosine)
	return d, nil
}

// wordsOrMeaning is meaning for a search that finds by words what it can. If the
// vector of the query is not there in time, the result does nothing.
func (s *Store) wordsOrMeaning(ctx context.Context, m *matching, q search.Query) (*dense, error) {
	d, err := s.meaning(ctx, m, q, s.o.EmbedTime)
	if errors.Is(err, errEmbedding) && ctx.Err() == nil {
		s.o.Log.Debug("a query was ranked by words only", "error", err)
		return &dense{}, nil
	}
	return d, err
}

// findNear adds the search for what is close in meaning to the query.
func (d *dense) findNear(r *round) {
	d.nearest(r, d.filter, relevance.Fused, relevance.Fused, func(hits []chunkHit) { d.near = hits })
}

// widen adds the documents whose cosine is least or more to what a query matches,
// if it has so many words that count.
func (d *dense) widen(m *matching, q search.Query, words int, least float64) {
	if counting, _ := significant(q.Text.Words(), m.langs); len(counting) < words {
		return
	}
	var close []string
	for _, h := range d.near {
		if h.score >= least && len(close) < relevance.NearDocs {
			close = append(close, h.Revision)
		}
	}
	if len(close) > 0 {
		m.query = anyOf([]object{m.query, {"constant_score": object{"filter": oneOf("revision", close), "boost": 0}}})
	}
}

// meaning returns a dense with the vector of a query, which it waits for until
// limit is over. Without an embedder or vectors, it does nothing.
func (s *Store) meaning(ctx context.Context, m *matching, q search.Query, limit time.Duration) (*dense, error) {
	if s.o.Embedder == nil || !s.HasVectors() {
		return &dense{}, nil
	}
	var labels, tags []string // tags that are labels, and the others
	for _, tag := range q.Tags {
		if _, ok := document.TagLabel(tag); ok {
			labels = append(labels, tag)
		} else {
			tags = append(tags, tag)
		}
	}
	d := &dense{s: s, field: fieldOfModel(s.o.Embedder), filter: filters(q.Labels, nil, labels)}
	var err error
	if d.query, err = s.queryVector(ctx, q.Text.String(), limit); err != nil {
		return nil, fmt.Errorf("%w: %w", errEmbedding, err)
	}
	if d.query != nil && (q.Langs != nil || len(tags) > 0 || len(q.Written) > 0 || len(q.Text.Options()) > 0) {
		allowed, err := s.allowed(ctx, m)
		if err != nil {
			return nil, err
		}
		if allowed != nil {
			d.filter = append(d.filter, oneOf("number", allowed))
		}
	}
	return d, nil
}

// allowed returns the numbers of the documents that meet the conditions beside
// the query, or nil if there are very many.
func (s *Store) allowed(ctx context.Context, m *matching) ([]int64, error) {
	r, err := s.search(ctx, inDocuments, only(object{"size": allowedDocs, "track_total_hits": true, "query": object{"bool": object{"filter": m.filter}}}, "number"))
	if err != nil || r.Hits.Total.Value > allowedDocs {
		return nil, err
	}
	out := make([]int64, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		out[i] = h.Fields.row().Number
	}
	return out, nil
}

// nearest adds a search for the best chunk of each of up to n documents, among
// the k chunks that are closest in meaning.
func (d *dense) nearest(r *round, filter []object, k, n int, found func([]chunkHit)) {
	body := d.nearestBody(filter, k)
	body["size"], body["collapse"] = min(n, k), object{"field": "revision"}
	d.s.addChunks(r, body, func(hits []chunkHit) { found(cosines(hits)) })
}

// nearestChunks adds a search for the k chunks that are closest in meaning.
func (d *dense) nearestChunks(r *round, filter []object, k int, found func([]chunkHit)) {
	d.s.addChunks(r, d.nearestBody(filter, k), func(hits []chunkHit) { found(cosines(hits)) })
}

// nearestBody returns the search for the k chunks that are closest in meaning. It
// finds nothing if no chunk has a vector of the model.
func (d *dense) nearestBody(filter []object, k int) object {
	return object{"size": k, "query": object{"knn": object{d.field: object{"vector": d.query, "k": k, "ignore_unmapped": true, "filter": object{"bool": object{"filter": filter}}}}}}
}

// cosines turns scores of OpenSearch into cosines.
func cosines(hits []chunkHit) []chunkHit {
	for i := range hits {
		hits[i].score = 2*hits[i].score - 1
	}
	return hits
}

// isNear reports whether a revision is one of the nearest documents.
func (d *dense) isNear(revision string) bool {
	return slices.ContainsFunc(d.near, func(h chunkHit) bool { return h.Revision == revision })
}

// revisions returns the revisions of the nearest documents.
func (d *dense) revisions() []string {
	out := make([]string, len(d.near))
	for i, h := range d.near {
		out[i] = h.Revision
	}
	return out
}

// rank ranks the best documents by words, which are in order, together with the
// nearest ones, which are among list. cosines are the closest chunks of documents,
// by revision. Scores stay on the scale of list.
func (d *dense) rank(list []ranked, cosines map[string]chunkHit) []ranked {
	if len(d.near) == 0 || !d.documents {
		return list
	}
	n := 0 // documents by words
	for n < len(list) && n < rankDepth && list[n].score > 0 {
		n++
	}
	var lexical, near []fusion.Hit[int]
	for i, r := range list {
		if i < n {
			lexical = append(lexical, fusion.Hit[int]{ID: i, Score: r.score})
		}
		h, ok := cosines[r.row.Revision]
		if !ok || i >= n && !d.isNear(h.Revision) {
			continue
		}
		near = append(near, fusion.Hit[int]{ID: i, Score: h.score})
		if list[i].chunk < 0 {
			list[i].chunk = h.N
		}
	}
	if len(near) == 0 {
		return list
	}
	slices.SortStableFunc(near, func(a, b fusion.Hit[int]) int { return cmp.Compare(b.Score, a.Score) })
	// The only document with all words stays first if it is so by words.
	only := n > 0 && list[0].all && !slices.ContainsFunc(list[1:], func(r ranked) bool { return r.all })
	var out []ranked
	fused := map[int]bool{}
	for _, f := range fusion.Rerank(lexical, near, rankDepth, only) {
		r := list[f.ID]
		r.score = f.Score
		out = append(out, r)
		fused[f.ID] = true
	}
	for i, r := range list {
		if !fused[i] {
			r.score = 0
			out = append(out, r)
		}
	}
	return out
}

// queryVector returns the vector of a query, or nil if the embedder does not know
// its language. The error is that of a context if it is not there in time.
func (s *Store) queryVector(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
	return s.queries.Vector(ctx, s.o.Embedder, document.Truncate(text, embedQuery), limit)
}

// hasField reports whether the field of vectors exists.
func (s *Store) hasField(ctx context.Context, field string) (bool, error) {
	s.mu.Lock()
	known := s.fields[field]
	s.mu.Unlock()
	if known {
		return true, nil
	}
	_, _, fields, err := s.checkIndexes(ctx) // another process may have added it
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fields = fields
	return fields[field], nil
}

// addField adds a field of vectors, unless it exists.
func (s *Store) addField(ctx context.Context, field string, dimension int) error {
	if ok, err := s.hasField(ctx, field); ok || err != nil {
		return err
	}
	err := s.client.do(ctx, http.MethodPut, "/"+s.names().chunks+"/_mapping", nil, object{"properties": object{field: object{"type": "knn_vector", "dimension": dimension,
		"method": object{"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}}}}, nil)
	if err == nil {
		s.mu.Lock()
		s.fields[field] = true
		s.mu.Unlock()
	}
	return err
}

// noVector is the list of models that can make no vector of a chunk.
const noVector = "no_vector"

// EmbedNext computes the vectors of up to n chunks of documents with one of the
// labels (nil: all) and stores them. It returns how many chunks it has dealt
// with; 0 without an error means that no chunk is left until documents change.
// The error is of kind Unsupported if the cluster has no k-NN plugin.
func (s *Store) EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error) {
	if err := s.Open(ctx); err != nil {
		return 0, err
	}
	if !s.HasVectors() {
		return 0, errNoVectors
	}
	field := fieldOfModel(e)
	chunks, err := s.chunksWithout(ctx, field, labels, n)
	if err != nil || len(chunks) == 0 {
		return 0, err
	}
	if err := s.embed(ctx, e, field, chunks); err != nil {
		return 0, err
	}
	return len(chunks), nil
}

var errNoVectors = fmt.Errorf("OpenSearch has no k-NN plugin, so documents are found by words only: install the plugin opensearch-knn: %w", errkind.Unsupported)

// An unembedded is a chunk without a vector.
type unembedded struct {
	version
	id   string
	text string // what is embedded
}

// without selects the chunks that have no vector of a model.
func without(field string, labels []string) object {
	return object{"bool": object{"filter": filters(labels, nil, nil), "must_not": []object{{"exists": object{"field": field}}, term(noVector, field)}}}
}

// chunksWithout returns up to n chunks without a vector of a model.
func (s *Store) chunksWithout(ctx context.Context, field string, labels []string, n int) ([]unembedded, error) {
	r, err := s.search(ctx, inChunks, object{"size": n, "seq_no_primary_term": true, "track_total_hits": false, "_source": []string{"text", "heading", "title"},
		"query": without(field, labels), "sort": []object{{"number": "asc"}, {"n": "asc"}}})
	if err != nil {
		return nil, err
	}
	out := make([]unembedded, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		var c chunkRow
		if err := json.Unmarshal(h.Source, &c); err != nil {
			return nil, damaged(err)
		}
		parts := []string{document.Truncate(c.Title, titleSize), c.Heading, document.Truncate(c.Text, embedText)}
		out[i] = unembedded{h.version, h.ID, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")}
	}
	return out, nil
}

// embed computes and stores the vectors of chunks.
func (s *Store) embed(ctx context.Context, e embed.Embedder, field string, chunks []unembedded) error {
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.text
	}
	vectors, err := embed.Documents(ctx, e, texts)
	if err != nil {
		return err
	}
	docs := make([]object, len(chunks))
	for i, v := range vectors {
		docs[i] = object{noVector: field}
		if v == nil || !embed.Normalize(v) {
			continue
		}
		if err := s.addField(ctx, field, len(v)); err != nil {
			return err
		}
		docs[i] = object{field: v}
	}
	ops := make([]operation, len(chunks))
	for i, c := range chunks {
		ops[i] = operation{"update", object{"_index": s.names().chunks, "_id": c.id}, object{"doc": docs[i]}}
	}
	errs, err := s.client.bulk(ctx, ops, true)
	for _, e := range errs {
		// Meanwhile, the document has changed, or another process has stored the vector.
		if !errors.Is(e, errMissing) && !errors.Is(e, errChanged) {
			err = cmp.Or(err, e)
		}
	}
	return err
}

// Embedded returns how many chunks of documents with one of the labels (nil:
// all) have a vector of an embedder, and how many chunks there are.
func (s *Store) Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error) {
	if err := s.Open(ctx); err != nil {
		return 0, 0, err
	}
	r, err := s.search(ctx, inChunks, object{"size": 0, "track_total_hits": true, "query": object{"bool": object{"filter": filters(labels, nil, nil)}},
		"aggs": object{"missing": object{"filter": without(fieldOfModel(e), nil)}}})
	if err != nil {
		return 0, 0, err
	}
	return r.Hits.Total.Value - r.inside("missing"), r.Hits.Total.Value, nil
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
