package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"html"
	"maps"
	"net/url"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/search"
)

// readDocument returns a document by its number. The digest of the hit is the
// beginning of the text.
func readDocument(ctx context.Context, tx *sql.Tx, doc int64) (*search.Hit, error) {
	e := evaluator{tx: &preparedTx{tx: tx}}
	return e.hit(ctx, ranked{doc: doc, chunk: -1}, nil)
}

// Marks that stand for <strong> and </strong> until a digest is escaped. They
// are control characters, which no text needs.
const openMark, closeMark = "\x02", "\x03"

// Sizes of excerpts. Fess cuts a title at 50 characters.
const (
	titleDigest = 50
	startOfText = 4 << 10   // bytes at the start of a text that an excerpt without matches is made of
	wholeText   = 256 << 10 // bytes searched for matches if no chunk is known
)

// hit reads a document and makes its excerpt.
func (e *evaluator) hit(ctx context.Context, r ranked, leaves []*leaf) (*search.Hit, error) {
	var h search.Hit
	var label, mime, filetype, lang, host, filename string
	var modified sql.NullInt64
	var created, size, textSize int64
	err := e.tx.QueryRowContext(ctx, `SELECT doc_id, label, path, title, url, mimetype, filetype, lang, host, filename, modified, created, size, hash, text_size
		FROM docs WHERE id=?`, r.doc).
		Scan(&h.ID, &label, &h.Path, &h.Title, &h.URL, &mime, &filetype, &lang, &host, &filename, &modified, &created, &size, &h.TextHash, &textSize)
	if err != nil {
		return nil, err
	}
	text, err := e.excerpted(ctx, r, len(leaves) > 0)
	if err != nil {
		return nil, err
	}
	body, title := digests(text, h.Title, leaves)
	h.Digest = strings.NewReplacer(openMark, "<strong>", closeMark, "</strong>").Replace(body)
	sum := sha256.Sum256([]byte(h.URL))
	h.Fields = map[string]any{
		"_id":                 hex.EncodeToString(sum[:]),
		"content_length":      size,
		"created":             stampText(created),
		"content_description": marked(body),
		"content_title":       marked(title),
		"label":               []string{label},
		"url_link":            urlLink(h.URL),
	}
	if modified.Valid {
		h.Fields["timestamp"] = stampText(modified.Int64)
		h.Fields["last_modified"] = stampText(modified.Int64)
	}
	if lang != "" {
		h.Fields["lang"] = []string{lang}
	}
	_, place, _ := strings.Cut(h.URL, "://")
	for name, v := range map[string]string{"filename": filename, "filetype": filetype, "mimetype": mime, "host": host, "site": place, "site_path": place} {
		if v != "" {
			h.Fields[name] = v
		}
	}
	return &h, nil
}

// stampText formats milliseconds since 1970 as Fess does.
func stampText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// urlLink returns the address for people to open. As in Fess, file URLs are
// decoded.
func urlLink(s string) string {
	if strings.HasPrefix(s, "file:") {
		if p, err := url.PathUnescape(s); err == nil {
			return p
		}
	}
	return s
}

// excerpted returns the part of the text that the excerpt is made of.
func (e *evaluator) excerpted(ctx context.Context, r ranked, matches bool) (string, error) {
	if r.chunk >= 0 {
		_, text, err := e.chunkText(ctx, r.chunk)
		return text, err
	}
	size := int64(startOfText)
	if matches {
		size = wholeText
	}
	return window(ctx, e.tx, r.doc, 0, size)
}

// dropStopwords removes function words from want, unless there are no other
// words. Marking them would mark much of the text.
func dropStopwords(want map[string]bool) {
	for term := range want {
		if !analysis.Stopword(term) {
			maps.DeleteFunc(want, func(term string, _ bool) bool { return analysis.Stopword(term) })
			return
		}
	}
}

// digests makes the excerpts of a text and of a title, with marks.
func digests(text, title string, leaves []*leaf) (body, head string) {
	o := analysis.DigestOptions{Open: openMark, Close: closeMark}
	text, title = strings.ToValidUTF8(unmarked(text), ""), strings.ToValidUTF8(unmarked(title), "")
	inText, inTitle := map[string]bool{}, map[string]bool{}
	for _, l := range leaves {
		if l.column != "title" {
			l.mark(inText, text)
		}
		if l.column != "text" {
			l.mark(inTitle, title)
		}
	}
	dropStopwords(inText)
	dropStopwords(inTitle)
	body = analysis.Digest(text, inText, o)
	o.Size = titleDigest
	return body, analysis.Digest(title, inTitle, o)
}

// unmarked removes the mark characters from a text.
func unmarked(s string) string {
	if !strings.ContainsAny(s, openMark+closeMark) {
		return s
	}
	return strings.NewReplacer(openMark, " ", closeMark, " ").Replace(s)
}

// marked escapes an excerpt for HTML and replaces the marks by tags, as Fess
// does.
func marked(s string) string {
	return strings.NewReplacer(openMark, "<strong>", closeMark, "</strong>").Replace(html.EscapeString(s))
}
