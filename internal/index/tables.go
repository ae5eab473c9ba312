package index

// tables1 creates the tables of version 1; see migrations for later versions.
//
// A document's number (docs.id) is never used again. A text is stored in parts
// of textPart bytes, because SQLite loads a whole BLOB even if only a part of
// it is read. Row [rowOf] of fts holds the tokens of chunk n. Its tags column
// holds one token for each tag, made of the tag's number, so that no two labels
// share a token. All times are milliseconds since 1970 unless the name says
// otherwise.
const tables1 = `
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

// tables3 adds what documents of users need: whether a document comes from a
// source or from a user, a type, the path by which users know the original, and
// tags, which are rows of tags of the kind "tag" (the label is the column
// docs.label). docs.updated is when the document was last stored or tagged.
//
// A vector is what a model computed from the text of a chunk. It is derived
// data, and is deleted with its chunk.
const tables3 = `
ALTER TABLE docs RENAME COLUMN indexed TO updated;
ALTER TABLE docs ADD COLUMN from_source INTEGER NOT NULL DEFAULT 0;
ALTER TABLE docs ADD COLUMN type TEXT NOT NULL DEFAULT '';
ALTER TABLE docs ADD COLUMN source_path TEXT NOT NULL DEFAULT '';
UPDATE docs SET from_source=1, source_path=path, type=CASE mimetype
	WHEN 'text/markdown' THEN 'markdown' WHEN 'text/html' THEN 'html' WHEN 'application/xhtml+xml' THEN 'html'
	WHEN 'application/pdf' THEN 'pdf' ELSE 'text' END;
CREATE INDEX docs_source_path ON docs(source_path);
CREATE TABLE doc_tags(
	doc INTEGER NOT NULL REFERENCES docs(id) ON DELETE CASCADE,
	tag INTEGER NOT NULL REFERENCES tags(id),
	PRIMARY KEY(doc, tag)) WITHOUT ROWID;
CREATE INDEX doc_tags_tag ON doc_tags(tag, doc);
CREATE TABLE models(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE vectors(
	chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
	model INTEGER NOT NULL REFERENCES models(id),
	vector BLOB NOT NULL,
	UNIQUE(chunk, model));
`

// tables4 replaces the full-text table of SQLite and the table of words by
// segments; see segments.go. Maintain builds them from the texts.
const tables4 = `
DROP TABLE fts;
DROP TABLE terms;
DELETE FROM tags WHERE kind<>'tag';
DELETE FROM kv WHERE key='analyzer';
ALTER TABLE docs DROP COLUMN posted;
CREATE TABLE segments(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	label TEXT NOT NULL,
	analyzer INTEGER NOT NULL,
	format INTEGER NOT NULL,
	docs INTEGER NOT NULL,
	size INTEGER NOT NULL,
	removed INTEGER NOT NULL,
	deleted BLOB,
	file TEXT NOT NULL);
CREATE INDEX segments_label ON segments(label);
CREATE TABLE segment_bodies(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
`

// tables5 adds which files of a source are indexed ([document.Rules] as JSON, or
// "") and what is left out ([LeftOut] as JSON, or "" until it is known), and the
// sections of documents (a list of [document.Section] as JSON, by the number of
// the document; a document without headings has no row) and their pages. queue
// gets the name of the file that a job adds, "" if there is none; see queue.go.
//
// Each vector gets a number that is never used again, and the label of its
// document; see vectors.go. No earlier version wrote a vector. models.used is when
// vectors of the model were last written or looked for.
const tables5 = `
ALTER TABLE sources ADD COLUMN rules TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN left_out TEXT NOT NULL DEFAULT '';
CREATE TABLE sections(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE pages(doc INTEGER NOT NULL, off INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY(doc, off)) WITHOUT ROWID;
ALTER TABLE queue ADD COLUMN filename TEXT NOT NULL DEFAULT '';
DROP TABLE vectors;
ALTER TABLE models ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
CREATE TABLE vectors(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	chunk INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
	model INTEGER NOT NULL REFERENCES models(id),
	label TEXT NOT NULL,
	vector BLOB NOT NULL,
	UNIQUE(chunk, model));
CREATE INDEX vectors_label ON vectors(label, model, id);
`

// tables6 adds twins, the hashes of texts that several documents have, or once
// had. The triggers add them, so that a search need not read the hashes of all
// documents.
const tables6 = `
CREATE INDEX docs_hash ON docs(hash) WHERE text_size>0;
CREATE TABLE twins(hash TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO twins SELECT hash FROM docs WHERE text_size>0 GROUP BY hash HAVING count(*)>1;
CREATE TRIGGER docs_twin_new AFTER INSERT ON docs
	WHEN new.text_size>0 AND EXISTS(SELECT 1 FROM docs WHERE hash=new.hash AND text_size>0 AND id<>new.id)
	BEGIN INSERT INTO twins VALUES(new.hash) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER docs_twin_changed AFTER UPDATE OF hash ON docs
	WHEN new.text_size>0 AND EXISTS(SELECT 1 FROM docs WHERE hash=new.hash AND text_size>0 AND id<>new.id)
	BEGIN INSERT INTO twins VALUES(new.hash) ON CONFLICT DO NOTHING; END;
`

// tables7 allows parts of texts that are compressed: texts.size is how many bytes
// such a part has, 0 for a part that is stored as it is; see packText.
const tables7 = `
ALTER TABLE texts ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
`

// The keys of table kv.
const (
	keyAnalyzer   = "analyzer"   // until version 3
	keyGeneration = "generation" // increases with every change of documents
	keyProgress   = "progress:"  // followed by a label; see SetProgress
	keyVectorTime = "vectors"    // when all chunks will have vectors, and when that was estimated
	keyRebuild    = "rebuild"    // counts deleted segments whose documents are to be indexed again; none when all are
)

// A row number in fts, chunks and texts is a document number and, in the lowest
// chunkBits bits, the number of a part of the document. So the document number
// is known without a join.
const (
	chunkBits = 20
	maxParts  = 1 << chunkBits
)

// rowOf returns the row number of part n of a document in fts, chunks and
// texts.
func rowOf(doc int64, n int) int64 { return doc<<chunkBits | int64(n) }

// Sizes of stored values.
const (
	textPart  = 32 << 10 // bytes of a text in one row of texts, before they are compressed
	titleSize = 1 << 10  // bytes of a title that are indexed
)
