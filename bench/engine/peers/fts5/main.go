// The driver of SQLite's FTS5, compiled from C. Its table is contentless, as no
// other engine but knowhow stores texts, and has a column for labels.
package main

import (
	"database/sql"
	"errors"
	"io"
	"strings"

	_ "github.com/mattn/go-sqlite3"

	"peers/driver"
)

func main() { driver.Main(func(dir string) driver.Engine { return &engine{dir: dir} }) }

type engine struct {
	dir        string
	db         *sql.DB
	top, count *sql.Stmt
}

// batchSize is the number of chunks in a transaction, as in knowhow.
const batchSize = 200

func (e *engine) connect() (err error) {
	e.db, err = sql.Open("sqlite3", "file:"+e.dir+"/fts5.db?_journal_mode=wal&_synchronous=full&_cache_size=-8192")
	if err == nil {
		e.db.SetMaxOpenConns(1)
	}
	return err
}

func (e *engine) Build(chunks *driver.Chunks) error {
	if err := e.connect(); err != nil {
		return err
	}
	if _, err := e.db.Exec(`CREATE VIRTUAL TABLE fts USING fts5(text, label, content='', contentless_delete=1, tokenize='ascii')`); err != nil {
		return err
	}
	for {
		more, err := e.batch(chunks)
		if err != nil || !more {
			return err
		}
	}
}

func (e *engine) batch(chunks *driver.Chunks) (more bool, err error) {
	tx, err := e.db.Begin()
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`INSERT INTO fts(text, label) VALUES(?, ?)`)
	if err != nil {
		return false, err
	}
	for range batchSize {
		label, tokens, err := chunks.Next()
		if err == io.EOF {
			return false, tx.Commit()
		}
		if err == nil {
			_, err = insert.Exec(tokens, label)
		}
		if err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}

func (e *engine) Settle() error {
	_, err := e.db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

func (e *engine) Open() error {
	if err := e.connect(); err != nil {
		return err
	}
	var err, err2 error
	e.top, err = e.db.Prepare(`SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT 10`)
	e.count, err2 = e.db.Prepare(`SELECT count(*) FROM fts WHERE fts MATCH ?`)
	return errors.Join(err, err2)
}

func (e *engine) Close() error { return e.db.Close() }

func (e *engine) Search(q driver.Query) (int, error) {
	var match string
	switch q.Class {
	case "two words, AND", "three words, AND":
		match = `"` + strings.Join(q.Tokens, `" AND "`) + `"`
	case "phrase of three words":
		match = `"` + strings.Join(q.Tokens, " ") + `"`
	case "prefix of four letters":
		match = `"` + q.Tokens[0] + `"*`
	case "fuzzy, one edit":
		return 0, nil // FTS5 has no such query
	default:
		match = `"` + strings.Join(q.Tokens, `" OR "`) + `"`
	}
	match = `text : (` + match + `)`
	if q.Label != "" {
		match += ` AND label : "` + q.Label + `"`
	}
	rows, err := e.top.Query(match)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	var total int
	err = e.count.QueryRow(match).Scan(&total)
	return total, err
}
