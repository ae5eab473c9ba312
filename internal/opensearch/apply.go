package opensearch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// Limits on one document, as in package index.
const (
	maxChunks = 1 << 20

	changeAttempts = 10 // of a change of a row that others change at the same time
)

// Apply makes changes one after another; see kb.Store. When it returns nil, the
// cluster has confirmed them, and searches find them. If it fails, some of the
// changes may have been made. Consecutive Puts and Deletes of different
// documents are made together.
func (s *Store) Apply(ctx context.Context, changes []document.Change) error {
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return ctx.Err()
	}
	if err := s.Open(ctx); err != nil {
		return err
	}
	known := map[string]*found{} // what a Tagging before has seen
	in := s.names()
	for len(changes) > 0 {
		n, err := s.applyFirst(ctx, in, changes, known)
		if isLost(err) {
			// Another process has replaced the indexes, so that what was read of
			// them is of no use. The change can be made again.
			if again := s.reopen(ctx); again != nil {
				err = again
			} else if s.names() != in {
				err = &errkind.Remote{Kind: errkind.Unavailable, Status: http.StatusServiceUnavailable, Message: "the store has got new indexes: try again"}
			}
		}
		if err != nil {
			return fmt.Errorf("writing documents: %w", public(err))
		}
		changes = changes[n:]
	}
	return nil
}

// applyFirst makes the first n changes, at least one.
func (s *Store) applyFirst(ctx context.Context, in names, changes []document.Change, known map[string]*found) (n int, err error) {
	switch c := changes[0]; {
	case c.Tag != nil:
		f, err := s.retag(ctx, in, *c.Tag)
		known[c.Tag.ID] = f
		return 1, err
	case c.Put != nil:
		var docs []*document.Document
		size := 0
		for _, c := range changes {
			if c.Put == nil || size > bulkSize || slices.ContainsFunc(docs, func(d *document.Document) bool { return d.ID == c.Put.ID }) {
				break
			}
			docs, size = append(docs, c.Put), size+len(c.Put.Text)
		}
		return len(docs), s.put(ctx, in, docs, known)
	}
	var refs []document.Ref
	for _, c := range changes[:min(len(changes), 500)] {
		if c.Delete == nil {
			break
		}
		refs = append(refs, *c.Delete)
	}
	return len(refs), s.remove(ctx, in, refs, known)
}

// public turns errors of single rows into errors with a kind.
func public(err error) error {
	switch {
	case errors.Is(err, errChanged):
		return fmt.Errorf("another process has changed the document meanwhile: try again: %w", errkind.Conflict)
	case errors.Is(err, errMissing):
		return fmt.Errorf("the document does not exist: %w", errkind.NotFound)
	}
	return err
}

// checkChange returns an error of kind Invalid if a change is malformed or
// cannot be stored.
func checkChange(c document.Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	d := c.Put
	switch {
	case d == nil:
		return nil
	case len(d.Chunks) >= maxChunks:
		return d.Reject("is too large to be stored")
	}
	end := 0
	for _, k := range d.Chunks {
		if k.Offset > end {
			return d.Reject("has text between its chunks")
		}
		end = max(end, k.Offset+k.Length)
		if !utf8.ValidString(d.Text[k.Offset : k.Offset+k.Length]) {
			return d.Reject("has a chunk that splits a character")
		}
	}
	if len(d.Chunks) > 0 && end < len(d.Text) {
		return d.Reject("has text after its chunks")
	}
	return nil
}

// newRevision returns a revision, which begins with the time.
func newRevision(now time.Time) string {
	return fmt.Sprintf("%011x%s", now.UnixMilli(), strings.ToLower(rand.Text()[:12]))
}

// condition returns the meta data of an operation on a row that must be in a
// known state.
func (in names) condition(id string, v version) object {
	return object{"_index": in.documents, "_id": id, "if_seq_no": v.Seq, "if_primary_term": v.Term}
}

