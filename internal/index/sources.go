package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Stamps returns the stamps of the documents from the source with a label, by
// path.
func (x *Index) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	stamps := map[string]document.Stamp{}
	err := x.db.Read(ctx, "reading stamps", func(tx *sql.Tx) error {
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var path string
			var s document.Stamp
			var sec, nsec int64
			if err := rows.Scan(&path, &s.Size, &sec, &nsec); err != nil {
				return err
			}
			s.ModTime = time.Unix(sec, nsec).UTC()
			stamps[path] = s
			return nil
		}, `SELECT path, stamp_size, stamp_sec, stamp_nsec FROM docs WHERE label=? AND from_source`, label)
	})
	return stamps, err
}

// Generation returns a text that changes with each change of documents by any
// process.
func (x *Index) Generation(ctx context.Context) (string, error) {
	var generation string
	err := x.db.Read(ctx, "reading the generation", func(tx *sql.Tx) error {
		var err error
		generation, err = segments.Generation(ctx, tx)
		return err
	})
	return generation, err
}

// Sources returns the stored sources, sorted by label.
func (x *Index) Sources(ctx context.Context) ([]document.Source, error) {
	var out []document.Source
	err := x.db.Read(ctx, "listing sources", func(tx *sql.Tx) error {
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var s document.Source
			var rules string
			err := rows.Scan(&s.Label, &s.Path, &s.Description, &rules)
			if err == nil && rules != "" {
				err = json.Unmarshal([]byte(rules), &s.Rules)
			}
			out = append(out, s)
			return err
		}, `SELECT label, path, description, rules FROM sources ORDER BY label`)
	})
	return out, err
}

// SourceLabels returns the labels of the sources.
func (x *Index) SourceLabels(ctx context.Context) ([]string, error) {
	sources, err := x.Sources(ctx)
	var labels []string
	for _, s := range sources {
		labels = append(labels, s.Label)
	}
	return labels, err
}

// WrittenLabels returns those of the labels that documents which users wrote have.
func (x *Index) WrittenLabels(ctx context.Context, labels []string) ([]string, error) {
	list, _ := json.Marshal(append([]string{}, labels...)) // strings always marshal
	var out []string
	err := x.db.Read(ctx, "listing labels", func(tx *sql.Tx) (err error) {
		out, err = database.Column[string](ctx, tx, writtenLabelsQuery, string(list))
		return err
	})
	return out, err
}

// writtenLabelsQuery finds documents that users wrote by their paths, which begin
// with a dot, because the index of paths begins with the label.
const writtenLabelsQuery = `SELECT j.value FROM json_each(?) j
	WHERE EXISTS (SELECT 1 FROM docs d WHERE d.label=j.value AND d.path>='.' AND d.path<'/' AND NOT d.from_source)
		ORDER BY j.value`

// AddSource stores a source. If a source with this label and path exists, its
// rules are replaced, and so is its description if the new one is not empty. A
// label or a path that belongs to another source gives an error of kind
// Conflict.
func (x *Index) AddSource(ctx context.Context, s document.Source) error {
	if s.Label == "" || s.Path == "" {
		return fmt.Errorf("a source needs a label and a path: %w", errkind.Invalid)
	}
	rules, err := encodeRules(s.Rules)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, "adding a source", func(tx *sql.Tx) error {
		var other document.Source
		err := tx.QueryRowContext(ctx,
			`SELECT label, path FROM sources WHERE label=? OR path=? ORDER BY label=? DESC`, s.Label, s.Path, s.Label).
			Scan(&other.Label, &other.Path)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, `INSERT INTO sources(label, path, description, rules) VALUES(?, ?, ?, ?)`,
				s.Label, s.Path, s.Description, rules)
			return err
		case err != nil:
			return err
		case other.Label == s.Label && other.Path == s.Path:
			_, err = tx.ExecContext(ctx,
				`UPDATE sources SET description=CASE ?1 WHEN '' THEN description ELSE ?1 END, rules=?3 WHERE label=?2`,
				s.Description, s.Label, rules)
			return err
		case other.Label == s.Label:
			return fmt.Errorf("label %q belongs to the source %s: choose another label: %w", s.Label, other.Path,
				errkind.Conflict)
		}
		return fmt.Errorf("%s is already a source with the label %q: %w", s.Path, other.Label, errkind.Conflict)
	})
}

