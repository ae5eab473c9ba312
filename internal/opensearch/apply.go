package opensearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits on one document, as in package index.
const (
	maxChunks = 1 << 20
	batchSize = 4 << 20 // bytes of the texts of documents that are put together

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
	known := map[string]version{} // what a Tagging before has seen
	for len(changes) > 0 {
		n, err := s.applyFirst(ctx, changes, known)
		if err != nil {
			return fmt.Errorf("writing documents: %w", public(err))
		}
		changes = changes[n:]
	}
	return nil
}

// applyFirst makes the first n changes, at least one.
func (s *Store) applyFirst(ctx context.Context, changes []document.Change, known map[string]version) (
	n int, err error) {
	switch c := changes[0]; {
	case c.Tag != nil && len(changes) > 1 && changes[1].Put != nil && changes[1].Put.ID == c.Tag.ID:
		_, err = s.retag(ctx, *c.Tag, changes[1].Put)
		return 2, err
	case c.Tag != nil:
		known[c.Tag.ID], err = s.retag(ctx, *c.Tag, nil)
		return 1, err
	case c.Put != nil:
		var docs []*document.Document
		size := 0
		for _, c := range changes {
			if c.Put == nil || size > batchSize || slices.ContainsFunc(docs,
				func(d *document.Document) bool { return d.ID == c.Put.ID }) {
				break
			}
			docs, size = append(docs, c.Put), size+len(c.Put.Text)
		}
		return len(docs), s.put(ctx, docs)
	}
	var refs []document.Ref
	for _, c := range changes[:min(len(changes), 500)] {
		if c.Delete == nil {
			break
		}
		refs = append(refs, *c.Delete)
	}
	return len(refs), s.remove(ctx, refs, known)
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

// store returns an operation that stores a row, in place of one in a known state
// unless that is nil.
func (s *Store) store(r *row, old *version) operation {
	r.Hit = r.packed()
	op := operation{action: "create", meta: object{"_index": s.index(inDocuments), "_id": r.ID}, body: r}
	if old != nil {
		op.action, op.meta["if_seq_no"], op.meta["if_primary_term"] = "index", old.Seq, old.Term
	}
	return op
}

// put stores different documents.
func (s *Store) put(ctx context.Context, docs []*document.Document) error {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID
	}
	old, err := s.latest(ctx, ids, onlyRow)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if f := old[d.ID]; f != nil && (f.row.Label != d.Label || f.row.Path != d.Path) {
			return belongs(d)
		}
	}
	numbers, err := s.numbers(ctx, len(docs)-len(old))
	if err != nil {
		return err
	}
	now := time.Now()
	var ops, stale []operation
	rows := make([]*row, len(docs))
	for i, d := range docs {
		r := newRow(d, now)
		rows[i] = r
		if f := old[d.ID]; f != nil {
			r.Number, r.Created = f.row.Number, f.row.Created
			if d.Tags == nil {
				r.Tags = f.row.Tags
			}
			ops = append(ops, s.store(r, &f.version))
			if f.row.Print != r.Print {
				stale = append(stale, s.forget(r.Number, 0)...)
			}
		} else {
			r.Number, r.Created = numbers[0], now.UnixMilli()
			numbers = numbers[1:]
			ops = append(ops, s.store(r, nil))
		}
		s.noteLanguage(analysis.LanguageOf(d.Lang))
	}
	return s.change(ctx, ops, rows, stale)
}

// change makes operations on documents, and removes vectors, which are not
// searched any more in any case. rows are what the operations store.
func (s *Store) change(ctx context.Context, ops []operation, rows []*row, stale []operation) error {
	sent := append(ops, stale...)
	errs, err := s.client.bulk(ctx, sent, true)
	copy(ops, sent) // with the versions
	if err != nil {
		return err
	}
	var refused []string
	for i, r := range rows {
		if errors.Is(errs[i], errChanged) {
			refused = append(refused, r.ID)
		}
	}
	// If the node with the primary shard fails, OpenSearch sends a change to the next
	// one, which may have it already. So a change may be made and refused as a
	// conflict with itself.
	made, err := s.latest(ctx, refused, onlyRow)
	for i, r := range rows {
		f := made[r.ID]
		if f != nil {
			ops[i].version = f.version
		}
		if f == nil || f.row.Updated != r.Updated || f.row.Hash != r.Hash || f.row.Print != r.Print ||
			f.row.Number != r.Number || !slices.Equal(f.row.Tags, r.Tags) {
			err = cmp.Or(err, errs[i])
		}
	}
	return err
}

