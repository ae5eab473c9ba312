package index

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// wholeText is how many bytes of a text are searched for matches if no chunk is
// known.
const wholeText = 256 << 10

// hitRows reads the rows of documents, and returns which piece of each text its
// excerpt is made of. If texts is true, it reads the texts of most pieces at once.
func (e *evaluator) hitRows(
	ctx context.Context, list []retrieval.Document, matches, texts bool,
) ([]search.Hit, []piece, error) {
	rows := make([]int64, len(list))
	for i, d := range list {
		if rows[i] = rowOf(d.Number, d.Chunk); d.Chunk < 0 {
			rows[i] = rowOf(d.Number, maxParts-1) // no document has so many chunks
		}
	}
	hits, pieces := make([]search.Hit, len(list)), make([]piece, len(list))
	err := database.Collect(ctx, e.tx, func(rows *sql.Rows) error {
		var i int
		var label, lang string
		var modified, off, n sql.NullInt64
		var created, textSize int64
		var packed sql.NullInt64 // size of a compressed part
		var h search.Hit
		var body sql.RawBytes
		var path, sourcePath string
		var fromSource bool
		err := rows.Scan(&i, &h.ID, &label, &path, &fromSource, &sourcePath, &h.Title, &h.URL, &h.MIMEType, &h.FileType, &lang,
			&h.Host, &h.Filename,
			&modified, &created, &h.Size, &h.TextHash, &textSize, &off, &n, &packed, &body)
		if err != nil {
			return err
		}
		h.Path = document.ResultPath(path, sourcePath, h.Title)
		h.Created, h.Labels, h.Written = time.UnixMilli(created), []string{label}, !fromSource
		if modified.Valid {
			h.Modified = time.UnixMilli(modified.Int64)
			h.Timestamp = h.Modified
		}
		if lang != "" {
			h.Langs = []string{lang}
		}
		p := piece{doc: list[i].Number}
		switch {
		case off.Valid:
			p.from, p.to = off.Int64, off.Int64+min(n.Int64, passage.MaxChunk)
			begin := p.from % textPart
			if p.text, err = appendText(nil, int(packed.Int64), body, begin, begin+p.to-p.from); err != nil {
				return err
			}
			p.from += int64(len(p.text))
		case list[i].Chunk >= 0: // words without their chunk: the database was changed by hand
		case matches:
			p.to = min(wholeText, textSize)
		default:
			p.to = min(passage.StartOfText, textSize)
		}
		hits[i], pieces[i] = h, p
		return nil
	}, hitRowsQuery, database.List(rows), texts)
	return hits, pieces, err
}

// hitRowsQuery reads with a chunk the part of the text in which it begins.
var hitRowsQuery = fmt.Sprintf(`SELECT j.key, d.doc_id, d.label, d.path, d.from_source, d.source_path, d.title, d.url,
	d.mimetype, d.filetype, d.lang, d.host, d.filename,
		d.modified, d.created, d.size, d.hash, d.text_size, c.off, c.len, t.size, t.body
	FROM json_each(?1) j CROSS JOIN docs d ON d.id=j.value>>%[2]d LEFT JOIN chunks c ON c.id=j.value
	LEFT JOIN texts t ON ?2 AND t.id=(d.id<<%[2]d)+c.off/%[1]d`, textPart, chunkBits)
