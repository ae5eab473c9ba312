package index

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
)

// A change is a row of the full-text table to delete or to insert.
type change struct {
	row               int64
	gone              bool
	title, text, tags string // text is the whole text; chunk is a part of it
	chunk             document.Chunk
}

// post adds a document's postings.
func (p *poster) post(ctx context.Context, id int64, label, lang, title, text string, chunks []document.Chunk) error {
	labelTag, err := p.tag(ctx, tagLabel, label)
	if err != nil {
		return err
	}
	langTag, err := p.tag(ctx, tagLang, lang)
	if err != nil {
		return err
	}
	tags := tagToken(labelTag) + " " + tagToken(langTag)
	title = strings.ToValidUTF8(title, " ")
	head := analysis.Join(cutBytes(title, titleSize))
	for n, c := range chunks {
		p.postings = append(p.postings, change{row: rowOf(id, n), title: head, text: text, tags: tags, chunk: c})
	}
	return p.countTerms(ctx, label, title, text, 1)
}

// searched returns the text that is indexed for a chunk: its own text and, if
// it ends inside a paragraph, the beginning of the next chunk, so that a phrase
// or a Japanese word across the border is found.
func searched(text string, c document.Chunk) string {
	end := c.Offset + c.Length
	own, rest := text[c.Offset:end], text[end:]
	if rest == "" || strings.HasSuffix(own, "\n\n") || strings.HasPrefix(rest, "\n\n") {
		return own
	}
	tail := cutBytes(rest, overlapSize)
	if para, _, ok := strings.Cut(tail, "\n\n"); ok {
		return text[c.Offset : end+len(para)]
	}
	if r, _ := utf8.DecodeLastRuneInString(tail); len(tail) < len(rest) && !analysis.IsCJK(r) {
		tail = tail[:strings.LastIndexAny(tail, " \n\t")+1] // whole words only
	}
	return text[c.Offset : end+len(tail)]
}

// tag returns the number of a tag and adds the tag if it is new.
func (p *poster) tag(ctx context.Context, kind, name string) (int64, error) {
	key := [2]string{kind, name}
	if id, ok := p.tags[key]; ok {
		return id, nil
	}
	id, err := findTag(ctx, p.tx, kind, name)
	if err == nil && id == 0 {
		err = p.tx.QueryRowContext(ctx, `INSERT INTO tags(kind, name) VALUES(?, ?) RETURNING id`, kind, name).Scan(&id)
	}
	if err != nil {
		return 0, err
	}
	p.tags[key] = id
	return id, nil
}

// countTerms adds by, 1 or -1, to the document counts of a document's words.
func (p *poster) countTerms(ctx context.Context, label, title, text string, by int) error {
	tag, err := p.tag(ctx, tagLabel, label)
	if err != nil {
		return err
	}
	deltas := p.deltas[tag]
	if deltas == nil {
		deltas = map[string]int{}
		p.deltas[tag] = deltas
	}
	seen := map[string]bool{}
	for _, part := range []string{strings.ToValidUTF8(title, " "), text} {
		for s := range analysis.Surfaces(part) {
			if !seen[s] && len(seen) < maxSurfaces {
				seen[s] = true
				deltas[s] += by
			}
		}
	}
	return nil
}

// finish writes the collected postings and counts.
func (p *poster) finish(ctx context.Context) error {
	if err := p.writePostings(ctx); err != nil {
		return err
	}
	if err := p.writeTerms(ctx); err != nil {
		return err
	}
	_, err := p.tx.ExecContext(ctx, `UPDATE kv SET value=value+1 WHERE key=?`, keyGeneration)
	return err
}

// writePostings writes the changes of the full-text table in order.
func (p *poster) writePostings(ctx context.Context) error {
	add, err := p.tx.PrepareContext(ctx, `INSERT INTO fts(rowid, title, text, tags) VALUES(?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	drop, err := p.tx.PrepareContext(ctx, `DELETE FROM fts WHERE rowid=?`)
	if err != nil {
		return err
	}
	for _, c := range p.postings {
		if c.gone {
			_, err = drop.ExecContext(ctx, c.row)
		} else {
			_, err = add.ExecContext(ctx, c.row, c.title, analysis.Join(searched(c.text, c.chunk)), c.tags)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTerms writes the changed counts of words. JSON passes many rows to one
// statement; its keys are sorted, which is the order of the table.
func (p *poster) writeTerms(ctx context.Context) error {
	for label, deltas := range p.deltas {
		fewer := map[string]int{}
		for term, n := range deltas {
			if n == 0 {
				delete(deltas, term)
			} else if n < 0 {
				fewer[term] = n
			}
		}
		list, err := json.Marshal(deltas)
		if err != nil {
			return err
		}
		if _, err := p.tx.ExecContext(ctx, `INSERT INTO terms(term, label, df) SELECT key, ?, value FROM json_each(?) WHERE true
			ON CONFLICT DO UPDATE SET df=df+excluded.df`, label, string(list)); err != nil {
			return err
		}
		if list, err = json.Marshal(fewer); err != nil {
			return err
		}
		if _, err := p.tx.ExecContext(ctx, `DELETE FROM terms WHERE df<=0 AND (term, label) IN (SELECT key, ? FROM json_each(?))`,
			label, string(list)); err != nil {
			return err
		}
	}
	return nil
}