// remove removes documents. Those that do not exist are ignored.
func (s *Store) remove(ctx context.Context, refs []document.Ref, known map[string]version) error {
	for range changeAttempts {
		var should []object
		for _, r := range refs {
			should = append(should, all(term("label", r.Label), term("path", r.Path)))
		}
		r, err := s.search(ctx, inDocuments, only(object{"size": len(refs), "seq_no_primary_term": true,
			"query": all(anyOf(should))}, "doc_id", "number", "chunk_count"))
		if err != nil {
			return err
		}
		rows, err := r.rows()
		if err != nil || len(rows) == 0 {
			return err
		}
		var ops, stale []operation
		for i, h := range r.Hits.Hits {
			v := h.version
			if k, ok := known[rows[i].ID]; ok {
				v = k
			}
			ops = append(ops, operation{action: "delete",
				meta: object{"_index": s.index(inDocuments), "_id": rows[i].ID,
					"if_seq_no": v.Seq, "if_primary_term": v.Term}})
			stale = append(stale, s.forget(rows[i].Number, rows[i].ChunkCount)...)
		}
		errs, err := s.client.bulk(ctx, append(ops, stale...), true)
		if err != nil {
			return err
		}
		again := false
		for i, e := range errs[:len(ops)] {
			_, seen := known[rows[i].ID]
			switch {
			case errors.Is(e, errChanged) && !seen:
				again = true
			case !errors.Is(e, errMissing):
				err = cmp.Or(err, e)
			}
		}
		if err != nil || !again {
			return err
		}
	}
	return errChanged
}

// belongs returns the error for a document whose ID is that of another one.
func belongs(d *document.Document) error {
	return fmt.Errorf("document %q of label %q has the ID %s, which belongs to another document: %w", d.Path, d.Label,
		d.ID, errkind.Conflict)
}

// retag changes the tags and the label of a document, puts another state in its place
// unless that is nil, and returns the version that it has then. A Tagging that changes
// nothing only checks that the document exists.
func (s *Store) retag(ctx context.Context, t document.Tagging, put *document.Document) (version, error) {
	for range changeAttempts {
		v, err := s.retagOnce(ctx, t, put)
		if !errors.Is(err, errChanged) {
			return v, err
		}
	}
	return version{}, errChanged
}

func (s *Store) retagOnce(ctx context.Context, t document.Tagging, put *document.Document) (version, error) {
	rows, err := s.latest(ctx, []string{t.ID}, true)
	if err != nil {
		return version{}, err
	}
	f := rows[t.ID]
	if f == nil {
		return version{}, document.Missing(t.ID)
	}
	if err := t.CheckFrom(f.row.Label); err != nil {
		return version{}, err
	}
	d := f.row.document()
	d.Tags = sorted(append(slices.DeleteFunc(d.Tags, func(tag string) bool { return slices.Contains(t.Remove, tag) }),
		t.Add...))
	if err := document.CheckTags(d.Tags); err != nil {
		return version{}, err
	}
	if t.Label == "" && len(t.Add) == 0 && len(t.Remove) == 0 && put == nil {
		return f.version, nil
	}
	if t.Label != "" && t.Label != d.Label {
		if d.FromSource {
			return version{}, fmt.Errorf("document %q is a file of the source %q and cannot get another label: %w",
				d.Path,
				d.Label, errkind.Conflict)
		}
		other, err := s.oneRow(ctx, []object{term("label", t.Label), term("path", d.Path)}, "doc_id")
		if err == nil && other.ID == t.ID {
			return version{}, errChanged
		} else if err == nil {
			return version{}, fmt.Errorf("label %q already has a document %q: %w", t.Label, d.Path, errkind.Conflict)
		} else if !errors.Is(err, errMissing) {
			return version{}, err
		}
		d.Label = t.Label
	}
	if put != nil {
		if put.Label != d.Label || put.Path != d.Path {
			return version{}, belongs(put)
		}
		tags := d.Tags
		next := *put
		if d = &next; d.Tags == nil {
			d.Tags = tags
		}
		s.noteLanguage(analysis.LanguageOf(d.Lang))
	}
	r := newRow(d, time.Now())
	r.Number, r.Created = f.row.Number, f.row.Created
	var stale []operation
	if r.Print != f.row.Print {
		stale = s.forget(r.Number, 0)
	}
	ops := []operation{s.store(r, &f.version)}
	if err = s.change(ctx, ops, []*row{r}, stale); errors.Is(err, errMissing) {
		err = document.Missing(t.ID)
	}
	return ops[0].version, err
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
	path := "/" + s.index(inState)
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
