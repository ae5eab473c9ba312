package index

import (
	"context"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// readChunk reads a chunk, and the label of its document. The error is of kind
// NotFound if the document does not exist, and sql.ErrNoRows if the chunk does not.
func (e *evaluator) readChunk(ctx context.Context, c retrieval.Chunk) (h search.ChunkHit, label string, err error) {
	record, err := findRecord(ctx, e.tx, `d.id=?`, c.Document)
	if err != nil {
		return h, "", err
	}
	h = search.ChunkHit{Record: *record, Chunk: c.Number, Score: c.Score}
	var off, n int64
	err = e.tx.QueryRowContext(ctx, chunkQuery, c.Document, rowOf(c.Document, c.Number)).
		Scan(&off, &n, &h.Heading, &h.Page)
	if err != nil {
		return h, "", err
	}
	text, err := window(ctx, e.tx, c.Document, off, off+min(n, passage.MaxChunk))
	h.Text = strings.ToValidUTF8(text, "")
	return h, record.Label, err
}

// chunkQuery reads a chunk of a document. Text before the first page belongs to
// none.
const chunkQuery = `SELECT c.off, c.len, c.heading, IFNULL((SELECT p.label FROM pages p WHERE p.doc=? AND p.off<=c.off
	ORDER BY p.off DESC LIMIT 1), '')
	FROM chunks c WHERE c.id=?`
