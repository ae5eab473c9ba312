package serving

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

const (
	similarTime      = time.Second // for the search
	similarDocuments = 8
	similarChunks    = 64   // that are found; documents with many of them leave no room for others
	similarText      = 1000 // bytes of the text of a document that stand for all of it, about what a model reads

	// What is less similar than leastSimilar, or than nearBest of the most similar document,
	// is not shown: in Debian's documentation, such documents have only the kind of text in
	// common, like licenses and lists of authors.
	leastSimilar = 0.45
	nearBest     = 0.7

	// Documents with the same name are the same one if they have so many of the pairs of
	// words in so many bytes in common. As HTML and as text, manuals have 76 % or more.
	formText  = 4000
	formPairs = 0.7
)

// similar returns documents that the caller may read and that are similar in meaning to one
// of them. It returns none if there are no vectors, or if the search takes too long.
func (s *Server) similar(ctx context.Context, id string) ([]console.Similar, error) {
	v := s.viewOf(ctx)
	hit, err := v.documents.Find(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, similarTime)
	defer cancel()
	found, err := v.similar(limited, hit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil, errors.Is(err, errkind.Unsupported), errors.Is(err, errkind.Timeout),
		errors.Is(err, errkind.Unavailable), errors.Is(err, errkind.Busy):
		return found, nil
	}
	return found, err
}

// similar returns documents that are similar in meaning to a document. With an error, it
// returns those that it found before.
func (v *view) similar(ctx context.Context, of *search.Hit) (found []console.Similar, err error) {
	q := search.ChunkQuery{Ranking: search.ByMeaning, Top: similarChunks}
	if q.Labels, q.Written, err = v.storedLabels(ctx); err != nil || len(q.Labels) == 0 {
		return nil, err
	}
	text, err := v.documents.ReadText(ctx, of.ID, nil, 0, similarText)
	if err != nil {
		return nil, err
	}
	whole := strings.ReplaceAll(of.Title+"\n"+text.Window, ":", " ") // conditions on fields are none here
	if q.Text, err = query.Read(whole); err != nil {
		return nil, nil // no letter and no digit
	}
	page, err := v.store().SearchChunks(ctx, q)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{of.ID: true}
	kept, least := []*search.Hit{of}, leastSimilar
	for _, c := range page.Hits { // the most similar first
		if c.Score < least || len(found) == similarDocuments {
			break
		}
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		h, err := v.documents.Find(ctx, c.ID, nil)
		if errors.Is(err, errkind.NotFound) { // removed meanwhile
			continue
		}
		if err != nil {
			return found, err
		}
		switch again, err := v.isForm(ctx, h, kept); {
		case err != nil:
			return found, err
		case again:
			continue
		}
		if len(found) == 0 {
			least = max(least, nearBest*c.Score)
		}
		kept = append(kept, h)
		to := console.Similar{ID: h.ID, Title: h.Title, Path: h.Path, Score: c.Score}
		if len(h.Labels) > 0 {
			to.Source = h.Labels[0]
		}
		found = append(found, to)
	}
	return found, nil
}

// isForm reports whether a document is one of others in another form: it has the same
// text, or its file has the same name without endings and nearly the same text, like the
// page of a manual as HTML and as text, or in two versions.
func (v *view) isForm(ctx context.Context, h *search.Hit, others []*search.Hit) (bool, error) {
	for _, o := range others {
		if h.TextHash != "" && h.TextHash == o.TextHash {
			return true, nil
		}
		if name := stem(h.Path); name == "" || name != stem(o.Path) {
			continue
		}
		var pairs [2]map[string]bool
		for i, id := range []string{h.ID, o.ID} {
			text, err := v.documents.ReadText(ctx, id, nil, 0, formText)
			if errors.Is(err, errkind.NotFound) { // removed meanwhile
				return false, nil
			}
			if err != nil {
				return false, err
			}
			pairs[i] = pairsOf(text.Window)
		}
		if common(pairs[0], pairs[1]) >= formPairs {
			return true, nil
		}
	}
	return false, nil
}

// stem returns the name of a file in small letters without its endings.
func stem(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(path.Base(name)), ".")
	return name
}

// pairsOf returns the pairs of words that follow each other in a text.
func pairsOf(text string) map[string]bool {
	words := strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	pairs := map[string]bool{}
	for i := range len(words) - 1 {
		pairs[words[i]+" "+words[i+1]] = true
	}
	return pairs
}

// common returns which share of the smaller one of two sets is in the other one; 0 if it
// is empty.
func common(a, b map[string]bool) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for x := range a {
		if b[x] {
			n++
		}
	}
	return float64(n) / float64(max(len(a), 1))
}

// storedLabels returns the labels of the documents of the view that the data folder has,
// and those of them of which only the documents count that users wrote.
func (v *view) storedLabels(ctx context.Context) (labels, written []string, err error) {
	labels, notes := v.stored(v.sources)
	for _, n := range notes {
		collections, err := n.Collections(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range collections {
			if !slices.Contains(labels, c) {
				labels, written = append(labels, c), append(written, c)
			}
		}
	}
	return labels, written, nil
}
