package opensearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// pageSize is how many rows are read at a time.
const pageSize = 1000

// Record returns the document with a number; see kb.Store.
func (s *Store) Record(ctx context.Context, number int64) (*document.Record, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.oneRow(ctx, []object{term("number", number)}, recordFields...)
	if errors.Is(err, errMissing) {
		return nil, document.Missing(fmt.Sprint(number))
	}
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	return r.record(), nil
}

// RecordOf returns the document with an ID; see kb.Store. It also sees changes that
// searches do not see yet, so that a change which is based on it is not refused
// because of them.
func (s *Store) RecordOf(ctx context.Context, id string) (*document.Record, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	rows, err := s.latest(ctx, []string{id}, onlyRow)
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	f := rows[id]
	if f == nil {
		return nil, document.Missing(id)
	}
	return f.row.record(), nil
}

// rowOf returns fields of the row of a document with one of some labels (nil: any),
// and the chunks that inner hits have. The error is of kind NotFound if there is
// none.
func (s *Store) rowOf(ctx context.Context, id string, labels, fields []string, inner object) (*row, []chunk, error) {
	if err := s.Open(ctx); err != nil {
		return nil, nil, err
	}
	query := all(append(filters(labels, nil, nil), term("doc_id", id))...)
	if inner != nil {
		query["bool"].(object)["should"] = inner
	}
	r, err := s.search(ctx, inDocuments, only(object{"size": 1, "track_total_hits": false, "query": query}, fields...))
	if err != nil {
		return nil, nil, fmt.Errorf("reading a document: %w", err)
	}
	if len(r.Hits.Hits) == 0 {
		return nil, nil, document.Missing(id)
	}
	h := r.Hits.Hits[0]
	out, err := h.row()
	if err != nil {
		return nil, nil, err
	}
	chunks, err := h.chunks("window")
	return &out, chunks, err
}

// Records returns the documents that a filter selects; see kb.Store.
func (s *Store) Records(ctx context.Context, f document.RecordFilter) (
	records []document.Record, total int, err error) {
	if err := s.Open(ctx); err != nil {
		return nil, 0, err
	}
	filter := append(filters(f.Labels, nil, f.Tags), writtenOnly(f.Written)...)
	if f.SourcePath != "" {
		filter = append(filter, term("source_path", f.SourcePath))
	}
	body := only(object{"size": 0, "track_total_hits": true, "query": all(filter...),
		"sort": []object{{"created": "desc"}, {"number": "desc"}}}, recordFields...)
	if f.Offset+f.Limit <= search.Window {
		body["from"], body["size"] = f.Offset, f.Limit
	}
	r, err := s.search(ctx, inDocuments, body)
	if err != nil {
		return nil, 0, fmt.Errorf("listing documents: %w", err)
	}
	total = r.Hits.Total.Value
	if f.Offset+f.Limit > search.Window && f.Offset < total {
		return s.recordsFrom(ctx, body, f, total)
	}
	rows, err := r.rows()
	for _, r := range rows {
		records = append(records, *r.record())
	}
	return records, total, err
}