// put stores different documents.
func (s *Store) put(ctx context.Context, in names, docs []*document.Document, known map[string]*found) error {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID
	}
	old, err := s.latest(ctx, in.documents, ids)
	if err != nil {
		return err
	}
	created := 0
	for _, d := range docs {
		if f := known[d.ID]; f != nil {
			old[d.ID] = f
		}
		switch f := old[d.ID]; {
		case f == nil:
			created++
		case f.row.Label != d.Label || f.row.Path != d.Path:
			return fmt.Errorf("document %q of label %q has the ID %s, which belongs to another document: %w", d.Path, d.Label, d.ID, errkind.Conflict)
		}
	}
	numbers, err := s.numbers(ctx, created)
	if err != nil {
		return err
	}
	now := time.Now()
	var chunks, rows []operation
	of := make([][2]int, len(docs))     // the chunks of each document
	newest := make([]string, len(docs)) // the revision of each document
	sending := s.sendAll(ctx)
	sent, size := 0, 0 // chunks that are sent, and bytes of the texts of the others
	for i, d := range docs {
		r := newRow(d, now)
		r.Revision = newRevision(now)
		newest[i] = r.Revision
		op := operation{action: "create", meta: object{"_index": in.documents, "_id": d.ID}}
		if f := old[d.ID]; f != nil {
			r.Number, r.Created = f.row.Number, f.row.Created
			if d.Tags == nil {
				r.Tags = f.row.Tags
			}
			op.action, op.meta = "index", in.condition(d.ID, f.version)
		} else {
			r.Number, r.Created = numbers[0], now.UnixMilli()
			numbers = numbers[1:]
		}
		from := len(chunks)
		if op.body, err = s.fit(inDocuments, r); err != nil {
			return errors.Join(err, sending.wait())
		}
		for _, c := range chunkRows(d, r.Revision, r.Number) {
			body, err := s.fit(inChunks, c)
			if err != nil {
				return errors.Join(err, sending.wait())
			}
			chunks = append(chunks, operation{"index", object{"_index": in.chunks, "_id": chunkID(r.Revision, c.N)}, body})
		}
		of[i] = [2]int{from, len(chunks)}
		rows = append(rows, op)
		s.noteLanguage(analysis.LanguageOf(d.Lang))
		if size += len(d.Text); size >= sendSize || i == len(docs)-1 {
			sending.groups <- chunks[sent:len(chunks):len(chunks)]
			sent, size = len(chunks), 0
		}
	}
	if err := sending.wait(); err != nil {
		s.discard(ctx, chunks)
		return err
	}
	if err := s.refresh(ctx, in.chunks); err != nil {
		return err // Sweep decides about the chunks
	}
	errs, err := s.client.bulk(ctx, rows, true)
	if err != nil {
		return err // the rows may have been stored: Sweep decides about the chunks
	}
	revisions := map[string]string{}
	for i, d := range docs {
		if errors.Is(errs[i], errChanged) {
			revisions[d.ID] = newest[i]
		}
	}
	made, err := s.made(ctx, in.documents, revisions)
	if err != nil {
		return err
	}
	var gone []operation // chunks of the old versions, and of the new ones that were not stored
	for i, d := range docs {
		if made[d.ID] != nil {
			errs[i] = nil
		}
		if errs[i] != nil {
			err = cmp.Or(err, errs[i])
			if !errkind.Retryable(errs[i]) { // otherwise the row may have been stored
				gone = append(gone, chunks[of[i][0]:of[i][1]]...)
			}
		} else if f := old[d.ID]; f != nil {
			gone = append(gone, in.chunkOps(f.row.Revision, f.row.Chunks)...)
		}
	}
	s.discard(ctx, gone)
	return err
}

// made returns those of some rows of an index, by ID, that have the given revision. If the
// node with the primary shard fails, OpenSearch sends a change to the next one,
// which may have it already. So a change may be made and refused as a conflict
// with itself, and its chunks must not be discarded.
func (s *Store) made(ctx context.Context, index string, revisions map[string]string) (map[string]*found, error) {
	rows, err := s.latest(ctx, index, slices.Collect(maps.Keys(revisions)))
	maps.DeleteFunc(rows, func(id string, f *found) bool { return f.row.Revision != revisions[id] })
	return rows, err
}

// chunkOps returns operations on the chunks of a revision, for discard.
func (in names) chunkOps(revision string, n int) []operation {
	ops := make([]operation, n)
	for i := range ops {
		ops[i].meta = object{"_index": in.chunks, "_id": chunkID(revision, i)}
	}
	return ops
}

