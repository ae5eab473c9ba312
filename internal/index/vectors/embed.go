package vectors

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// Limits of embedding.
const (
	embedText     = 1200           // bytes of the text of a chunk that are embedded
	titleSize     = 1 << 10        // bytes of a title that are embedded
	modelLifetime = 24 * time.Hour // vectors of a model that nobody has used for so long are deleted
)

// keyTime is the key of table kv for the time when all chunks will have vectors, and
// when that was estimated.
const keyTime = "vectors"

// A pass is a pass of EmbedNext over the chunks.
type pass struct {
	sync.Mutex
	key        string // the model and the labels
	generation string // of the index when the pass began
	stage      int    // of embed.Stages
	after      int64  // chunks up to this one are done in the stage
	done       bool   // no chunk is left
}

// An unembedded is a chunk without a vector.
type unembedded struct {
	id, off, len         int64
	heading, title, hash string
	text                 string // what is embedded
}

// EmbedNext computes the vectors of up to n chunks of documents with one of the
// labels (nil: all) and stores them, in a short transaction. It returns how many
// it has stored. 0 without an error means that no chunk is left until documents
// change. Chunks that have a vector of the embedder are not computed again.
// The first chunks of all documents are computed first, then the next three, and so on.
// Vectors of other models are deleted a day after their last use.
func (s *Store) EmbedNext(ctx context.Context, e embed.Embedder, labels []string, n int) (int, error) {
	p := &s.pass
	p.Lock()
	defer p.Unlock()
	name := modelName(e)
	key, _ := json.Marshal([]any{name, labels}) // strings always marshal
	for {
		var chunks []unembedded
		var generation string
		err := s.o.DB.Read(ctx, "looking for chunks without vectors", func(tx *sql.Tx) error {
			var err error
			if generation, err = s.o.Generation(ctx, tx); err != nil {
				return err
			}
			if p.key != string(key) || p.done && p.generation != generation {
				p.key, p.generation, p.stage, p.after, p.done = string(key), generation, 0, 0, false
			}
			if p.done {
				return nil
			}
			model, err := modelOf(ctx, tx, name)
			if err == nil {
				chunks, err = s.chunksWithout(ctx, tx, model, labels, embed.Stages[p.stage], p.after, n)
			}
			return err
		})
		if err != nil || p.done {
			return 0, err
		}
		if len(chunks) == 0 && p.stage < len(embed.Stages)-1 {
			p.stage, p.after = p.stage+1, 0
			continue
		}
		if len(chunks) == 0 {
			if p.after == 0 || p.generation == generation {
				p.generation, p.done = generation, true
				return 0, s.dropModels(ctx, name, labels)
			}
			p.generation, p.stage, p.after = generation, 0, 0 // documents may have changed behind the pass
			continue
		}
		if err := s.embedChunks(ctx, e, name, chunks); err != nil {
			return 0, err
		}
		p.after = chunks[len(chunks)-1].id
		return len(chunks), nil
	}
}

// chunksWithout returns up to n chunks after a chunk that have no vector of a model, of
// the first chunks of each document.
func (s *Store) chunksWithout(
	ctx context.Context, tx *sql.Tx, model int64, labels []string, first int, after int64, n int,
) ([]unembedded, error) {
	where, args := "1", []any{after >> database.PartBits, after, model}
	if labels != nil {
		list, _ := json.Marshal(labels) // strings always marshal
		where = `+d.label IN (SELECT value FROM json_each(?4))`
		args = append(args, string(list))
	}
	chunks, err := readChunks(ctx, tx, fmt.Sprintf(`SELECT c.id, c.off, c.len, c.heading, d.title, d.hash FROM docs d
		CROSS JOIN chunks c ON c.id BETWEEN d.id<<%d AND (d.id<<%[1]d)+%d
		WHERE d.id>=?1 AND c.id>?2 AND %s AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.chunk=c.id AND v.model=?3)
		ORDER BY d.id, c.id LIMIT %d`, database.PartBits, min(first, database.MaxParts)-1, where, n), args...)
	if err != nil {
		return nil, err
	}
	return chunks, s.readTexts(ctx, tx, chunks)
}