// recordsFrom returns records beyond those that OpenSearch pages. It reads all
// that precede them.
func (s *Store) recordsFrom(ctx context.Context, body object, f document.RecordFilter,
	total int) (records []document.Record, _ int, err error) {
	at := 0
	err = s.each(ctx, body, func(h rawHit) error {
		if at++; at <= f.Offset {
			return nil
		}
		r, err := h.row()
		if err != nil {
			return err
		}
		if records = append(records, *r.record()); len(records) == f.Limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return records, total, err
}

// errEnough ends each.
var errEnough = errors.New("enough")

// each calls f with the hits of a search for documents that has an order without
// ties.
func (s *Store) each(ctx context.Context, body object, f func(rawHit) error) error {
	body["size"] = pageSize
	delete(body, "from")
	for {
		r, err := s.search(ctx, inDocuments, body)
		if err != nil {
			return err
		}
		for _, h := range r.Hits.Hits {
			if err := f(h); err != nil {
				return err
			}
		}
		if len(r.Hits.Hits) < pageSize {
			return nil
		}
		body["search_after"] = r.Hits.Hits[pageSize-1].Sort
	}
}

// Chunks returns a document with the texts of some of its chunks; see kb.Store. A few
// chunks are read alone, more of them with the whole document.
func (s *Store) Chunks(ctx context.Context, number int64, from, to int) (*document.Record, []string, int, error) {
	if to-from <= maxWindow {
		return s.fewChunks(ctx, number, from, to)
	}
	if err := s.Open(ctx); err != nil {
		return nil, nil, 0, err
	}
	r, err := s.oneRow(ctx, []object{term("number", number)})
	if errors.Is(err, errMissing) {
		return nil, nil, 0, document.Missing(fmt.Sprint(number))
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("reading a document: %w", err)
	}
	d := r.document()
	var texts []string
	chunks := chunksOf(d)
	for i := from; i < min(to, len(chunks)); i++ {
		c := chunks[i]
		if c.Offset+c.Length > len(d.Text) {
			return nil, nil, 0, incomplete(number)
		}
		texts = append(texts, d.Text[c.Offset:c.Offset+c.Length])
	}
	return r.record(), texts, len(chunks), nil
}

func incomplete(number int64) error {
	return fmt.Errorf("reading a document: the text of document %d is incomplete: %w", number, errkind.Corrupt)
}

// fewChunks is Chunks for at most maxWindow chunks.
func (s *Store) fewChunks(ctx context.Context, number int64, from, to int) (*document.Record, []string, int, error) {
	record, err := s.Record(ctx, number)
	if err != nil {
		return nil, nil, 0, err
	}
	inner := withTexts("window", maxWindow)
	inner["sort"] = []object{{"chunks.n": "asc"}}
	r, chunks, err := s.rowOf(ctx, record.ID, nil, recordFields, object{"nested": object{
		"path": "chunks", "query": object{"range": object{"chunks.n": object{"gte": from, "lt": to}}},
		"inner_hits": inner}})
	switch {
	case errors.Is(err, errkind.NotFound):
		return nil, nil, 0, document.Missing(fmt.Sprint(number))
	case err != nil:
		return nil, nil, 0, err
	case len(chunks) != max(min(to, r.ChunkCount)-from, 0):
		return nil, nil, 0, incomplete(number)
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.Text
	}
	return r.record(), texts, r.ChunkCount, nil
}

// window returns fields of the row of a document with one of some labels (nil: any),
// and the bytes of its text from from up to but not including to, or fewer where
// the text ends.
func (s *Store) window(ctx context.Context, id string, labels, fields []string, from, to int64) (*row, string, error) {
	var b strings.Builder
	for {
		at := from + int64(b.Len()) // the next byte
		inWindow := all(object{"range": object{"chunks.off": object{"lt": to}}},
			object{"range": object{"chunks.end": object{"gt": at}}})
		inner := withTexts("window", maxWindow)
		inner["sort"] = []object{{"chunks.off": "asc"}}
		r, chunks, err := s.rowOf(ctx, id, labels, fields, object{"nested": object{"path": "chunks", "query": inWindow,
			"inner_hits": inner}})
		if err != nil {
			return nil, "", err
		}
		for _, c := range chunks {
			next, off := from+int64(b.Len()), int64(c.Offset)
			if end := min(off+int64(len(c.Text)), to); off <= next && next < end {
				b.WriteString(c.Text[next-off : end-off])
			}
		}
		if len(chunks) < maxWindow || at == from+int64(b.Len()) {
			return r, b.String(), nil
		}
	}
}

// CountTypes counts documents by type; see kb.Store.
func (s *Store) CountTypes(ctx context.Context, labels, written []string) (map[string]int, error) {
	return s.countBy(ctx, "type", append(filters(labels, nil, nil), writtenOnly(written)...))
}

// Labels returns the labels of all documents; see [search.Service].
func (s *Store) Labels(ctx context.Context) ([]search.Label, error) {
	counts, err := s.countBy(ctx, "label", filters(nil, nil, nil))
	var out []search.Label
	for label := range counts {
		out = append(out, search.Label{Name: label, Value: label})
	}
	slices.SortFunc(out, func(a, b search.Label) int { return strings.Compare(a.Value, b.Value) })
	return out, err
}

// SourceLabels returns the labels that belong to sources; see kb.Store.
func (s *Store) SourceLabels(ctx context.Context) ([]string, error) {
	counts, err := s.countBy(ctx, "label", []object{term("from_source", true)})
	return slices.Sorted(maps.Keys(counts)), err
}

// WrittenLabels returns those of the labels that documents which users wrote have;
// see kb.Store.
func (s *Store) WrittenLabels(ctx context.Context, labels []string) ([]string, error) {
	counts, err := s.countBy(ctx, "label", append(filters(labels, nil, nil), term("from_source", false)))
	return slices.Sorted(maps.Keys(counts)), err
}

// maxValues is the maximum number of values of a field that are counted.
const maxValues = 10_000

// countBy counts the documents that filters select by the values of a field.
func (s *Store) countBy(ctx context.Context, field string, filter []object) (map[string]int, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.search(ctx, inDocuments, object{"size": 0, "query": all(filter...),
		"aggs": object{"values": object{"terms": object{"field": field, "size": maxValues}}}})
	if err != nil {
		return nil, fmt.Errorf("counting documents: %w", err)
	}
	buckets, err := r.buckets("values")
	out := map[string]int{}
	for _, b := range buckets {
		out[b.text()] = b.Count
	}
	return out, err
}

// Stamps returns the stamps of the files of a source; see ingest.Sink.
func (s *Store) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	out := map[string]document.Stamp{}
	body := object{"query": all(term("label", label), term("from_source", true)), "track_total_hits": false,
		"sort": []object{{"number": "asc"}}, "_source": []string{"path", "kept.stamp"}}
	err := s.each(ctx, body, func(h rawHit) error {
		r, err := h.row()
		out[r.Path] = r.Kept.Stamp
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the stamps of files: %w", err)
	}
	return out, nil
}

// Generation returns a text that differs after each change of documents by any
// process; see ingest.Sink.
func (s *Store) Generation(ctx context.Context) (string, error) {
	if err := s.Open(ctx); err != nil {
		return "", err
	}
	var answer struct {
		Indices map[string]struct {
			UUID   string `json:"uuid"`
			Shards map[string][]struct {
				Routing struct {
					Primary bool `json:"primary"`
				} `json:"routing"`
				Seq struct {
					Max int64 `json:"max_seq_no"`
				} `json:"seq_no"`
			} `json:"shards"`
		} `json:"indices"`
	}
	if err := s.client.do(ctx, http.MethodGet, "/"+s.index(inDocuments)+"/_stats/docs", url.Values{"level": {"shards"}},
		nil, &answer); err != nil {
		return "", fmt.Errorf("asking for changes: %w", public(err))
	}
	var b strings.Builder
	for _, index := range answer.Indices {
		b.WriteString(index.UUID)
		changes := int64(0)
		for _, copies := range index.Shards {
			most := int64(0)
			for _, c := range copies {
				if c.Routing.Primary {
					most = c.Seq.Max + 1
				}
			}
			changes += most
		}
		fmt.Fprintf(&b, " %d", changes)
	}
	return b.String(), nil
}

// Find returns one document; see [search.Service]. Its digest is the beginning
// of the text.
func (s *Store) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	r, text, err := s.window(ctx, id, labels, rowFields, 0, passage.StartOfText)
	if err != nil {
		return nil, err
	}
	h := r.hit()
	h.Digest = passage.Digest(strings.ToValidUTF8(text, ""), analysis.LanguageOf(r.Lang), nil, passage.TextDigest)
	h.TitleExcerpt = passage.Digest(h.Title, analysis.LanguageOf(r.Lang), nil, passage.TitleDigest)
	return &h, nil
}

// ReadText returns a window on a document's text; see [search.Service]. A window
// that would begin inside a character begins behind it.
func (s *Store) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	off = max(off, 0)
	from := min(off, maxText)
	to := from // one more byte than n shows whether the window ends at a rune border
	if n > 0 {
		to = from + int64(min(n, maxText)) + 1
	}
	r, w, err := s.window(ctx, id, labels, []string{"url", "hash", "text_size"}, from, to)
	if err != nil {
		return nil, err
	}
	t := &search.Text{DocID: id, URL: r.URL, Hash: r.Hash, Size: r.TextSize, Offset: off}
	if n <= 0 || off >= r.TextSize {
		return t, nil
	}
	if int64(len(w)) < min(to, r.TextSize)-off {
		return nil, fmt.Errorf("reading a text: a part of the text of document %q is missing: %w", id, errkind.Corrupt)
	}
	w = document.Truncate(w, n)
	begin := 0
	for begin < len(w) && !utf8.RuneStart(w[begin]) {
		begin++
	}
	t.Window, t.Offset = w[begin:], off+int64(begin)
	return t, nil
}

