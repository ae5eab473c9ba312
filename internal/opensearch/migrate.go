package opensearch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"knowhow/internal/errkind"
)

// Limits of migrations.
const (
	leaseTime   = time.Minute // after which a process that does not renew its lease is taken to be dead
	copyChunks  = 1000        // chunks of documents that are copied together
	copyEach    = 100         // and documents
	fewChanges  = 100         // of a pass, after which changes are stopped for the last passes
	maxPasses   = 10          // while changes are made, and again while they are stopped
	progressLog = 15 * time.Second
)

// Migrate replaces the indexes if they were written by an older version of this
// program. It returns when they have the present version, so it may take long.
// Meanwhile, the store can be used as usual, also by programs of the older version.
//
// It fills new indexes beside the old ones, comparing all documents of both until
// few are different. Then it stops changes of documents, which fail with an error
// that is retryable, makes the rest equal, replaces the old indexes in one step, and
// deletes them. If it is interrupted, the next call continues. Of several processes,
// one does it, and the others wait for it.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.Open(ctx); err != nil {
		return err
	}
	l, err := s.lease(ctx)
	if err == nil && l == nil {
		err = s.removeOld(ctx)
	}
	if err != nil || l == nil {
		return err
	}
	working, lost := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { lost(l.renew(working)) })
	m := &migration{s: s}
	err = m.run(working)
	if ctx.Err() == nil && working.Err() != nil {
		err = context.Cause(working)
	}
	lost(nil)
	renewing.Wait()
	if err != nil && m.stopped {
		l.allow(ctx, m)
	}
	l.release(ctx)
	if err != nil {
		return fmt.Errorf("moving the documents to indexes of this version: %w", public(err))
	}
	if err := s.reopen(ctx); err != nil {
		return err
	}
	return s.removeOld(ctx)
}

// removeOld deletes the indexes that the present ones have replaced, after a time
// in which searches that have begun can end.
func (s *Store) removeOld(ctx context.Context) error {
	s.mu.Lock()
	old := s.numbered(s.current.number - 1)
	s.mu.Unlock()
	found, err := s.describe(ctx, old.documents+","+old.chunks)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := wait(ctx, s.o.leaseTime/12); err != nil {
		return err
	}
	for name, f := range found {
		if f.Mappings.Meta.Knowhow == nil || len(f.Aliases) > 0 {
			continue // not one of ours
		}
		if err := s.client.do(ctx, http.MethodDelete, "/"+name, nil, nil, nil); err != nil && !isLost(err) { // or another process has deleted it
			return fmt.Errorf("deleting old indexes: %w", err)
		}
	}
	return nil
}

// isOld reports whether the indexes have to be replaced.
func (s *Store) isOld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.old
}

// migrationRow is the ID of the row of the lease.
const migrationRow = "migration"

// A lease is the right to migrate. It is a row that its owner renews.
type lease struct {
	s     *Store
	owner string
	at    version // of the row
	beats int
}

// lease waits until this process has the lease. It returns nil when the indexes
// have the present version.
func (s *Store) lease(ctx context.Context) (*lease, error) {
	l := &lease{s: s, owner: rand.Text()}
	var seen version
	since := time.Now()
	for {
		if !s.isOld() {
			return nil, nil
		}
		var row version
		err := s.client.do(ctx, http.MethodGet, l.path(), nil, nil, &row)
		switch {
		case errors.Is(err, errMissing):
			err = l.write(ctx, url.Values{"op_type": {"create"}})
		case err == nil && row != seen:
			seen, since, err = row, time.Now(), errChanged
		case err == nil && time.Since(since) < s.o.leaseTime:
			err = errChanged
		case err == nil: // its owner does not renew it, by the clock of this process
			l.at = row
			err = l.write(ctx, l.at.params())
		}
		if !errors.Is(err, errChanged) {
			return l, err
		}
		if err := wait(ctx, s.o.leaseTime/20); err != nil {
			return nil, err
		}
		if err := s.reopen(ctx); err != nil {
			return nil, err
		}
	}
}