// readChunks reads chunks with a query for their columns.
func readChunks(ctx context.Context, q database.Querier, query string, args ...any) (chunks []unembedded, err error) {
	err = database.Collect(ctx, q, func(rows *sql.Rows) error {
		var c unembedded
		err := rows.Scan(&c.id, &c.off, &c.len, &c.heading, &c.title, &c.hash)
		chunks = append(chunks, c)
		return err
	}, query, args...)
	return chunks, err
}

// readTexts reads what is embedded of chunks.
func (s *Store) readTexts(ctx context.Context, q database.Querier, chunks []unembedded) error {
	for i := range chunks {
		c := &chunks[i]
		text, err := s.o.Text(ctx, q, c.id>>database.PartBits, c.off, c.off+min(c.len, embedText))
		if err != nil {
			return err
		}
		// A heading path begins with the title in many documents.
		title := document.Truncate(c.title, titleSize)
		c.text = strings.ToValidUTF8(strings.Join(slices.DeleteFunc([]string{title, c.heading, text},
			func(s string) bool { return strings.TrimSpace(s) == "" }), "\n"), " ")
	}
	return nil
}

// embedChunks computes and stores the vectors of chunks.
func (s *Store) embedChunks(ctx context.Context, e embed.Embedder, name string, chunks []unembedded) error {
	vectors, err := embed.Documents(ctx, e, textsOf(chunks))
	if err != nil {
		return err
	}
	return s.put(ctx, name, chunks, vectors)
}

// textsOf returns what is embedded of chunks.
func textsOf(chunks []unembedded) []string {
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.text
	}
	return texts
}

