package index

import (
	"context"
	"database/sql"
	"maps"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/search"
	"knowhow/internal/segment"
)

// Sizes of excerpts. Fess cuts a title at 50 characters.
const (
	textDigest  = 240       // runes
	titleDigest = 50        // runes
	startOfText = 4 << 10   // bytes that an excerpt without matches is made of
	wholeText   = 256 << 10 // bytes searched for matches if no chunk is known
)

// hit reads one document and makes its excerpts.
func (e *evaluator) hit(ctx context.Context, r ranked, leaves []*leaf) (*search.Hit, error) {
	var h search.Hit
	var label, lang string
	var modified sql.NullInt64
	var created int64
	err := e.tx.QueryRowContext(ctx, `SELECT doc_id, label, path, title, url, mimetype, filetype, lang, host, filename, modified, created, size, hash
		FROM docs WHERE id=?`, r.doc).
		Scan(&h.ID, &label, &h.Path, &h.Title, &h.URL, &h.MIMEType, &h.FileType, &lang, &h.Host, &h.Filename, &modified, &created, &h.Size, &h.TextHash)
	if err != nil {
		return nil, err
	}
	text, err := e.excerpted(ctx, r, len(leaves) > 0)
	if err != nil {
		return nil, err
	}
	h.Digest, h.TitleExcerpt = excerpts(text, h.Title, leaves)
	h.Created, h.Labels = time.UnixMilli(created), []string{label}
	if modified.Valid {
		h.Modified = time.UnixMilli(modified.Int64)
		h.Timestamp = h.Modified
	}
	if lang != "" {
		h.Langs = []string{lang}
	}
	return &h, nil
}

// excerpted returns the text that an excerpt is made of.
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

// dropStopwords removes the function words of a question from the terms, unless
// there are no others: they would match half of a text.
func dropStopwords(want map[string]bool) {
	for term := range want {
		if !analysis.Stopword(term) {
			maps.DeleteFunc(want, func(term string, _ bool) bool { return analysis.Stopword(term) })
			return
		}
	}
}

// excerpts makes the excerpts of a text and of a title.
func excerpts(text, title string, leaves []*leaf) (inText, inTitle search.Excerpt) {
	text, title = strings.ToValidUTF8(text, ""), strings.ToValidUTF8(title, "")
	textTerms, titleTerms := map[string]bool{}, map[string]bool{}
	for _, l := range leaves {
		if l.fields != segment.Only(segment.Title) {
			l.mark(textTerms, text)
		}
		if l.fields != segment.Only(segment.Text) {
			l.mark(titleTerms, title)
		}
	}
	return excerpt(text, textTerms, textDigest), excerpt(title, titleTerms, titleDigest)
}

// excerpt makes an excerpt of at most size runes.
func excerpt(text string, terms map[string]bool, size int) search.Excerpt {
	dropStopwords(terms)
	digest, spans := analysis.Digest(text, terms, size)
	x := search.Excerpt{Text: digest}
	for _, s := range spans {
		x.Matches = append(x.Matches, search.Span(s))
	}
	return x
}
