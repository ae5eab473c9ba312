package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// putSections stores the sections of a document, which has none so far.
func (w *writer) putSections(ctx context.Context, id int64, sections []document.Section) error {
	if len(sections) == 0 {
		return nil
	}
	body, err := json.Marshal(sections)
	if err != nil {
		return fmt.Errorf("storing the sections of a document: %w", err)
	}
	_, err = w.tx.ExecContext(ctx, `INSERT INTO sections(id, body) VALUES(?, ?)`, id, body)
	return err
}

// Sections returns the sections of a document; see [search.Outliner].
func (x *Index) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	var stored []document.Section
	err := x.db.Read(ctx, "reading the sections of a document", func(tx *sql.Tx) error {
		var label string
		var body []byte
		err := tx.QueryRowContext(ctx, `SELECT d.label, coalesce(s.body, '[]')
			FROM docs d LEFT JOIN sections s ON s.id=d.id WHERE d.doc_id=?`, id).
			Scan(&label, &body)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, label) {
			return document.Missing(id)
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &stored)
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// Locate returns the documents with a path; see [search.Outliner].
func (x *Index) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	var found []search.Place
	err := x.db.Read(ctx, "locating a document", func(tx *sql.Tx) error {
		for _, query := range []string{locateQuery, locateTitleQuery} {
			err := database.Collect(ctx, tx, func(rows *sql.Rows) error {
				var p search.Place
				err := rows.Scan(&p.ID, &p.Label)
				if admits(labels, p.Label) {
					found = append(found, p)
				}
				return err
			}, query, path)
			if err != nil || found != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// These queries name the labels, because the index of paths begins with them. The
// second one finds what document.ResultPath names by its title.
const (
	locateQuery = `SELECT doc_id, label FROM docs
		WHERE source_path=?1 OR path=?1 AND label IN (SELECT label FROM segments) ORDER BY label, id`
	locateTitleQuery = `SELECT doc_id, label FROM docs
		WHERE title=? AND source_path='' AND path>='.' AND path<'/' AND label IN (SELECT label FROM segments)
			ORDER BY label, id`
)