// put stores the vectors of chunks. Those of a document that has changed meanwhile are
// ignored.
func (s *Store) put(ctx context.Context, name string, chunks []unembedded, vectors [][]float32) error {
	blobs := make([][]byte, len(chunks))
	for i, v := range vectors {
		blobs[i] = []byte{}
		if v != nil {
			blobs[i] = encode(v)
		}
	}
	return s.o.DB.Write(ctx, "writing vectors", func(tx *sql.Tx) error {
		model, err := useModel(ctx, tx, name)
		if err != nil {
			return err
		}
		put, err := tx.PrepareContext(ctx, fmt.Sprintf(`INSERT OR IGNORE INTO vectors(chunk, model, label, vector)
			SELECT c.id, ?, d.label, ? FROM chunks c CROSS JOIN docs d ON d.id=c.id>>%d
			WHERE c.id=? AND c.off=? AND c.len=? AND c.heading=? AND d.title=? AND d.hash=?`, database.PartBits))
		if err != nil {
			return err
		}
		defer put.Close()
		for i, c := range chunks {
			if _, err := put.ExecContext(ctx, model, blobs[i], c.id, c.off, c.len, c.heading, c.title,
				c.hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// Kept are the vectors of a document that is replaced by one with the same title and
// text.
type Kept []kept

type kept struct {
	row, model int64
	vector     []byte
	chunk      document.Chunk
}

// Keep returns the vectors of the stored document with a number, if d has the same
// title and text.
func Keep(ctx context.Context, tx database.Querier, number int64, d *document.Document) (all Kept, err error) {
	err = database.Collect(ctx, tx, func(rows *sql.Rows) error {
		var k kept
		err := rows.Scan(&k.row, &k.model, &k.vector, &k.chunk.Offset, &k.chunk.Length, &k.chunk.Heading)
		if k.vector == nil { // the model has no vector for the text, and Scan does not tell it from NULL
			k.vector = []byte{}
		}
		all = append(all, k)
		return err
	}, `SELECT v.chunk, v.model, v.vector, c.off, c.len, c.heading FROM docs d CROSS JOIN vectors v
		CROSS JOIN chunks c ON c.id=v.chunk
		WHERE d.id=? AND d.hash=? AND d.title=? AND v.chunk BETWEEN ? AND ? AND d.hash<>''`,
		number, d.Hash, d.Title, database.PartRow(number, 0), database.PartRow(number, database.MaxParts-1))
	return all, err
}

// Restore stores the vectors of those chunks of the new document that are the same.
func (all Kept) Restore(ctx context.Context, tx database.Changer, label string, chunks []document.Chunk) error {
	for _, k := range all {
		if n := int(k.row & (database.MaxParts - 1)); n >= len(chunks) || chunks[n] != k.chunk {
			continue
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO vectors(chunk, model, label, vector) VALUES(?, ?, ?, ?)`, k.row,
			k.model, label, k.vector); err != nil {
			return err
		}
	}
	return nil
}

// Relabel gives the vectors of a document another label. With new numbers, they are
// new under this label, and gone under the other one.
func Relabel(ctx context.Context, tx database.Changer, number int64, label string) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vectors(chunk, model, label, vector)
		SELECT chunk, model, ?, vector FROM vectors WHERE chunk BETWEEN ? AND ?`,
		label, database.PartRow(number, 0), database.PartRow(number, database.MaxParts-1))
	return err
}

// useModel returns the number of a model, and records that it is used.
func useModel(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	err = tx.QueryRowContext(ctx,
		`INSERT INTO models(name, used) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET used=excluded.used RETURNING id`,
		name, time.Now().UnixMilli()).Scan(&id)
	return id, err
}

// dropModels deletes vectors of models that were not used for modelLifetime.
func (s *Store) dropModels(ctx context.Context, name string, labels []string) error {
	const batch = 2000
	for {
		var n int64
		err := s.o.DB.Write(ctx, "removing vectors of other models", func(tx *sql.Tx) error {
			if _, err := useModel(ctx, tx, name); err != nil {
				return err
			}
			where, args := within(labels)
			r, err := tx.ExecContext(ctx, `DELETE FROM vectors WHERE id IN (SELECT d.id
				FROM vectors d JOIN models m ON m.id=d.model WHERE `+where+` AND m.used<? LIMIT ?)`,
				append(args, time.Now().Add(-modelLifetime).UnixMilli(), batch)...)
			if err == nil {
				n, err = r.RowsAffected()
			}
			return err
		})
		if err != nil || n < batch {
			return err
		}
	}
}

// within returns the condition that the label of d is one of the labels (nil: any),
// and its arguments.
func within(labels []string) (where string, args []any) {
	if labels == nil {
		return "1", nil
	}
	list, _ := json.Marshal(labels) // strings always marshal
	return "d.label IN (SELECT value FROM json_each(?))", []any{string(list)}
}

// Embedded returns how many chunks of documents with one of the labels (nil: all)
// have a vector of an embedder, and how many chunks there are. It looks at all of
// them, and so should not be called often.
func (s *Store) Embedded(ctx context.Context, e embed.Embedder, labels []string) (done, total int, err error) {
	err = s.o.DB.Read(ctx, "counting vectors", func(tx *sql.Tx) error {
		where, args := within(labels)
		if err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM docs d
			CROSS JOIN chunks c ON c.id BETWEEN d.id<<%d AND (d.id<<%[1]d)+%d WHERE `,
			database.PartBits, database.MaxParts-1)+where,
			args...).Scan(&total); err != nil {
			return err
		}
		model, err := modelOf(ctx, tx, modelName(e))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM vectors d WHERE `+where+` AND d.model=?`,
			append(args, model)...).Scan(&done)
	})
	return done, total, err
}

// timeStale is how long an estimate of [Store.SetTimeLeft] is valid.
const timeStale = time.Minute

// SetTimeLeft stores the estimated time until all chunks have vectors, for all
// processes; 0 removes it.
func (s *Store) SetTimeLeft(ctx context.Context, left time.Duration) error {
	return s.o.DB.Write(ctx, "storing the time left for vectors", func(tx *sql.Tx) error {
		if left <= 0 {
			_, err := tx.ExecContext(ctx, `DELETE FROM kv WHERE key=?`, keyTime)
			return err
		}
		now := time.Now()
		_, err := tx.ExecContext(ctx,
			`INSERT INTO kv(key, value) VALUES(?, ?) ON CONFLICT DO UPDATE SET value=excluded.value`,
			keyTime, fmt.Sprint(now.Add(left).UnixMilli(), " ", now.UnixMilli()))
		return err
	})
}

// TimeLeft returns the time until all chunks have vectors, or 0 if it is not known.
func TimeLeft(ctx context.Context, tx database.Querier) (time.Duration, error) {
	value, err := database.Value(ctx, tx, keyTime)
	var end, at int64
	if n, _ := fmt.Sscan(value, &end, &at); n != 2 || err != nil {
		return 0, err
	}
	if age := time.Since(time.UnixMilli(at)); age > timeStale || age < -timeStale {
		return 0, nil
	}
	return max(time.Until(time.UnixMilli(end)), time.Second), nil
}
