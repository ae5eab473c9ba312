package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// Limits on what one document may bring.
const (
	maxSurfaces = 50_000 // different words of a text that can be suggested
	overlapSize = 96     // bytes of the next chunk that are searched with a chunk
)

// Apply makes changes in one durable transaction: when it returns nil they
// survive a crash, otherwise nothing has changed. Applying the same changes
// again makes no difference. A document that replaces another one keeps its
// number and its time of creation.
//
// Other processes wait meanwhile, so that a batch should stay below about 200
// chunks. A document that cannot be stored gives an error of kind Invalid, one
// whose ID another document has one of kind Conflict, and a full disk one of
// kind Unavailable.
func (x *Index) Apply(ctx context.Context, changes []document.Change) error {
	if len(changes) == 0 {
		return ctx.Err()
	}
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return err
		}
	}
	begin := time.Now()
	err := x.write(ctx, "writing documents", func(tx *sql.Tx) error {
		p, err := newPoster(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if c.Delete != nil {
				err = p.remove(ctx, *c.Delete)
			} else {
				err = p.put(ctx, c.Put)
			}
			if err != nil {
				return err
			}
		}
		return p.finish(ctx)
	})
	if err == nil && time.Since(begin) > 2*breather {
		time.Sleep(breather)
	}
	return err
}

// breather is how long Apply pauses after more than a small change, so that
// other processes, who look each busyStep, get a turn.
const breather = 2 * busyStep

// checkChange refuses what would break the index or a promise of it.
func checkChange(c document.Change) error {
	d := c.Put
	if (d == nil) == (c.Delete == nil) {
		return fmt.Errorf("a change must either put or delete a document: %w", errkind.Invalid)
	}
	if d == nil {
		return nil
	}
	bad := func(what string) error {
		return fmt.Errorf("document %q of label %q %s: %w", d.Path, d.Label, what, errkind.Invalid)
	}
	switch {
	case d.ID == "" || d.Label == "" || d.Path == "":
		return bad("lacks an ID, a label or a path")
	case len(d.Chunks) >= maxParts || len(d.Text)/textPart >= maxParts:
		return bad("is too large to be stored")
	case !utf8.ValidString(d.Text):
		return bad("has a text that is not UTF-8")
	}
	for _, k := range d.Chunks {
		if k.Offset < 0 || k.Length < 0 || k.Offset > len(d.Text) || k.Length > len(d.Text)-k.Offset {
			return bad("has a chunk outside its text")
		}
	}
	return nil
}

// A poster puts documents and their postings into one transaction. It gathers
// the changes of the full-text table for the end, because SQLite lets FTS5
// write out what it has with each statement on another table that may fail
// halfway.
type poster struct {
	tx       *sql.Tx
	now      time.Time
	tags     map[[2]string]int64
	deltas   map[int64]map[string]int // by the label's number and the word
	postings []change
	addText  *sql.Stmt // closed with the transaction
	addChunk *sql.Stmt
}

