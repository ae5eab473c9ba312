// Package tables describes the tables of an index file: their schema, how
// their rows are numbered, and the queries that both writing and searching
// need. Package index writes them, package retrieve searches them.
package tables

// Schema makes the tables of an empty index.
//
// A document's number (docs.id) is never used again. A text is stored in parts
// of TextPart bytes, because SQLite loads a BLOB whole even for a window of
// it. Row number [Row] of fts holds the tokens of chunk n; its tags column
// holds one token a tag, made of the tag's number, so that no two labels ever
// share one. All times are milliseconds since 1970 unless the name says else.
const Schema = `
CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tags(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE(kind, name));
CREATE TABLE docs(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	doc_id TEXT NOT NULL UNIQUE,
	label TEXT NOT NULL,
	path TEXT NOT NULL,
	title TEXT NOT NULL,
	url TEXT NOT NULL,
	mimetype TEXT NOT NULL,
	filetype TEXT NOT NULL,
	lang TEXT NOT NULL,
	host TEXT NOT NULL,
	filename TEXT NOT NULL,
	modified INTEGER,
	created INTEGER NOT NULL,
	indexed INTEGER NOT NULL,
	size INTEGER NOT NULL,
	stamp_size INTEGER NOT NULL,
	stamp_sec INTEGER NOT NULL,
	stamp_nsec INTEGER NOT NULL,
	hash TEXT NOT NULL,
	text_size INTEGER NOT NULL,
	posted INTEGER NOT NULL,
	UNIQUE(label, path));
CREATE INDEX docs_modified ON docs(modified, id);
CREATE INDEX docs_label ON docs(label, modified, id);
CREATE TABLE texts(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE chunks(id INTEGER PRIMARY KEY, off INTEGER NOT NULL, len INTEGER NOT NULL, heading TEXT NOT NULL);
CREATE VIRTUAL TABLE fts USING fts5(title, text, tags, content='', contentless_delete=1, tokenize='ascii');
CREATE TABLE terms(term TEXT NOT NULL, label INTEGER NOT NULL, df INTEGER NOT NULL, PRIMARY KEY(term, label)) WITHOUT ROWID;
CREATE TABLE queries(word TEXT NOT NULL, label TEXT NOT NULL, n INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY(word, label)) WITHOUT ROWID;
CREATE TABLE queue(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	payload BLOB NOT NULL,
	attempts INTEGER NOT NULL,
	owner TEXT NOT NULL,
	lease INTEGER NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	doc INTEGER,
	error TEXT NOT NULL);
CREATE INDEX queue_state ON queue(state, id);
CREATE TABLE leases(name TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sources(label TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE) WITHOUT ROWID;
`

// The keys of table kv.
const (
	KeyAnalyzer   = "analyzer"   // version of package analysis that the terms are of
	KeyGeneration = "generation" // rises with every change of documents
	KeyProgress   = "progress"   // "done total time" of indexing
)

// ChunkBits is how many bits of a row number tell a part of a document, of
// which there are at most MaxParts. The rest is the document's number, so that
// no join is needed to get it.
const (
	ChunkBits = 20
	MaxParts  = 1 << ChunkBits
)

// Row is the row number of part n of a document in fts, chunks and texts.
func Row(doc int64, n int) int64 { return doc<<ChunkBits | int64(n) }

// Sizes of what the tables hold.
const (
	TextPart  = 32 << 10 // bytes of a text in one row of texts
	TitleSize = 1 << 10  // bytes of a title that are searched
)

// LastRune, behind a prefix, ends the range of words that begin with it.
const LastRune = "\U0010FFFF"
