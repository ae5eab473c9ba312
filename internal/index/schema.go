package index

import (
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
)

// schema is the tables of the index. Their versions begin with 7, because programs
// before the first release had others.
var schema = database.Schema{Application: 0x4b6e4877 /* KnHw */, First: 7, Create: tables,
	Upgrades: []database.Upgrade{presentIDs, queue.AddUsers}}

// tables creates the tables.
//
// A document's number (docs.id) is never used again. docs.updated is when the
// document was last stored or tagged. docs.source_path is the path by which users
// know the original of a document that they wrote. The tags of a document are rows
// of tags of the kind "tag"; its label is a column. All times are milliseconds
// since 1970 unless the name says otherwise.
//
// A text is stored in parts of textPart bytes, because SQLite loads a whole BLOB
// even if only a part of it is read. texts.size is how many bytes a compressed part
// has, 0 for a part that is stored as it is; see packText. The rows of texts and
// chunks are numbered by [rowOf]. sections has a list of [document.Section] as JSON
// for each document with headings, by its number. twins has the hashes of texts
// that several documents have, or once had. The triggers add them, so that a search
// need not read the hashes of all documents.
//
// sources.rules is which files of a source are indexed ([document.Rules] as JSON,
// or ""), sources.left_out what is left out ([LeftOut] as JSON, or "" until it is
// known).
const tables = `
CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE docs(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	doc_id TEXT NOT NULL UNIQUE,
	label TEXT NOT NULL,
	path TEXT NOT NULL,
	from_source INTEGER NOT NULL,
	source_path TEXT NOT NULL,
	type TEXT NOT NULL,
	title TEXT NOT NULL,
	url TEXT NOT NULL,
	mimetype TEXT NOT NULL,
	filetype TEXT NOT NULL,
	lang TEXT NOT NULL,
	host TEXT NOT NULL,
	filename TEXT NOT NULL,
	modified INTEGER,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	size INTEGER NOT NULL,
	stamp_size INTEGER NOT NULL,
	stamp_sec INTEGER NOT NULL,
	stamp_nsec INTEGER NOT NULL,
	hash TEXT NOT NULL,
	text_size INTEGER NOT NULL,
	UNIQUE(label, path));
CREATE INDEX docs_modified ON docs(modified, id);
CREATE INDEX docs_label ON docs(label, modified, id);
CREATE INDEX docs_source_path ON docs(source_path);
CREATE INDEX docs_hash ON docs(hash) WHERE text_size>0;
CREATE TABLE twins(hash TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER docs_twin_new AFTER INSERT ON docs
	WHEN new.text_size>0 AND EXISTS(SELECT 1 FROM docs WHERE hash=new.hash AND text_size>0 AND id<>new.id)
	BEGIN INSERT INTO twins VALUES(new.hash) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER docs_twin_changed AFTER UPDATE OF hash ON docs
	WHEN new.text_size>0 AND EXISTS(SELECT 1 FROM docs WHERE hash=new.hash AND text_size>0 AND id<>new.id)
	BEGIN INSERT INTO twins VALUES(new.hash) ON CONFLICT DO NOTHING; END;
CREATE TABLE tags(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE(kind, name));
CREATE TABLE doc_tags(
	doc INTEGER NOT NULL REFERENCES docs(id) ON DELETE CASCADE,
	tag INTEGER NOT NULL REFERENCES tags(id),
	PRIMARY KEY(doc, tag)) WITHOUT ROWID;
CREATE INDEX doc_tags_tag ON doc_tags(tag, doc);
CREATE TABLE texts(id INTEGER PRIMARY KEY, size INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE sections(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE pages(
	doc INTEGER NOT NULL,
	off INTEGER NOT NULL,
	label TEXT NOT NULL,
	PRIMARY KEY(doc, off)) WITHOUT ROWID;
CREATE TABLE chunks(id INTEGER PRIMARY KEY, off INTEGER NOT NULL, len INTEGER NOT NULL, heading TEXT NOT NULL);
CREATE TABLE queries(
	word TEXT NOT NULL,
	label TEXT NOT NULL,
	n INTEGER NOT NULL,
	last INTEGER NOT NULL,
	PRIMARY KEY(word, label)) WITHOUT ROWID;
CREATE TABLE leases(name TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sources(
	label TEXT PRIMARY KEY,
	path TEXT NOT NULL UNIQUE,
	description TEXT NOT NULL,
	rules TEXT NOT NULL,
	left_out TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
` + vectors.Tables + segments.Tables + queue.Tables

// keyProgress is the beginning of keys of table kv. It is followed by a label; see
// SetProgress.
const keyProgress = "progress:"

// The rows of chunks and texts are numbered by documents and parts; see
// [database.PartRow].
const (
	chunkBits = database.PartBits
	maxParts  = database.MaxParts
)

func rowOf(doc int64, n int) int64 { return database.PartRow(doc, n) }

// textPart is how many bytes of a text are in one row of texts, before they are
// compressed.
const textPart = 32 << 10