func newPoster(ctx context.Context, tx *sql.Tx) (*poster, error) {
	p := &poster{tx: tx, now: time.Now(), tags: map[[2]string]int64{}, deltas: map[int64]map[string]int{}}
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&p.addText, `INSERT INTO texts(id, body) VALUES(?, ?)`},
		{&p.addChunk, `INSERT INTO chunks(id, off, len, heading) VALUES(?, ?, ?, ?)`},
	} {
		var err error
		if *s.to, err = tx.PrepareContext(ctx, s.text); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// A stored is what there is of a document already.
type stored struct {
	id, posted, textSize int64
	label, title, lang   string
}

// find looks a stored document up.
func (p *poster) find(ctx context.Context, r document.Ref) (s stored, ok bool, err error) {
	s.label = r.Label
	err = p.tx.QueryRowContext(ctx, `SELECT id, posted, text_size, title, lang FROM docs WHERE label=? AND path=?`, r.Label, r.Path).
		Scan(&s.id, &s.posted, &s.textSize, &s.title, &s.lang)
	if errors.Is(err, sql.ErrNoRows) {
		return s, false, nil
	}
	return s, err == nil, err
}

// remove takes a document out, where it exists.
func (p *poster) remove(ctx context.Context, r document.Ref) error {
	s, ok, err := p.find(ctx, r)
	if err != nil || !ok {
		return err
	}
	if err := p.erase(ctx, s); err != nil {
		return err
	}
	_, err = p.tx.ExecContext(ctx, `DELETE FROM docs WHERE id=?`, s.id)
	return err
}

// erase takes all of a document out but its row in docs.
func (p *poster) erase(ctx context.Context, s stored) error {
	if err := p.unpost(ctx, s); err != nil {
		return err
	}
	for _, t := range []string{`DELETE FROM chunks WHERE id BETWEEN ? AND ?`, `DELETE FROM texts WHERE id BETWEEN ? AND ?`} {
		if _, err := p.tx.ExecContext(ctx, t, rowOf(s.id, 0), rowOf(s.id, maxParts-1)); err != nil {
			return err
		}
	}
	return nil
}

// unpost takes a document's postings out.
func (p *poster) unpost(ctx context.Context, s stored) error {
	if s.posted == analysis.Version {
		text, err := window(ctx, p.tx, s.id, 0, s.textSize)
		if err != nil {
			return err
		}
		if err := p.countTerms(ctx, s.label, s.title, text, -1); err != nil {
			return err
		}
	}
	return collect(ctx, p.tx, func(rows *sql.Rows) error {
		c := change{gone: true}
		err := rows.Scan(&c.row)
		p.postings = append(p.postings, c)
		return err
	}, `SELECT id FROM chunks WHERE id BETWEEN ? AND ?`, rowOf(s.id, 0), rowOf(s.id, maxParts-1))
}

// put stores a document in the place of the one of the same label and path.
func (p *poster) put(ctx context.Context, d *document.Document) error {
	old, exists, err := p.find(ctx, document.Ref{Label: d.Label, Path: d.Path})
	if err != nil {
		return err
	}
	var other int64
	err = p.tx.QueryRowContext(ctx, `SELECT id FROM docs WHERE doc_id=? AND id<>?`, d.ID, old.id).Scan(&other)
	if err == nil {
		return fmt.Errorf("document %q of label %q has the ID of another one, %s: %w", d.Path, d.Label, d.ID, errkind.Conflict)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if exists {
		if err := p.erase(ctx, old); err != nil {
			return err
		}
	}
	id, err := p.putRow(ctx, d)
	if err != nil {
		return err
	}
	for off, n := 0, 0; off < len(d.Text); off, n = off+textPart, n+1 {
		if _, err := p.addText.ExecContext(ctx, rowOf(id, n), []byte(d.Text[off:min(off+textPart, len(d.Text))])); err != nil {
			return err
		}
	}
	chunks := d.Chunks
	if len(chunks) == 0 { // a document without text still has a title
		chunks = []document.Chunk{{Length: len(d.Text)}}
	}
	for n, c := range chunks {
		if _, err := p.addChunk.ExecContext(ctx, rowOf(id, n), c.Offset, c.Length, c.Heading); err != nil {
			return err
		}
	}
	return p.post(ctx, id, d.Label, d.Lang, d.Title, d.Text, chunks)
}

// putRow writes the row of a document and returns its number.
func (p *poster) putRow(ctx context.Context, d *document.Document) (int64, error) {
	var modified any
	if !d.Modified.IsZero() {
		modified = d.Modified.UnixMilli()
	}
	now := p.now.UnixMilli()
	var id int64
	err := p.tx.QueryRowContext(ctx, `INSERT INTO docs(doc_id, label, path, title, url, mimetype, filetype, lang, host, filename,
			modified, created, indexed, size, stamp_size, stamp_sec, stamp_nsec, hash, text_size, posted)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(label, path) DO UPDATE SET doc_id=excluded.doc_id, title=excluded.title, url=excluded.url,
			mimetype=excluded.mimetype, filetype=excluded.filetype, lang=excluded.lang, host=excluded.host, filename=excluded.filename,
			modified=excluded.modified, indexed=excluded.indexed, size=excluded.size, stamp_size=excluded.stamp_size, stamp_sec=excluded.stamp_sec,
			stamp_nsec=excluded.stamp_nsec, hash=excluded.hash, text_size=excluded.text_size, posted=excluded.posted
		RETURNING id`,
		d.ID, d.Label, d.Path, d.Title, d.URL, d.MIMEType, d.FileType, d.Lang, d.Host, d.Filename,
		modified, now, now, d.Size, d.Stamp.Size, d.Stamp.ModTime.Unix(), d.Stamp.ModTime.Nanosecond(), d.Hash, len(d.Text), analysis.Version).Scan(&id)
	return id, err
}
