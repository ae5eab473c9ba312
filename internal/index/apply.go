package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
)

// Apply makes changes in one durable transaction: if it returns nil, the
// changes survive a crash; otherwise nothing has changed. Applying the same
// changes again has no effect. A document that replaces another one keeps its
// number and its time of creation. The number of a removed document is never
// used again.
//
// Other processes that write wait for the transaction to end, so a batch should
// stay below about 1,000 chunks.
//
// Errors have these kinds: Invalid for a document or a tag that cannot be
// stored; Conflict for a document whose ID or whose path under its label
// belongs to another document, and for a new label of a document from a source;
// NotFound for a Tagging of a document that does not exist; Unavailable if the
// disk is full.
func (x *Index) Apply(ctx context.Context, changes []document.Change) error {
	apply, err := x.Prepare(ctx, changes)
	if err != nil {
		return err
	}
	return apply(ctx)
}

// Prepare checks changes and gathers their words. It returns a function that
// makes them, as Apply does, and that may be called once. Changes may be prepared
// while others are applied. Errors are those of Apply.
func (x *Index) Prepare(ctx context.Context, changes []document.Change) (apply func(context.Context) error, err error) {
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return nil, err
		}
	}
	words, err := x.gather(ctx, changes)
	if err != nil {
		return nil, x.db.Fault("writing documents", err)
	}
	return func(ctx context.Context) (err error) {
		defer func() { x.segments.Drop(words, err == nil) }()
		if len(changes) == 0 {
			return ctx.Err()
		}
		begin := time.Now()
		err = x.change(ctx, "writing documents", words, func(w *writer) error { return w.apply(ctx, changes) })
		if err == nil && time.Since(begin) > 2*writePause {
			time.Sleep(writePause)
		}
		return err
	}, nil
}