func (l *lease) path() string { return "/" + l.s.aliases().state + "/_doc/" + migrationRow }

// params are the parameters of a change of a row in a known state.
func (v version) params() url.Values {
	return url.Values{"if_seq_no": {fmt.Sprint(v.Seq)}, "if_primary_term": {fmt.Sprint(v.Term)}}
}

// write writes the row of the lease.
func (l *lease) write(ctx context.Context, params url.Values) error {
	l.beats++
	return l.s.client.do(ctx, http.MethodPut, l.path(), params, object{"kept": object{"owner": l.owner, "beats": l.beats}}, &l.at)
}

// errLost says that another process migrates.
var errLost = fmt.Errorf("another process has continued the work: %w", errkind.Conflict)

// renew renews the lease until ctx ends or the lease is lost. Other failures are
// ignored, because the lease is lost only when another process has taken it.
func (l *lease) renew(ctx context.Context) error {
	for {
		if err := wait(ctx, l.s.o.leaseTime/6); err != nil {
			return nil
		}
		if err := l.write(ctx, l.at.params()); errors.Is(err, errChanged) || errors.Is(err, errMissing) {
			return errLost
		}
	}
}

// release gives the lease up, so that the next process need not wait.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.s.o.Timeout)
	defer cancel()
	if err := l.s.client.do(ctx, http.MethodDelete, l.path(), l.at.params(), nil, nil); err != nil {
		l.s.o.Log.Debug("the lease of a migration ends later", "error", err)
	}
}

// allow allows changes of the old documents after a migration has failed, unless
// another process continues it.
func (l *lease) allow(ctx context.Context, m *migration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.s.o.Timeout)
	defer cancel()
	err := l.write(ctx, l.at.params())
	if err == nil {
		err = l.s.client.do(ctx, http.MethodPut, "/"+l.s.numbered(m.number).documents+"/_settings", nil, object{"index.blocks.write": nil}, nil)
	}
	if err != nil {
		l.s.o.Log.Warn("documents cannot be changed until the store is moved to indexes of this version: keep this program running", "error", err)
	}
}

// A migration is a copy of the documents of one pair of indexes to another.
type migration struct {
	s        *Store
	number   int   // of the old indexes
	from, to names // aliases for requests
	total    int   // documents
	stopped  bool  // changes of the old documents fail
	logged   time.Time
}

