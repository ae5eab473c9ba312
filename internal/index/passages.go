package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// contents are the documents of a page of results.
type contents struct {
	e      *evaluator
	list   []retrieval.Document
	hits   []search.Hit
	pieces []piece           // of the texts, for digests
	chunks []retrieval.Chunk // that passages are made of
}

// Hits implements [retrieval.Contents].
func (c *contents) Hits() []search.Hit { return c.hits }

// Chunks implements [retrieval.Contents].
func (c *contents) Chunks(ctx context.Context) ([]retrieval.Chunk, error) {
	e := c.e
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	rows := make([]int64, len(c.list))
	for i, d := range c.list {
		rows[i] = d.Number
	}
	slices.Sort(rows)
	within, err := e.view.Rows(rows)
	if err != nil {
		return nil, err
	}
	c.chunks, err = e.chunksByWords(limited, e.m, e.m.Leaves, within, passage.MaxChunks, retrieval.NearPassages)
	if err != nil || e.m.dense == nil {
		return c.chunks, err
	}
	chunks, err := e.m.dense.addChunks(limited, c.chunks, rows)
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	if err == nil {
		c.chunks = chunks
	}
	return c.chunks, nil
}

// Beginnings implements [retrieval.Contents].
func (c *contents) Beginnings(ctx context.Context, places []int) ([]string, error) {
	pieces := make([]piece, len(places))
	for i, p := range places {
		pieces[i] = c.pieces[p]
	}
	if err := readPieces(ctx, c.e.tx, pieces); err != nil {
		return nil, err
	}
	texts := make([]string, len(places))
	for i, p := range pieces {
		texts[i] = string(p.text)
	}
	return texts, nil
}

// Conditions implements [retrieval.Contents].
func (c *contents) Conditions() (all, text, title []passage.Condition) {
	e := c.e
	return e.matcher.Conditions(e.m.Leaves, 0), e.matcher.Conditions(e.m.Leaves, segment.Only(segment.Title)),
		e.matcher.Conditions(e.m.Leaves, segment.Only(segment.Text))
}

// chunkRow returns the row of a chunk, which may be the first one of a document.
func (c *contents) chunkRow(x passage.Chunk) int64 {
	if x.Number < 0 {
		return rowOf(c.list[x.Document].Number, 0)
	}
	return rowOf(c.chunks[x.Number].Document, c.chunks[x.Number].Number)
}

// Contents reads chunks.
func (c *contents) Contents(ctx context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out, rows := make([]passage.Content, len(chunks)), make([]int64, len(chunks))
	for i, x := range chunks {
		rows[i] = c.chunkRow(x)
	}
	pieces := make([]piece, len(chunks))
	err := database.Collect(ctx, c.e.tx, func(rows *sql.Rows) error {
		var i int
		var x passage.Content
		err := rows.Scan(&i, &x.Offset, &x.Length, &x.Heading, &x.TextSize, &x.Lang)
		if err != nil {
			return err
		}
		n := min(x.Length, passage.MaxChunk)
		around := int64(0)
		if n < passage.LongChunk { // it may be short
			around = passage.Around
		}
		pieces[i] = piece{doc: c.list[chunks[i].Document].Number, from: max(x.Offset-around, 0),
			to: min(x.Offset+n+around, x.TextSize)}
		x.Start = pieces[i].from
		out[i] = x
		return nil
	}, chunkRowsQuery, database.List(rows))
	if err == nil {
		err = readPieces(ctx, c.e.tx, pieces)
	}
	for i, p := range pieces {
		out[i].Text = string(p.text)
	}
	return out, err
}

const chunkRowsQuery = `SELECT j.key, c.off, c.len, c.heading, d.text_size, d.lang
	FROM json_each(?) j CROSS JOIN chunks c ON c.id=j.value CROSS JOIN docs d ON d.id=c.id>>20`

// Locate sets the pages and the headings of passages.
func (c *contents) Locate(ctx context.Context, places []passage.Place) error {
	var all []byte // for each place: the document, the offset, and 1 if its heading is to be read
	for _, p := range places {
		inside := 0
		if p.Inside {
			inside = 1
		}
		all = fmt.Appendf(all, ",[%d,%d,%d]", c.list[p.Document].Number, p.Offset, inside)
	}
	all[0] = '['
	sections := map[int][]document.Section{} // by document
	return database.Collect(ctx, c.e.tx, func(rows *sql.Rows) error {
		var i int
		var page sql.NullString
		var body sql.RawBytes
		if err := rows.Scan(&i, &page, &body); err != nil {
			return err
		}
		p := places[i]
		p.Page = page.String
		if body == nil {
			return nil
		}
		list, ok := sections[p.Document]
		if !ok {
			if err := json.Unmarshal(body, &list); err != nil {
				return err
			}
			sections[p.Document] = list
		}
		p.Heading = passage.HeadingAt(list, p.Offset)
		return nil
	}, placesQuery, string(append(all, ']')))
}

// placesQuery reads the page and the sections of places in texts.
const placesQuery = `SELECT j.key, (SELECT p.label FROM pages p WHERE p.doc=j.value->>0 AND p.off<=j.value->>1
	ORDER BY p.off DESC LIMIT 1), s.body
	FROM json_each(?) j LEFT JOIN sections s ON j.value->>2 AND s.id=j.value->>0`
