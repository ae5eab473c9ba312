package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/index/database"
)

// Limits on one document.
const (
	maxSurfaces = 50_000 // words of a text that can be suggested
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
		defer func() { x.dropGathered(words, err == nil) }()
		if len(changes) == 0 {
			return ctx.Err()
		}
		begin := time.Now()
		err = x.change(ctx, "writing documents", words, func(p *poster) error { return p.apply(ctx, changes) })
		if err == nil && time.Since(begin) > 2*writePause {
			time.Sleep(writePause)
		}
		return err
	}, nil
}

// apply makes changes that are well-formed.
func (p *poster) apply(ctx context.Context, changes []document.Change) error {
	for _, c := range changes {
		var err error
		switch {
		case c.Delete != nil:
			err = p.remove(ctx, *c.Delete)
		case c.Tag != nil:
			err = p.retag(ctx, *c.Tag)
		default:
			err = p.put(ctx, c.Put)
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

// A poster writes documents and their words in one transaction. It collects the
// words, and writes a segment of them at the end.
type poster struct {
	x         *Index
	hot       *preparedTx
	now       time.Time
	tags      map[[2]string]int64
	labels    map[string]*labelSegments
	gathered  map[string]*gathered // by label
	mergeSoon bool                 // segments should be merged in the background
}

// change runs f with a poster in a durable transaction. If a segment is damaged,
// f is called again in another transaction. words are those of documents that f
// adds, as far as they are gathered; nil if none are.
func (x *Index) change(ctx context.Context, op string, words map[string]*gathered, f func(p *poster) error) error {
	soon := false
	err := x.mend(ctx, func() error {
		return x.db.WritePrepared(ctx, op, func(hot *preparedTx) error {
			for _, g := range words {
				g.used = false
			}
			p := &poster{
				x: x, hot: hot, now: time.Now(),
				tags: map[[2]string]int64{}, labels: map[string]*labelSegments{}, gathered: words,
			}
			defer p.close()
			if err := f(p); err != nil {
				return err
			}
			err := p.finish(ctx)
			soon = p.mergeSoon
			return err
		})
	})
	if err == nil && soon {
		signal(x.mergeSoon)
	}
	return err
}

// A stored is what the index holds of a document.
type stored struct {
	id, textSize                 int64
	label, title, filename, lang string
}

const findQuery = `SELECT id, text_size, title, filename, lang FROM docs WHERE label=? AND path=?`

// find returns the stored document that r names. ok is false if there is none.
func (p *poster) find(ctx context.Context, r document.Ref) (s stored, ok bool, err error) {
	s.label = r.Label
	err = p.hot.QueryRowContext(ctx, findQuery, r.Label, r.Path).
		Scan(&s.id, &s.textSize, &s.title, &s.filename, &s.lang)
	if errors.Is(err, sql.ErrNoRows) {
		return s, false, nil
	}
	return s, err == nil, err
}

// remove removes a document. A document that does not exist is ignored.
func (p *poster) remove(ctx context.Context, r document.Ref) error {
	s, ok, err := p.find(ctx, r)
	if err != nil || !ok {
		return err
	}
	if err := p.erase(ctx, s); err != nil {
		return err
	}
	_, err = p.hot.ExecContext(ctx, `DELETE FROM docs WHERE id=?`, s.id)
	return err
}

// erase removes everything of a document except its row in docs.
func (p *poster) erase(ctx context.Context, s stored) error {
	if err := p.unpost(ctx, s.id, s.label); err != nil {
		return err
	}
	for _, t := range []string{`DELETE FROM chunks WHERE id BETWEEN ? AND ?`, `DELETE FROM texts WHERE id BETWEEN ? AND ?`} {
		if _, err := p.hot.ExecContext(ctx, t, rowOf(s.id, 0), rowOf(s.id, maxParts-1)); err != nil {
			return err
		}
	}
	for _, t := range []string{`DELETE FROM sections WHERE id=?`, `DELETE FROM pages WHERE doc=?`} {
		if _, err := p.hot.ExecContext(ctx, t, s.id); err != nil {
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
	putRowQuery   = `INSERT INTO docs(doc_id, label, path, from_source, source_path, type, title, url, mimetype, filetype, lang, host, filename,
			modified, created, updated, size, stamp_size, stamp_sec, stamp_nsec, hash, text_size)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(label, path) DO UPDATE SET doc_id=excluded.doc_id, from_source=excluded.from_source, source_path=excluded.source_path, type=excluded.type, title=excluded.title, url=excluded.url,
			mimetype=excluded.mimetype, filetype=excluded.filetype, lang=excluded.lang, host=excluded.host, filename=excluded.filename,
			modified=excluded.modified, updated=excluded.updated, size=excluded.size, stamp_size=excluded.stamp_size, stamp_sec=excluded.stamp_sec,
			stamp_nsec=excluded.stamp_nsec, hash=excluded.hash, text_size=excluded.text_size
		RETURNING id`
)

// put stores a document. It replaces the one with the same label and path.
func (p *poster) put(ctx context.Context, d *document.Document) error {
	old, exists, err := p.find(ctx, document.Ref{Label: d.Label, Path: d.Path})
	if err != nil {
		return err
	}
	var other int64
	err = p.hot.QueryRowContext(ctx, ownerQuery, d.ID, old.id).Scan(&other)
	if err == nil {
		return fmt.Errorf("document %q of label %q has the ID %s, which belongs to another document: %w", d.Path, d.Label, d.ID, errkind.Conflict)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var vectors []keptVector
	if exists {
		if vectors, err = p.keepVectors(ctx, old.id, d); err != nil {
			return err
		}
		if err := p.erase(ctx, old); err != nil {
			return err
		}
	}
	id, err := p.putRow(ctx, d)
	if err != nil {
		return err
	}
	if d.Tags != nil {
		if exists {
			if _, err := p.hot.ExecContext(ctx, `DELETE FROM doc_tags WHERE doc=?`, id); err != nil {
				return err
			}
		}
		if err := p.addTags(ctx, id, d.Tags); err != nil {
			return err
		}
	}
	for off, n := 0, 0; off < len(d.Text); off, n = off+textPart, n+1 {
		size, body := packText(d.Text[off:min(off+textPart, len(d.Text))])
		if _, err := p.hot.ExecContext(ctx, putTextQuery, rowOf(id, n), size, body); err != nil {
			return err
		}
	}
	if err := p.putSections(ctx, id, d.Sections); err != nil {
		return err
	}
	for _, page := range d.Pages {
		if _, err := p.hot.ExecContext(ctx, putPageQuery, id, page.Offset, page.Label); err != nil {
			return err
		}
	}
	chunks := chunksOf(d)
	for n, c := range chunks {
		if _, err := p.hot.ExecContext(ctx, putChunkQuery, rowOf(id, n), c.Offset, c.Length, c.Heading); err != nil {
			return err
		}
	}
	for _, v := range vectors {
		if n := int(v.row & (maxParts - 1)); n >= len(chunks) || chunks[n] != v.chunk {
			continue
		}
		if _, err := p.hot.ExecContext(ctx, `INSERT INTO vectors(chunk, model, label, vector) VALUES(?, ?, ?, ?)`, v.row, v.model, d.Label, v.vector); err != nil {
			return err
		}
	}
	a := postingOf(d)
	a.id = id
	return p.post(ctx, a)
}

// putRow writes the row of a document and returns its number.
func (p *poster) putRow(ctx context.Context, d *document.Document) (int64, error) {
	var modified any
	if !d.Modified.IsZero() {
		modified = d.Modified.UnixMilli()
	}
	now := p.now.UnixMilli()
	var id int64
	err := p.hot.QueryRowContext(ctx, putRowQuery,
		d.ID, d.Label, d.Path, d.FromSource, d.SourcePath, d.Type, d.Title, d.URL, d.MIMEType, d.FileType, d.Lang, d.Host, d.Filename,
		modified, now, now, d.Size, d.Stamp.Size, d.Stamp.ModTime.Unix(), d.Stamp.ModTime.Nanosecond(), d.Hash, len(d.Text)).Scan(&id)
	return id, err
}

// retag changes the tags and the label of a document.
func (p *poster) retag(ctx context.Context, t document.Tagging) error {
	s := stored{}
	var path string
	var fromSource bool
	err := p.hot.QueryRowContext(ctx, `UPDATE docs SET updated=? WHERE doc_id=? RETURNING id, text_size, label, title, filename, lang, path, from_source`,
		p.now.UnixMilli(), t.ID).Scan(&s.id, &s.textSize, &s.label, &s.title, &s.filename, &s.lang, &path, &fromSource)
	if errors.Is(err, sql.ErrNoRows) {
		return document.Missing(t.ID)
	}
	if err != nil {
		return err
	}
	for _, tag := range t.Remove {
		if _, err := p.hot.ExecContext(ctx, `DELETE FROM doc_tags WHERE doc=? AND tag=(SELECT id FROM tags WHERE kind=? AND name=?)`,
			s.id, tagUser, tag); err != nil {
			return err
		}
	}
	if err := p.addTags(ctx, s.id, t.Add); err != nil {
		return err
	}
	if t.Label == "" || t.Label == s.label {
		return nil
	}
	if fromSource {
		return fmt.Errorf("document %q is a file of the source %q and cannot get another label: %w", path, s.label, errkind.Conflict)
	}
	if _, exists, err := p.find(ctx, document.Ref{Label: t.Label, Path: path}); err != nil {
		return err
	} else if exists {
		return fmt.Errorf("label %q already has a document %q: %w", t.Label, path, errkind.Conflict)
	}
	if _, err := p.hot.ExecContext(ctx, `UPDATE docs SET label=? WHERE id=?`, t.Label, s.id); err != nil {
		return err
	}
	// With new numbers, the vectors are new under the new label, and gone
	// under the old one.
	if _, err := p.hot.ExecContext(ctx, `INSERT OR REPLACE INTO vectors(chunk, model, label, vector)
		SELECT chunk, model, ?, vector FROM vectors WHERE chunk BETWEEN ? AND ?`, t.Label, rowOf(s.id, 0), rowOf(s.id, maxParts-1)); err != nil {
		return err
	}
	_, err = p.repost(ctx, s, t.Label)
	return err
}

// tag returns the number of a tag and adds the tag if it is new.
func (p *poster) tag(ctx context.Context, kind, name string) (int64, error) {
	key := [2]string{kind, name}
	if id, ok := p.tags[key]; ok {
		return id, nil
	}
	id, err := findTag(ctx, p.hot, kind, name)
	if err == nil && id == 0 {
		err = p.hot.QueryRowContext(ctx, `INSERT INTO tags(kind, name) VALUES(?, ?) RETURNING id`, kind, name).Scan(&id)
	}
	if err != nil {
		return 0, err
	}
	p.tags[key] = id
	return id, nil
}

// addTags adds tags to a document.
func (p *poster) addTags(ctx context.Context, doc int64, tags []string) error {
	if len(tags) == 0 {
		return nil
	}
	for _, name := range tags {
		tag, err := p.tag(ctx, tagUser, name)
		if err != nil {
			return err
		}
		if _, err := p.hot.ExecContext(ctx, `INSERT OR IGNORE INTO doc_tags(doc, tag) VALUES(?, ?)`, doc, tag); err != nil {
			return err
		}
	}
	var n int
	if err := p.hot.QueryRowContext(ctx, `SELECT count(*) FROM doc_tags WHERE doc=?`, doc).Scan(&n); err != nil {
		return err
	}
	return document.CheckTagCount(n)
}