// encodeRules returns the stored form of rules.
func encodeRules(r document.Rules) (string, error) {
	if len(r.Include) == 0 && len(r.Exclude) == 0 && !r.NoIgnore && r.Every == 0 && r.MaxPages == 0 {
		return "", nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// LeftOut is what the last look at a source left out.
type LeftOut struct {
	Counts map[string]int // files and folders by reason
	Paths  []LeftOutPath  // some or all of them, in order
	Time   time.Time      `json:",omitzero"` // of the look; the zero time if it is not known

	// Reader is the version of the code that read the files; 0 is any before the
	// version was stored.
	Reader int `json:",omitempty"`

	// Version is the version of the source that was read: the commit of a repository;
	// "" for other sources.
	Version string `json:",omitempty"`
}

// A LeftOutPath is a file or a folder (with a slash at the end) that is not
// indexed.
type LeftOutPath struct {
	Path, Reason string
	Message      string // what to do, for a file that should be indexed; otherwise ""
}

// SetLeftOut stores what is left out of a source. A label without a source is
// ignored.
func (x *Index) SetLeftOut(ctx context.Context, label string, left LeftOut) error {
	text, err := json.Marshal(left)
	if err != nil {
		return err
	}
	return x.db.Write(ctx, "storing what is left out", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sources SET left_out=? WHERE label=?`, string(text), label)
		return err
	})
}

// LeftOut returns what is left out of a source. It is empty for a label without
// a source, and for a source that was not looked at yet.
func (x *Index) LeftOut(ctx context.Context, label string) (LeftOut, error) {
	var left LeftOut
	err := x.db.Read(ctx, "reading what is left out", func(tx *sql.Tx) error {
		var text string
		err := tx.QueryRowContext(ctx, `SELECT left_out FROM sources WHERE label=?`, label).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) || err == nil && text == "" {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &left)
	})
	return left, err
}

// removeBatch is about how many chunks one transaction removes.
const removeBatch = 200

// RemoveSource removes a source and the documents from it, in transactions that
// are short enough for other writers. Documents that users wrote under its
// label stay. If RemoveSource is interrupted, the source and the rest of its
// documents remain. If neither a source nor a document from a source has the
// label, the error is of kind NotFound.
func (x *Index) RemoveSource(ctx context.Context, label string) error {
	known := false
	for {
		more := false
		err := x.change(ctx, "removing a source", nil, func(w *writer) error {
			paths, err := somePaths(ctx, w.tx, label)
			if err != nil {
				return err
			}
			for _, path := range paths {
				if err := w.remove(ctx, document.Ref{Label: label, Path: path}); err != nil {
					return err
				}
			}
			if more = len(paths) > 0; more {
				return nil
			}
			r, err := w.tx.ExecContext(ctx, `DELETE FROM sources WHERE label=?`, label)
			if err != nil {
				return err
			}
			if _, err := w.tx.ExecContext(ctx, `DELETE FROM queries WHERE label=?`, label); err != nil {
				return err
			}
			if _, err := w.tx.ExecContext(ctx, `DELETE FROM kv WHERE key=?`, keyProgress+label); err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n > 0 || known {
				return err
			}
			return fmt.Errorf("no source has the label %q: %w", label, errkind.NotFound)
		})
		if err != nil || !more {
			return err
		}
		known = true
	}
}

// somePaths returns paths of documents from the source with a label, as many as
// one transaction removes.
func somePaths(ctx context.Context, q database.Querier, label string) ([]string, error) {
	var paths []string
	chunks := 0
	err := database.Collect(ctx, q, func(rows *sql.Rows) error {
		var path string
		var n int
		err := rows.Scan(&path, &n)
		if chunks < removeBatch {
			paths = append(paths, path)
		}
		chunks += n
		return err
	}, `SELECT path, 1+(SELECT count(*) FROM chunks c WHERE c.id BETWEEN d.id<<? AND (d.id<<?)+?) FROM docs d
		WHERE label=? AND from_source LIMIT 50`,
		chunkBits, chunkBits, maxParts-1, label)
	return paths, err
}

// Labels returns the labels of all sources and documents, sorted.
func (x *Index) Labels(ctx context.Context) ([]search.Label, error) {
	var out []search.Label
	err := x.db.Read(ctx, "listing labels", func(tx *sql.Tx) error {
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var l search.Label
			err := rows.Scan(&l.Value)
			l.Name = l.Value
			out = append(out, l)
			return err
		}, `WITH RECURSIVE l(label) AS (SELECT min(label) FROM docs
				UNION ALL SELECT (SELECT min(label) FROM docs d WHERE d.label>l.label) FROM l WHERE l.label IS NOT NULL)
			SELECT label FROM sources UNION SELECT label FROM l WHERE label IS NOT NULL`)
	})
	slices.SortFunc(out, func(a, b search.Label) int { return strings.Compare(a.Value, b.Value) })
	return out, err
}
