// Package segments keeps the words of documents in segments (package segment),
// which are rows and files of a database, and follows their life: documents are
// added and removed in the transaction that stores them, small segments are merged,
// and damaged ones are left out and built again from the stored texts.
//
// Every segment has documents of one label only, so that a search under some labels
// sees nothing of other labels: no word, no frequency and no length. A small segment
// is a row of segment_bodies, a large one is a file. The rows of table segments, the
// deletions among them, change in the transaction that changes the documents.
// Several processes may use the same database.
package segments

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// Dir is the name of the folder of the files of segments, beside the database.
const Dir = "segments"

const (
	segmentSuffix = ".segment"
	maxBody       = 256 << 10 // bytes of a segment that is stored in the database
	defaultLimit  = 32 << 20  // bytes; see Options
)

// Tables are statements that create the tables of segments, in a schema with the
// table kv.
const Tables = `
INSERT INTO kv(key, value) VALUES('` + keyGeneration + `', '0');
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

// The keys of table kv.
const (
	keyGeneration = "generation" // increases with every change of documents
	keyRebuild    = "rebuild"    // counts deleted segments whose documents are to be indexed again; none when all are
)

// Statements that read segments.
const (
	segmentColumns     = `id, label, analyzer, format, docs, size, removed, file`
	segmentsQuery      = `SELECT ` + segmentColumns + ` FROM segments ORDER BY id`
	labelSegmentsQuery = `SELECT ` + segmentColumns + ` FROM segments WHERE label IN (SELECT value FROM json_each(?))
		ORDER BY id`
	deletionsQuery = `SELECT deleted FROM segments WHERE id=?`
	bodyQuery      = `SELECT body FROM segment_bodies WHERE id=?`
)

// Reads are the statements that should be prepared for reading.
var Reads = []string{segmentsQuery, labelSegmentsQuery, deletionsQuery, bodyQuery}

// markRebuild records that documents are in no segment.
const markRebuild = `INSERT INTO kv(key, value) VALUES('` + keyRebuild + `', 1) ON CONFLICT DO UPDATE SET value=value+1`

// Detach are statements that remove what refers to files, in a copy of the database
// without them.
var Detach = []string{
	`INSERT INTO kv(key, value) SELECT '` + keyRebuild + `', 1 WHERE EXISTS (SELECT 1 FROM segments WHERE file<>'')
		ON CONFLICT DO UPDATE SET value=value+1`,
	`DELETE FROM segments WHERE file<>''`,
}

// A Document has the words of a document for a segment.
type Document struct {
	Number          int64 // greater than 0, and never used again
	Label           string
	Title, Filename string
	Language        string // ISO 639-1 code, or ""
	Text            string
	Chunks          []document.Chunk // of the text, in order
}

// Documents are the stored documents, of which the segments have the words.
type Documents interface {
	// Numbers returns the numbers of all documents by label, in order.
	Numbers(ctx context.Context, q database.Querier) (map[string][]int64, error)

	// Document returns a document, or nil if there is none with the number.
	Document(ctx context.Context, q database.Querier, number int64) (*Document, error)
}

// Leases are rights that one owner among all processes has at a time. They end
// after some time if they are not renewed.
type Leases interface {
	Lease(ctx context.Context, owner string, ttl time.Duration, names ...string) (held []string, err error)
	Release(ctx context.Context, owner string, names ...string) error
}

// Options configures [New]. All fields but the last are required.
type Options struct {
	DB        *database.DB
	Documents Documents
	Leases    Leases
	Log       *slog.Logger

	// Progress is called while segments are built again in the background. A total
	// of 0 means that this has ended. Errors that it meets may be ignored.
	Progress func(ctx context.Context, done, total int)

	// How many bytes of segments are verified before they are searched (the others
	// are verified in the background), and how many bytes of memory the words of
	// documents may take, by an estimate, before a part of them is stored in a file;
	// 0 means 32 MiB. The documents of an ordinary batch take a fifth of it.
	VerifiedSize, BuildLimit int
}

// A Store is the segments of a database. Its methods are safe for concurrent use.
type Store struct {
	o   Options
	dir string // of the files

	mu      sync.Mutex
	open    map[int64]*Segment
	leftOut map[int64]bool   // damaged segments that are not opened any more
	views   map[string]*View // of one generation, by labels
	of      string           // the generation

	builders sync.Pool // of empty *segment.Builder

	maintaining chan struct{} // has a place for one call of Maintain
	mergeSoon   chan struct{} // one signal for run
	rebuildSoon chan struct{} // the same
	verifySoon  chan struct{} // one signal for verifyLoop
	checking    sync.Mutex    // held by verify
}

// New returns the segments of a database that has their tables.
func New(o Options) *Store {
	o.VerifiedSize, o.BuildLimit = cmp.Or(o.VerifiedSize, defaultLimit), cmp.Or(o.BuildLimit, defaultLimit)
	s := &Store{
		o: o, dir: filepath.Join(filepath.Dir(o.DB.Path()), Dir), open: map[int64]*Segment{}, leftOut: map[int64]bool{},
		maintaining: make(chan struct{}, 1), mergeSoon: make(chan struct{}, 1),
		rebuildSoon: make(chan struct{}, 1), verifySoon: make(chan struct{}, 1),
	}
	s.builders.New = func() any { return &segment.Builder{} }
	return s
}

// Run merges and verifies segments, and builds damaged ones again, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	if !s.o.DB.Writable() {
		s.verifyLoop(ctx)
		return
	}
	var verifying sync.WaitGroup
	verifying.Go(func() { s.verifyLoop(ctx) })
	defer verifying.Wait()
	retry, sweep := time.NewTicker(retryEvery), time.NewTicker(sweepEvery)
	defer retry.Stop()
	defer sweep.Stop()
	signal(s.mergeSoon) // a process that died may have left it undone
	s.run(ctx, retry.C, sweep.C)
}

// Close closes all segments. Nothing may use them any more.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeViews()
}

// Generation returns a text that changes with each change of documents or segments
// by any process.
func Generation(ctx context.Context, q database.Querier) (string, error) {
	return database.Value(ctx, q, keyGeneration)
}

// nextGeneration records that documents or segments have changed.
func nextGeneration(ctx context.Context, tx database.Changer) error {
	_, err := tx.ExecContext(ctx, `UPDATE kv SET value=value+1 WHERE key=?`, keyGeneration)
	return err
}

// A row is a row of table segments.
type row struct {
	id       int64
	label    string
	analyzer int // version of package analysis
	format   int // version of package segment
	docs     int
	size     int64
	removed  int    // documents that are deleted
	file     string // name in the folder; "" if the segment is in the database
}

// newRow returns the row of a segment of this version.
func newRow(label string, docs int, size int64) row {
	return row{label: label, analyzer: analysis.Version, format: segment.Version, docs: docs, size: size}
}

func (r *row) scan(rows *sql.Rows) error {
	return rows.Scan(&r.id, &r.label, &r.analyzer, &r.format, &r.docs, &r.size, &r.removed, &r.file)
}

// current reports whether the segment has what this version of the program would
// write.
func (r *row) current() bool { return r.format == segment.Version && r.analyzer == analysis.Version }

// rowsOf returns the rows with one of the labels (nil: all), in the order of their
// numbers.
func rowsOf(ctx context.Context, q database.Querier, labels []string) ([]row, error) {
	query, args := segmentsQuery, []any(nil)
	if labels != nil {
		list, _ := json.Marshal(labels) // strings always marshal
		query, args = labelSegmentsQuery, []any{string(list)}
	}
	var out []row
	err := database.Collect(ctx, q, func(rows *sql.Rows) error {
		var r row
		err := r.scan(rows)
		out = append(out, r)
		return err
	}, query, args...)
	return out, err
}

// insert inserts the row of a segment and sets its id. body is nil if the segment
// is in a file.
func insert(ctx context.Context, tx database.Changer, r *row, body []byte) error {
	err := tx.QueryRowContext(ctx, `INSERT INTO segments(label, analyzer, format, docs, size, removed, file)
		VALUES(?, ?, ?, ?, ?, 0, ?) RETURNING id`,
		r.label, r.analyzer, r.format, r.docs, r.size, r.file).Scan(&r.id)
	if err != nil || body == nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO segment_bodies(id, body) VALUES(?, ?)`, r.id, body)
	return err
}