// run migrates while this process has the lease.
func (m *migration) run(ctx context.Context) error {
	s := m.s
	if err := s.reopen(ctx); err != nil || !s.isOld() {
		return err
	}
	s.mu.Lock()
	old := s.current.number
	s.mu.Unlock()
	m.number, m.from, m.to, m.logged = old, s.numbered(old).with(openSuffix), s.numbered(old+1).with(fillSuffix), time.Now()
	if err := m.create(ctx); err != nil {
		return err
	}
	s.o.Log.Info("the documents are moved to indexes of this version; searches and changes go on", "from", s.numbered(old).documents, "to", s.numbered(old+1).documents)
	for pass := 1; ; pass++ {
		n, err := m.pass(ctx)
		if err != nil {
			return err
		}
		if n <= fewChanges || pass == maxPasses {
			break
		}
	}
	m.stopped = true
	if err := m.stop(ctx); err != nil {
		return err
	}
	for pass := 1; ; pass++ {
		n, err := m.pass(ctx)
		if err == nil && n > 0 && pass == maxPasses {
			err = fmt.Errorf("%d documents differ in the new indexes: %w", n, errkind.Corrupt)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	if err := m.replace(ctx); err != nil {
		return err
	}
	s.o.Log.Info("the documents are in indexes of this version", "documents", m.total)
	return nil
}

// create creates the new indexes, unless an interrupted migration has done so.
func (m *migration) create(ctx context.Context) error {
	for _, n := range m.s.newIndexes(m.number+1, fillSuffix) {
		found, err := m.s.describe(ctx, n.index)
		if err != nil {
			return err
		}
		if f, ok := found[n.index]; ok {
			old, err := m.s.compare(n.index, f.Mappings.Meta.Knowhow)
			if err != nil {
				return err
			}
			if !old {
				continue
			}
			// It is of a version between the old one and this one.
			if err := m.s.client.do(ctx, http.MethodDelete, "/"+n.index, nil, nil, nil); err != nil {
				return err
			}
		}
		if err := m.s.create(ctx, n, m.s.HasVectors()); err != nil {
			return err
		}
	}
	return nil
}

// addVectors adds the fields of vectors of the old chunks to the new ones.
func (m *migration) addVectors(ctx context.Context) error {
	found, err := m.s.describe(ctx, m.from.chunks)
	if err != nil || !m.s.HasVectors() {
		return err
	}
	fields := object{}
	for _, f := range found {
		for name, p := range f.Mappings.Properties {
			if strings.HasPrefix(name, vectorField) {
				fields[name] = p
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return m.s.client.do(ctx, http.MethodPut, "/"+m.to.chunks+"/_mapping", nil, object{"properties": fields}, nil)
}

// stop stops changes of the old documents. It returns when those that are being
// made are done.
func (m *migration) stop(ctx context.Context) error {
	err := m.s.client.do(ctx, http.MethodPut, "/"+m.s.numbered(m.number).documents+"/_block/write", nil, nil, nil)
	for _, index := range []string{m.from.documents, m.from.chunks} {
		if err == nil {
			err = m.s.refresh(ctx, index)
		}
	}
	return err
}

// replace makes the new indexes the present ones in one step. It fails if another
// process has done so.
func (m *migration) replace(ctx context.Context) error {
	old, now, present := m.s.numbered(m.number), m.s.numbered(m.number+1), m.s.aliases()
	var actions []object
	for _, x := range [][3]string{{old.documents, now.documents, present.documents}, {old.chunks, now.chunks, present.chunks}} {
		actions = append(actions,
			object{"remove": object{"index": x[0], "alias": x[0] + openSuffix, "must_exist": true}},
			object{"remove": object{"index": x[0], "alias": x[2], "must_exist": true}},
			object{"remove": object{"index": x[1], "alias": x[1] + fillSuffix, "must_exist": true}},
			object{"add": object{"index": x[1], "alias": x[1] + openSuffix}},
			object{"add": object{"index": x[1], "alias": x[2]}})
	}
	if err := m.s.client.do(ctx, http.MethodPost, "/_aliases", nil, object{"actions": actions}, nil); err != nil {
		return err
	}
	// Programs of the older version see the new one in the documents, too.
	err := m.s.client.do(ctx, http.MethodPut, "/"+present.state+"/_mapping", nil, object{"_meta": object{"knowhow": m.s.o.version}}, nil)
	if err != nil {
		m.s.o.Log.Debug("the version of an index is not recorded", "index", present.state, "error", err)
	}
	return nil
}

// A listed is a document in a list of all.
type listed struct {
	version
	row row // its Number, ID, Revision, Tags and Chunks
}

// same reports whether a document is a copy of another.
func (l *listed) same(o *listed) bool {
	return l.row.Number == o.row.Number && l.row.Revision == o.row.Revision && slices.Equal(l.row.Tags, o.row.Tags)
}

// A listing is the documents of an index in the order of their IDs.
type listing struct {
	s     *Store
	index string
	page  []listed
	after []json.RawMessage
	ended bool
	total int
}

// next returns the next document without removing it from the list, or nil.
func (l *listing) next(ctx context.Context) (*listed, error) {
	for len(l.page) == 0 && !l.ended {
		body := only(object{"size": pageSize, "track_total_hits": true, "seq_no_primary_term": true, "query": object{"match_all": object{}},
			"sort": []object{{"doc_id": "asc"}}}, "number", "doc_id", "revision", "tags", "chunks")
		if l.after != nil {
			body["search_after"] = l.after
		}
		r, err := l.s.searchIn(ctx, l.index, body)
		if err != nil {
			return nil, err
		}
		for _, h := range r.Hits.Hits {
			l.page = append(l.page, listed{h.version, h.Fields.row()})
			l.after = h.Sort
		}
		l.total, l.ended = r.Hits.Total.Value, len(r.Hits.Hits) < pageSize
	}
	if len(l.page) == 0 {
		return nil, nil
	}
	return &l.page[0], nil
}

// pass compares the documents of both pairs of indexes and makes the new ones
// equal. It returns how many were different.
func (m *migration) pass(ctx context.Context) (changed int, err error) {
	if err := m.addVectors(ctx); err != nil {
		return 0, err
	}
	from, to := &listing{s: m.s, index: m.from.documents}, &listing{s: m.s, index: m.to.documents}
	var todo []difference
	chunks, done := 0, 0
	for {
		a, err := from.next(ctx)
		if err != nil {
			return changed, err
		}
		b, err := to.next(ctx)
		if err != nil {
			return changed, err
		}
		if a == nil && b == nil || len(todo) >= copyEach || chunks >= copyChunks {
			if err := m.equal(ctx, todo); err != nil {
				return changed, err
			}
			todo, chunks = todo[:0], 0
			if time.Since(m.logged) > progressLog {
				m.logged = time.Now()
				m.s.o.Log.Info("documents are moved to indexes of this version", "done", done, "total", from.total)
			}
		}
		if a == nil && b == nil {
			break
		}
		order := 0
		if a == nil || b != nil {
			order = 1
		}
		if a != nil {
			order = -1
			if b != nil {
				order = strings.Compare(a.row.ID, b.row.ID)
			}
		}
		d := difference{}
		if order <= 0 {
			d.from, from.page = a, from.page[1:]
			done++
		}
		if order >= 0 {
			d.to, to.page = b, to.page[1:]
		}
		if order == 0 && a.same(b) {
			continue
		}
		changed++
		chunks++
		if d.from != nil {
			chunks += d.from.row.Chunks
		}
		todo = append(todo, d)
	}
	m.total = from.total
	for _, index := range []string{m.to.chunks, m.to.documents} {
		if err := m.s.refresh(ctx, index); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// A difference is a document that differs in the two indexes; nil if it is not
// there.
type difference struct{ from, to *listed }

// equal makes some documents of the new indexes equal. Those that change meanwhile
// are left for the next pass.
func (m *migration) equal(ctx context.Context, list []difference) error {
	if len(list) == 0 {
		return nil
	}
	if m.s.o.copied != nil {
		if err := m.s.o.copied(); err != nil {
			return err
		}
	}
	var ids []string
	for _, d := range list {
		if d.from != nil {
			ids = append(ids, d.from.row.ID)
		}
	}
	rows, err := m.s.get(ctx, m.from.documents, ids, withoutTokens)
	if err != nil {
		return err
	}
	chunks, err := m.chunks(ctx, rows)
	if err != nil {
		return err
	}
	var texts, ops, gone []operation
	for _, d := range list {
		op := operation{action: "create"}
		if d.to != nil {
			op = operation{action: "index", meta: m.to.condition(d.to.row.ID, d.to.version)}
		}
		switch {
		case d.from == nil:
			op.action = "delete"
		case rows[d.from.row.ID] == nil:
			continue // removed meanwhile
		default:
			r := &rows[d.from.row.ID].row
			if op.meta == nil {
				op.meta = object{"_index": m.to.documents, "_id": r.ID}
			}
			row, written := m.copy(r, chunks[r.Revision])
			op.body = row
			for _, c := range written {
				texts = append(texts, operation{"index", object{"_index": m.to.chunks, "_id": c.id}, c.body})
			}
		}
		if d.to != nil && (d.from == nil || rows[d.from.row.ID].row.Revision != d.to.row.Revision) {
			gone = append(gone, m.to.chunkOps(d.to.row.Revision, d.to.row.Chunks)...)
		}
		ops = append(ops, op)
	}
	if err := m.s.client.bulkAll(ctx, texts, false); err != nil {
		return err
	}
	errs, err := m.s.client.bulk(ctx, ops, false)
	for _, e := range errs {
		if !errors.Is(e, errChanged) && !errors.Is(e, errMissing) {
			err = cmp.Or(err, e)
		}
	}
	if err == nil {
		m.s.discard(ctx, gone)
	}
	return err
}

// A rawChunk is the row of a chunk, with what is kept of it.
type rawChunk struct {
	chunkRow
	vectors map[string]json.RawMessage // and in which models it has none
}

// chunks reads the chunks of rows, by revision.
func (m *migration) chunks(ctx context.Context, rows map[string]*found) (map[string][]rawChunk, error) {
	var revisions []string
	for _, f := range rows {
		revisions = append(revisions, f.row.Revision)
	}
	out := map[string][]rawChunk{}
	body := object{"size": copyChunks, "track_total_hits": false, "query": object{"bool": object{"filter": []object{oneOf("revision", revisions)}}},
		"_source": object{"excludes": []string{"tokens"}}, "sort": []object{{"revision": "asc"}, {"n": "asc"}}}
	for {
		r, err := m.s.searchIn(ctx, m.from.chunks, body)
		if err != nil {
			return nil, err
		}
		for _, h := range r.Hits.Hits {
			c := rawChunk{}
			if err := errors.Join(json.Unmarshal(h.Source, &c.chunkRow), json.Unmarshal(h.Source, &c.vectors)); err != nil {
				return nil, damaged(err)
			}
			for name := range c.vectors {
				if name != noVector && !(strings.HasPrefix(name, vectorField) && m.s.HasVectors()) {
					delete(c.vectors, name)
				}
			}
			out[c.Revision] = append(out[c.Revision], c)
		}
		if len(r.Hits.Hits) < copyChunks {
			return out, nil
		}
		body["search_after"] = r.Hits.Hits[len(r.Hits.Hits)-1].Sort
	}
}

// A newChunk is the row of a chunk that is written.
type newChunk struct {
	id   string
	body any
}

// copy analyses a document again. Its number, its revision, its times and its
// vectors stay the same.
func (m *migration) copy(old *row, chunks []rawChunk) (*row, []newChunk) {
	rows := make([]chunkRow, len(chunks))
	for i, c := range chunks {
		rows[i] = c.chunkRow
	}
	d, whole := old.document(rows)
	if !whole { // it is damaged, or it changes at the moment
		m.s.o.Log.Warn("a document has lost chunks: add it again", "label", old.Label, "path", old.Path)
	}
	r := newRow(d, time.UnixMilli(old.Updated))
	r.Number, r.Revision, r.Created, r.Updated, r.Tags = old.Number, old.Revision, old.Created, old.Updated, old.Tags
	r.TextSize, r.Chunks = old.TextSize, old.Chunks
	var out []newChunk
	for i, c := range chunkRows(d, r.Revision, r.Number) {
		if i < len(rows) {
			c.N, c.Offset = rows[i].N, rows[i].Offset
		}
		x := newChunk{id: chunkID(r.Revision, c.N), body: c}
		if i < len(chunks) && len(chunks[i].vectors) > 0 {
			x.body = withVectors{c, chunks[i].vectors}
		}
		out = append(out, x)
	}
	if len(chunks) == 0 {
		out = nil
	}
	return r, out
}

// A withVectors is a chunk with its vectors.
type withVectors struct {
	chunkRow
	vectors map[string]json.RawMessage
}

// MarshalJSON returns one object.
func (w withVectors) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(w.chunkRow)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	for name, v := range w.vectors {
		out[name] = v
	}
	return json.Marshal(out)
}