// apply makes changes that are well-formed.
func (w *writer) apply(ctx context.Context, changes []document.Change) error {
	for _, c := range changes {
		var err error
		switch {
		case c.Delete != nil:
			err = w.remove(ctx, *c.Delete)
		case c.Tag != nil:
			err = w.retag(ctx, *c.Tag)
		default:
			err = w.put(ctx, c.Put)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writePause is how long Apply pauses after a change that took longer than
// twice this time, so that other processes, which retry every database.BusyStep, can
// write.
const writePause = 2 * database.BusyStep

// checkChange returns an error of kind Invalid if a change is malformed or
// cannot be stored.
func checkChange(c document.Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	if d := c.Put; d != nil && (len(d.Chunks) >= maxParts || len(d.Text)/textPart >= maxParts) {
		return d.Reject("is too large to be stored")
	}
	return nil
}

// gather gathers the words of the documents that changes put. The caller must drop
// them.
func (x *Index) gather(ctx context.Context, changes []document.Change) (segments.Words, error) {
	var docs []segments.Document
	for _, c := range changes {
		if c.Put != nil {
			docs = append(docs, wordsOf(c.Put, 0))
		}
	}
	if len(docs) > 1 {
		if err := x.db.Read(ctx, "finding documents", func(tx *sql.Tx) error {
			return x.order(ctx, tx, docs, changes)
		}); err != nil {
			return nil, err
		}
	}
	return x.segments.Gather(ctx, docs)
}

// order sorts the documents that changes put by the numbers that they have or will
// get.
func (x *Index) order(ctx context.Context, tx *sql.Tx, docs []segments.Document, changes []document.Change) error {
	q, i := x.db.Prepared(tx), 0
	for _, c := range changes {
		if c.Put == nil {
			continue
		}
		docs[i].Number = math.MaxInt64 // new documents follow the others, in the order of the changes
		err := q.QueryRowContext(ctx, findQuery, c.Put.Label, c.Put.Path).Scan(&docs[i].Number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		i++
	}
	slices.SortStableFunc(docs, func(a, b segments.Document) int { return cmp.Compare(a.Number, b.Number) })
	return nil
}

// wordsOf returns what a segment has of the document with a number.
func wordsOf(d *document.Document, number int64) segments.Document {
	return segments.Document{
		Number: number, Label: d.Label, Title: d.Title, Filename: d.Filename, Language: d.Lang,
		Text: d.Text, Chunks: chunksOf(d),
	}
}

// chunksOf returns the chunks of a document, at least one: a document without
// text can be found by its title.
func chunksOf(d *document.Document) []document.Chunk {
	if len(d.Chunks) == 0 {
		return []document.Chunk{{Length: len(d.Text)}}
	}
	return d.Chunks
}

// A writer writes documents and their words in one transaction.
type writer struct {
	tx    *database.Prepared
	words *segments.Change
	now   time.Time
	tags  map[[2]string]int64
}

// change runs f with a writer in a durable transaction; see
// [segments.Store.Change].
func (x *Index) change(ctx context.Context, op string, words segments.Words, f func(w *writer) error) error {
	return x.segments.Change(ctx, op, words, func(tx *database.Prepared, c *segments.Change) error {
		return f(&writer{tx: tx, words: c, now: time.Now(), tags: map[[2]string]int64{}})
	})
}

const findQuery = `SELECT id FROM docs WHERE label=? AND path=?`

// find returns the number of a document, or 0 if it does not exist.
func (w *writer) find(ctx context.Context, r document.Ref) (id int64, err error) {
	err = w.tx.QueryRowContext(ctx, findQuery, r.Label, r.Path).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// remove removes a document. A document that does not exist is ignored.
func (w *writer) remove(ctx context.Context, r document.Ref) error {
	id, err := w.find(ctx, r)
	if err != nil || id == 0 {
		return err
	}
	if err := w.erase(ctx, id, r.Label); err != nil {
		return err
	}
	_, err = w.tx.ExecContext(ctx, `DELETE FROM docs WHERE id=?`, id)
	return err
}

// erase removes everything of a document except its row in docs.
func (w *writer) erase(ctx context.Context, id int64, label string) error {
	if err := w.words.Remove(ctx, id, label); err != nil {
		return err
	}
	for _, t := range []string{`DELETE FROM chunks WHERE id BETWEEN ? AND ?`,
		`DELETE FROM texts WHERE id BETWEEN ? AND ?`} {
		if _, err := w.tx.ExecContext(ctx, t, rowOf(id, 0), rowOf(id, maxParts-1)); err != nil {
			return err
		}
	}
	for _, t := range []string{`DELETE FROM sections WHERE id=?`, `DELETE FROM pages WHERE doc=?`} {
		if _, err := w.tx.ExecContext(ctx, t, id); err != nil {
			return err
		}
	}
	return nil
}

// Statements of put.
const (
	ownerQuery    = `SELECT id FROM docs WHERE doc_id=? AND id<>?`
	putTextQuery  = `INSERT INTO texts(id, size, body) VALUES(?, ?, ?)`
	putChunkQuery = `INSERT INTO chunks(id, off, len, heading) VALUES(?, ?, ?, ?)`
	putPageQuery  = `INSERT OR IGNORE INTO pages(doc, off, label) VALUES(?, ?, ?)`
	putRowQuery   = `INSERT INTO docs(doc_id, label, path, from_source, source_path, type, title, url,
			mimetype, filetype, lang, host, filename,
			modified, created, updated, size, stamp_size, stamp_sec, stamp_nsec, hash, text_size)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(label, path) DO UPDATE
			SET doc_id=excluded.doc_id, from_source=excluded.from_source, source_path=excluded.source_path,
			type=excluded.type, title=excluded.title, url=excluded.url,
			mimetype=excluded.mimetype, filetype=excluded.filetype, lang=excluded.lang,
			host=excluded.host, filename=excluded.filename,
			modified=excluded.modified, updated=excluded.updated, size=excluded.size,
			stamp_size=excluded.stamp_size, stamp_sec=excluded.stamp_sec,
			stamp_nsec=excluded.stamp_nsec, hash=excluded.hash, text_size=excluded.text_size
		RETURNING id`
)

// put stores a document. It replaces the one with the same label and path.
func (w *writer) put(ctx context.Context, d *document.Document) error {
	old, err := w.find(ctx, document.Ref{Label: d.Label, Path: d.Path})
	if err != nil {
		return err
	}
	var other int64
	err = w.tx.QueryRowContext(ctx, ownerQuery, d.ID, old).Scan(&other)
	if err == nil {
		return fmt.Errorf("document %q of label %q has the ID %s, which belongs to another document: %w", d.Path,
			d.Label, d.ID, errkind.Conflict)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var kept vectors.Kept
	if old != 0 {
		if kept, err = vectors.Keep(ctx, w.tx, old, d); err != nil {
			return err
		}
		if err := w.erase(ctx, old, d.Label); err != nil {
			return err
		}
	}
	id, err := w.putRow(ctx, d)
	if err != nil {
		return err
	}
	if d.Tags != nil {
		if old != 0 {
			if _, err := w.tx.ExecContext(ctx, `DELETE FROM doc_tags WHERE doc=?`, id); err != nil {
				return err
			}
		}
		if err := w.addTags(ctx, id, d.Tags); err != nil {
			return err
		}
	}
	for off, n := 0, 0; off < len(d.Text); off, n = off+textPart, n+1 {
		size, body := packText(d.Text[off:min(off+textPart, len(d.Text))])
		if _, err := w.tx.ExecContext(ctx, putTextQuery, rowOf(id, n), size, body); err != nil {
			return err
		}
	}
	if err := w.putSections(ctx, id, d.Sections); err != nil {
		return err
	}
	for _, page := range d.Pages {
		if _, err := w.tx.ExecContext(ctx, putPageQuery, id, page.Offset, page.Label); err != nil {
			return err
		}
	}
	chunks := chunksOf(d)
	for n, c := range chunks {
		if _, err := w.tx.ExecContext(ctx, putChunkQuery, rowOf(id, n), c.Offset, c.Length, c.Heading); err != nil {
			return err
		}
	}
	if err := kept.Restore(ctx, w.tx, d.Label, chunks); err != nil {
		return err
	}
	return w.words.Add(ctx, wordsOf(d, id))
}

// putRow writes the row of a document and returns its number.
func (w *writer) putRow(ctx context.Context, d *document.Document) (int64, error) {
	var modified any
	if !d.Modified.IsZero() {
		modified = d.Modified.UnixMilli()
	}
	now := w.now.UnixMilli()
	var id int64
	err := w.tx.QueryRowContext(ctx, putRowQuery,
		d.ID, d.Label, d.Path, d.FromSource, d.SourcePath, d.Type, d.Title, d.URL, d.MIMEType, d.FileType, d.Lang,
		d.Host, d.Filename, modified, now, now, d.Size,
		d.Stamp.Size, d.Stamp.ModTime.Unix(), d.Stamp.ModTime.Nanosecond(),
		d.Hash, len(d.Text)).Scan(&id)
	return id, err
}

// retag changes the tags and the label of a document.
func (w *writer) retag(ctx context.Context, t document.Tagging) error {
	var id int64
	var label, path string
	var fromSource bool
	err := w.tx.QueryRowContext(ctx, `UPDATE docs SET updated=? WHERE doc_id=? RETURNING id, label, path, from_source`,
		w.now.UnixMilli(), t.ID).Scan(&id, &label, &path, &fromSource)
	if errors.Is(err, sql.ErrNoRows) {
		return document.Missing(t.ID)
	}
	if err != nil {
		return err
	}
	if err := t.CheckFrom(label); err != nil {
		return err
	}
	for _, tag := range t.Remove {
		if _, err := w.tx.ExecContext(ctx,
			`DELETE FROM doc_tags WHERE doc=? AND tag=(SELECT id FROM tags WHERE kind=? AND name=?)`,
			id, tagUser, tag); err != nil {
			return err
		}
	}
	if err := w.addTags(ctx, id, t.Add); err != nil {
		return err
	}
	if t.Label == "" || t.Label == label {
		return nil
	}
	if fromSource {
		return fmt.Errorf("document %q is a file of the source %q and cannot get another label: %w", path, label,
			errkind.Conflict)
	}
	if other, err := w.find(ctx, document.Ref{Label: t.Label, Path: path}); err != nil {
		return err
	} else if other != 0 {
		return fmt.Errorf("label %q already has a document %q: %w", t.Label, path, errkind.Conflict)
	}
	if _, err := w.tx.ExecContext(ctx, `UPDATE docs SET label=? WHERE id=?`, t.Label, id); err != nil {
		return err
	}
	if err := vectors.Relabel(ctx, w.tx, id, t.Label); err != nil {
		return err
	}
	if err := w.words.Remove(ctx, id, label); err != nil {
		return err
	}
	d, err := storedDocuments{}.Document(ctx, w.tx, id)
	if err != nil || d == nil {
		return err
	}
	return w.words.Add(ctx, *d)
}

// tag returns the number of a tag and adds the tag if it is new.
func (w *writer) tag(ctx context.Context, kind, name string) (int64, error) {
	key := [2]string{kind, name}
	if id, ok := w.tags[key]; ok {
		return id, nil
	}
	id, err := findTag(ctx, w.tx, kind, name)
	if err == nil && id == 0 {
		err = w.tx.QueryRowContext(ctx, `INSERT INTO tags(kind, name) VALUES(?, ?) RETURNING id`, kind, name).Scan(&id)
	}
	if err != nil {
		return 0, err
	}
	w.tags[key] = id
	return id, nil
}

// addTags adds tags to a document.
func (w *writer) addTags(ctx context.Context, doc int64, tags []string) error {
	if len(tags) == 0 {
		return nil
	}
	for _, name := range tags {
		tag, err := w.tag(ctx, tagUser, name)
		if err != nil {
			return err
		}
		if _, err := w.tx.ExecContext(ctx, `INSERT OR IGNORE INTO doc_tags(doc, tag) VALUES(?, ?)`, doc,
			tag); err != nil {
			return err
		}
	}
	var n int
	if err := w.tx.QueryRowContext(ctx, `SELECT count(*) FROM doc_tags WHERE doc=?`, doc).Scan(&n); err != nil {
		return err
	}
	return document.CheckTagCount(n)
}