// drop deletes the row of a segment. Its file is removed later.
func drop(ctx context.Context, tx database.Changer, id int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM segment_bodies WHERE id=?`, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM segments WHERE id=?`, id)
	return err
}

// dropDamaged deletes the row of a segment and records that its documents are to be
// indexed again.
func dropDamaged(ctx context.Context, tx database.Changer, id int64) error {
	if err := drop(ctx, tx, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, markRebuild)
	return err
}

// deletions returns the set of deleted documents of a segment, nil if none is
// deleted.
func deletions(ctx context.Context, q database.Querier, r row) (segment.Bits, error) {
	if r.removed == 0 {
		return nil, nil
	}
	var raw []byte
	if err := q.QueryRowContext(ctx, deletionsQuery, r.id).Scan(&raw); err != nil {
		return nil, err
	}
	set := segment.NewBits(r.docs)
	if len(raw) != 8*len(set) {
		return nil, damagef(r, "its set of deleted documents has a wrong size")
	}
	for i := range set {
		set[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return set, nil
}

// writeDeletions stores the set of deleted documents of a segment.
func writeDeletions(ctx context.Context, tx database.Changer, id int64, set segment.Bits) error {
	raw := make([]byte, 0, 8*len(set))
	for _, w := range set {
		raw = binary.LittleEndian.AppendUint64(raw, w)
	}
	_, err := tx.ExecContext(ctx, `UPDATE segments SET removed=?, deleted=? WHERE id=?`, set.Count(), raw, id)
	return err
}

// signal sends to a channel that has a place for one signal, unless there is one
// already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stats returns how many segments there are, and how many bytes their files have.
func Stats(ctx context.Context, q database.Querier) (n int, fileBytes int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(iif(file<>'', size, 0)), 0) FROM segments`).
		Scan(&n, &fileBytes)
	return n, fileBytes, err
}