// discard deletes the chunks of operations. If it cannot, Sweep will.
func (s *Store) discard(ctx context.Context, chunks []operation) {
	if len(chunks) == 0 {
		return
	}
	ops := make([]operation, len(chunks))
	for i, c := range chunks {
		ops[i] = operation{action: "delete", meta: c.meta}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	if _, err := s.client.bulk(ctx, ops, true); err != nil {
		s.o.Log.Debug("chunks of an old version remain until the next sweep", "error", err)
	}
}

// sendSize is how many bytes of texts have their chunks sent together, while the
// next ones are analysed. Tokens make a request some three times as large.
const sendSize = 512 << 10

// sendRequests is how many such requests are made at a time.
const sendRequests = 2

// A sending sends groups of operations that must all succeed.
type sending struct {
	groups  chan []operation
	workers sync.WaitGroup
	errs    [sendRequests]error
}

// sendAll returns a sending, whose wait method must be called. Searches do not see
// the changes until the index is refreshed.
func (s *Store) sendAll(ctx context.Context) *sending {
	x := &sending{groups: make(chan []operation)}
	for i := range x.errs {
		x.workers.Go(func() {
			for ops := range x.groups {
				if x.errs[i] == nil {
					x.errs[i] = s.client.bulkAll(ctx, ops, false)
				}
			}
		})
	}
	return x
}

// wait waits until all groups are sent.
func (x *sending) wait() error {
	close(x.groups)
	x.workers.Wait()
	return cmp.Or(x.errs[:]...)
}

// refresh makes searches see all changes of an index.
func (s *Store) refresh(ctx context.Context, index string) error {
	return s.client.do(ctx, http.MethodPost, "/"+index+"/_refresh", nil, nil, nil)
}

// bulkAll sends operations that must all succeed.
func (c *client) bulkAll(ctx context.Context, ops []operation, refresh bool) error {
	if len(ops) == 0 {
		return nil
	}
	errs, err := c.bulk(ctx, ops, refresh)
	for _, e := range errs {
		err = cmp.Or(err, e)
	}
	return err
}

// remove removes documents. Those that do not exist are ignored.
func (s *Store) remove(ctx context.Context, in names, refs []document.Ref, known map[string]*found) error {
	for range changeAttempts {
		var should []object
		for _, r := range refs {
			should = append(should, object{"bool": object{"filter": []object{term("label", r.Label), term("path", r.Path)}}})
		}
		r, err := s.search(ctx, inDocuments, object{"size": len(refs), "seq_no_primary_term": true, "_source": onlyRow,
			"query": object{"bool": object{"filter": []object{{"bool": object{"should": should, "minimum_should_match": 1}}}}}})
		if err != nil {
			return err
		}
		rows, err := r.rows()
		if err != nil || len(rows) == 0 {
			return err
		}
		ops := make([]operation, len(rows))
		for i, h := range r.Hits.Hits {
			v := h.version
			if f := known[rows[i].ID]; f != nil {
				v = f.version
			}
			ops[i] = operation{action: "delete", meta: in.condition(h.ID, v)}
		}
		errs, err := s.client.bulk(ctx, ops, true)
		if err != nil {
			return err
		}
		again := false
		var gone []operation
		for i, e := range errs {
			switch {
			case e == nil:
				gone = append(gone, in.chunkOps(rows[i].Revision, rows[i].Chunks)...)
			case errors.Is(e, errChanged) && known[rows[i].ID] == nil:
				again = true
			case !errors.Is(e, errMissing):
				err = cmp.Or(err, e)
			}
		}
		s.discard(ctx, gone)
		if err != nil || !again {
			return err
		}
	}
	return errChanged
}

// retag changes the tags and the label of a document, and returns what it is
// then. A Tagging that changes nothing only checks that the document exists.
func (s *Store) retag(ctx context.Context, in names, t document.Tagging) (*found, error) {
	for range changeAttempts {
		f, err := s.retagOnce(ctx, in, t)
		if !errors.Is(err, errChanged) {
			return f, err
		}
	}
	return nil, errChanged
}

func (s *Store) retagOnce(ctx context.Context, in names, t document.Tagging) (*found, error) {
	rows, err := s.latest(ctx, in.documents, []string{t.ID})
	if err != nil {
		return nil, err
	}
	f := rows[t.ID]
	if f == nil {
		return nil, document.Missing(t.ID)
	}
	old := f.row
	f.row.Tags = slices.DeleteFunc(slices.Clone(old.Tags), func(tag string) bool { return slices.Contains(t.Remove, tag) })
	f.row.Tags = sorted(append(f.row.Tags, t.Add...))
	if err := document.CheckTags(f.row.Tags); err != nil {
		return nil, err
	}
	if t.Label == "" && len(t.Add) == 0 && len(t.Remove) == 0 {
		return f, nil
	}
	f.row.Updated = time.Now().UnixMilli()
	var moved []operation
	if t.Label != "" && t.Label != old.Label {
		if old.FromSource {
			return nil, fmt.Errorf("document %q is a file of the source %q and cannot get another label: %w", old.Path, old.Label, errkind.Conflict)
		}
		_, err := s.oneRow(ctx, object{"bool": object{"filter": []object{term("label", t.Label), term("path", old.Path)}}}, onlyRow)
		if err == nil {
			return nil, fmt.Errorf("label %q already has a document %q: %w", t.Label, old.Path, errkind.Conflict)
		} else if !errors.Is(err, errMissing) {
			return nil, err
		}
		f.row.Label, f.row.Revision = t.Label, newRevision(time.Now())
		if moved, err = s.moveChunks(ctx, in, old.Revision, f.row.Revision, t.Label); err != nil {
			return nil, err
		}
	}
	var answer version
	params := url.Values{"refresh": {"true"}, "require_alias": {"true"},
		"if_seq_no": {fmt.Sprint(f.Seq)}, "if_primary_term": {fmt.Sprint(f.Term)}}
	err = s.client.do(ctx, http.MethodPost, "/"+in.documents+"/_update/"+url.PathEscape(t.ID), params,
		object{"doc": object{"tags": f.row.Tags, "label": f.row.Label, "revision": f.row.Revision, "updated": f.row.Updated}}, &answer)
	if errors.Is(err, errChanged) && moved != nil {
		made, failed := s.made(ctx, in.documents, map[string]string{t.ID: f.row.Revision})
		if failed != nil {
			return nil, failed
		}
		if m := made[t.ID]; m != nil {
			answer, err = m.version, nil
		}
	}
	switch {
	case errors.Is(err, errMissing):
		s.discard(ctx, moved)
		return nil, document.Missing(t.ID)
	case errors.Is(err, errChanged):
		s.discard(ctx, moved)
		return nil, err
	case err != nil:
		return nil, err
	}
	if moved != nil {
		s.discard(ctx, in.chunkOps(old.Revision, old.Chunks))
	}
	f.version = answer
	return f, nil
}

// moveChunks copies the chunks of a revision to another one under a label.
func (s *Store) moveChunks(ctx context.Context, in names, from, to, label string) ([]operation, error) {
	var ops []operation
	err := s.eachChunk(ctx, from, func(source json.RawMessage) error {
		var c map[string]json.RawMessage // with its vectors
		var n struct{ N int }
		if err := errors.Join(json.Unmarshal(source, &c), json.Unmarshal(source, &n)); err != nil {
			return damaged(err)
		}
		c["revision"], _ = json.Marshal(to) // strings always marshal
		c["label"], _ = json.Marshal(label)
		ops = append(ops, operation{"index", object{"_index": in.chunks, "_id": chunkID(to, n.N)}, c})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.client.bulkAll(ctx, ops, true); err != nil {
		s.discard(ctx, ops)
		return nil, err
	}
	return ops, nil
}

// Numbers of documents are reserved in the store in ranges, so that no two
// processes use the same one.
const (
	numbersRow  = "numbers"
	numbersFrom = 1
	maxRange    = 1024 // unless more are needed at once
)

// numbers returns n numbers that no document has had.
func (s *Store) numbers(ctx context.Context, n int) ([]int64, error) {
	s.numbering.Lock()
	defer s.numbering.Unlock()
	out := make([]int64, 0, n)
	for len(out) < n {
		if s.next == s.limit {
			size := max(int64(n-len(out)), s.size)
			next, err := s.reserve(ctx, size)
			if err != nil {
				return nil, err
			}
			s.next, s.limit = next, next+size
			s.size = min(2*size, maxRange)
		}
		out = append(out, s.next)
		s.next++
	}
	return out, nil
}

// reserve reserves a range of numbers and returns the first one.
func (s *Store) reserve(ctx context.Context, size int64) (int64, error) {
	path := "/" + s.aliases().state
	for {
		var counter struct {
			version
			Source struct {
				Next int64 `json:"next"`
			} `json:"_source"`
		}
		params := url.Values{}
		err := s.client.do(ctx, http.MethodGet, path+"/_doc/"+numbersRow, nil, nil, &counter)
		first := counter.Source.Next
		switch {
		case errors.Is(err, errMissing):
			first = numbersFrom
			params.Set("op_type", "create")
		case err != nil:
			return 0, err
		default:
			params.Set("if_seq_no", fmt.Sprint(counter.Seq))
			params.Set("if_primary_term", fmt.Sprint(counter.Term))
		}
		err = s.client.do(ctx, http.MethodPut, path+"/_doc/"+numbersRow, params, object{"next": first + size}, nil)
		if errors.Is(err, errChanged) {
			continue // another process has reserved a range
		}
		return first, err
	}
}