// maxText is a size in bytes that no text exceeds.
const maxText = 1 << 40

// Sections returns the sections of a document; see [search.Outliner].
func (s *Store) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	kept, err := s.kept(ctx, id, labels, "sections")
	return kept.Sections, err
}

// Pages returns the pages of the text of the document with an ID; see kb.Store.
func (s *Store) Pages(ctx context.Context, id string) ([]document.Page, error) {
	kept, err := s.kept(ctx, id, nil, "pages")
	return kept.Pages, err
}

// kept returns a member of what is stored of a document and not searched.
func (s *Store) kept(ctx context.Context, id string, labels []string, member string) (rest, error) {
	if err := s.Open(ctx); err != nil {
		return rest{}, err
	}
	body := object{"size": 1, "track_total_hits": false, "_source": []string{"kept." + member},
		"query": all(append(filters(labels, nil, nil), term("doc_id", id))...)}
	r, err := s.search(ctx, inDocuments, body)
	if err != nil {
		return rest{}, fmt.Errorf("reading the %s of a document: %w", member, err)
	}
	rows, err := r.rows()
	if err != nil || len(rows) == 0 {
		return rest{}, cmp.Or(err, document.Missing(id))
	}
	return rows[0].Kept, nil
}

// Locate returns the documents with a path; see [search.Outliner].
func (s *Store) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	var found []search.Place
	locate := func(filter []object, wanted func(r *row) bool) error {
		body := only(object{"track_total_hits": false, "sort": []object{{"label": "asc"}, {"number": "asc"}},
			"query": all(append(filters(labels, nil, nil), filter...)...)},
			"doc_id", "label", "path", "title")
		return s.each(ctx, body, func(h rawHit) error {
			r, err := h.row()
			if err == nil && wanted(&r) {
				found = append(found, search.Place{ID: r.ID, Label: r.Label})
			}
			return err
		})
	}
	err := locate([]object{anyOf([]object{term("path", path), term("source_path", path)})},
		func(*row) bool { return true })
	if err == nil && found == nil { // titles are not indexed as they are
		written := []object{{"prefix": object{"path": "."}}, term("source_path", "")}
		err = locate(written, func(r *row) bool { return document.ResultPath(r.Path, "", r.Title) == path })
	}
	if err != nil {
		return nil, fmt.Errorf("locating a document: %w", err)
	}
	return found, nil
}

// Health returns the health of the indexes; see [search.Service].
func (s *Store) Health(ctx context.Context) (search.Health, error) {
	if err := s.Open(ctx); err != nil {
		return search.Health{}, err
	}
	var answer struct {
		Status   string `json:"status"`
		TimedOut bool   `json:"timed_out"`
	}
	path := "/_cluster/health/" + s.alias(inDocuments) + "," + s.alias(inState)
	if s.HasVectors() {
		path += "," + s.alias(inVectors)
	}
	if err := s.client.do(ctx, http.MethodGet, path, nil, nil, &answer); err != nil {
		return search.Health{}, fmt.Errorf("asking for the health: %w", public(err))
	}
	return search.Health{Status: answer.Status, TimedOut: answer.TimedOut}, nil
}
