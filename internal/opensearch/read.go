package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/passage"
	"knowhow/internal/search"
)

// pageSize is how many rows are read at a time.
const pageSize = 1000

// Record returns the document with a number; see kb.Store.
func (s *Store) Record(ctx context.Context, number int64) (*document.Record, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.oneRow(ctx, term("number", number), onlyRow)
	if errors.Is(err, errMissing) {
		return nil, document.Missing(fmt.Sprint(number))
	}
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	return r.record(), nil
}

// RecordOf returns the document with an ID; see kb.Store.
func (s *Store) RecordOf(ctx context.Context, id string) (*document.Record, error) {
	r, err := s.rowOf(ctx, id, nil, onlyRow)
	if err != nil {
		return nil, err
	}
	return r.record(), nil
}

// rowOf returns the row of a document with one of some labels (nil: any). The
// error is of kind NotFound if there is none.
func (s *Store) rowOf(ctx context.Context, id string, labels []string, source object) (*row, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	var rows map[string]*found
	err := s.present(ctx, func(in names) (err error) {
		rows, err = s.get(ctx, in.documents, []string{id}, source)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	f := rows[id]
	if f == nil || labels != nil && !slices.Contains(labels, f.row.Label) {
		return nil, document.Missing(id)
	}
	return &f.row, nil
}

// Records returns the documents that a filter selects; see kb.Store.
func (s *Store) Records(ctx context.Context, f document.RecordFilter) (records []document.Record, total int, err error) {
	if err := s.Open(ctx); err != nil {
		return nil, 0, err
	}
	filter := append(filters(f.Labels, nil, f.Tags), writtenOnly(f.Written)...)
	if f.SourcePath != "" {
		filter = append(filter, term("source_path", f.SourcePath))
	}
	body := object{"size": 0, "track_total_hits": true, "query": object{"bool": object{"filter": filter}},
		"_source": onlyRow, "sort": []object{{"created": "desc"}, {"number": "desc"}}}
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
func (s *Store) recordsFrom(ctx context.Context, body object, f document.RecordFilter, total int) (records []document.Record, _ int, err error) {
	at := 0
	err = s.each(ctx, inDocuments, body, func(h rawHit) error {
		if at++; at <= f.Offset {
			return nil
		}
		var r row
		if err := json.Unmarshal(h.Source, &r); err != nil {
			return damaged(err)
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

// each calls f with the hits of a search that has an order without ties.
func (s *Store) each(ctx context.Context, in kind, body object, f func(rawHit) error) error {
	body["size"] = pageSize
	delete(body, "from")
	for {
		r, err := s.search(ctx, in, body)
		if err != nil {
			return err
		}
		for _, h := range r.Hits.Hits {
			if err := f(h); err != nil {
				return err
			}
		}
		if len(r.Hits.Hits) < body["size"].(int) {
			return nil
		}
		body["search_after"] = r.Hits.Hits[len(r.Hits.Hits)-1].Sort
	}
}

// eachChunk calls f with the chunks of a revision in order.
func (s *Store) eachChunk(ctx context.Context, revision string, f func(source json.RawMessage) error) error {
	body := object{"query": object{"bool": object{"filter": []object{term("revision", revision)}}}, "sort": []object{{"n": "asc"}}}
	return s.each(ctx, inChunks, body, func(h rawHit) error { return f(h.Source) })
}

// Chunks returns a document with the texts of its chunks; see kb.Store.
func (s *Store) Chunks(ctx context.Context, number int64) (*document.Record, []string, error) {
	for n := 1; ; n++ {
		record, err := s.Record(ctx, number)
		if err != nil {
			return nil, nil, err
		}
		r, err := s.rowOf(ctx, record.ID, nil, onlyRow)
		if errors.Is(err, errkind.NotFound) {
			return nil, nil, document.Missing(fmt.Sprint(number))
		}
		if err != nil {
			return nil, nil, err
		}
		chunks, err := s.texts(ctx, r.Revision)
		if err != nil {
			return nil, nil, err
		}
		if len(chunks) == r.Chunks {
			return r.record(), chunks, nil
		}
		if n == changeAttempts { // it was replaced again and again, or its chunks are lost
			return nil, nil, fmt.Errorf("reading a document: %d of %d chunks of document %d are missing: %w", r.Chunks-len(chunks), r.Chunks, number, errkind.Corrupt)
		}
	}
}

// texts returns the texts of the chunks of a revision.
func (s *Store) texts(ctx context.Context, revision string) ([]string, error) {
	var out []string
	body := object{"query": object{"bool": object{"filter": []object{term("revision", revision)}}}, "sort": []object{{"n": "asc"}}, "_source": []string{"text"}}
	err := s.each(ctx, inChunks, body, func(h rawHit) error {
		var c chunkRow
		if err := json.Unmarshal(h.Source, &c); err != nil {
			return damaged(err)
		}
		out = append(out, c.Text)
		return nil
	})
	return out, err
}

// window returns the bytes of a text from from up to but not including to.
func (s *Store) window(ctx context.Context, revision string, from, to int64) (string, error) {
	var b strings.Builder
	body := object{"query": object{"bool": object{"filter": []object{term("revision", revision),
		{"range": object{"off": object{"lt": to, "gte": from - maxChunkSize}}}}}},
		"sort": []object{{"n": "asc"}}, "_source": []string{"text", "off", "len"}}
	err := s.each(ctx, inChunks, body, func(h rawHit) error {
		var c chunkRow
		if err := json.Unmarshal(h.Source, &c); err != nil {
			return damaged(err)
		}
		at := from + int64(b.Len()) // the next byte
		off := int64(c.Offset)
		if end := min(off+int64(len(c.Text)), to); off <= at && at < end {
			b.WriteString(c.Text[at-off : end-off])
		}
		return nil
	})
	return b.String(), err
}

// maxChunkSize is a size in bytes that no chunk exceeds.
const maxChunkSize = 1 << 30

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
	r, err := s.search(ctx, inDocuments, object{"size": 0, "query": object{"bool": object{"filter": filter}},
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
	body := object{"query": object{"bool": object{"filter": []object{term("label", label), term("from_source", true)}}},
		"sort": []object{{"number": "asc"}}, "_source": []string{"path", "kept.stamp"}}
	err := s.each(ctx, inDocuments, body, func(h rawHit) error {
		var r row
		if err := json.Unmarshal(h.Source, &r); err != nil {
			return damaged(err)
		}
		out[r.Path] = r.Kept.Stamp
		return nil
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
	err := s.present(ctx, func(in names) error {
		return s.client.do(ctx, http.MethodGet, "/"+in.documents+"/_stats/docs", map[string][]string{"level": {"shards"}}, nil, &answer)
	})
	if err != nil {
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
	r, err := s.rowOf(ctx, id, labels, onlyRow)
	if err != nil {
		return nil, err
	}
	text, err := s.window(ctx, r.Revision, 0, passage.StartOfText)
	if err != nil {
		return nil, err
	}
	h := r.hit()
	h.Digest = passage.Digest(text, analysis.LanguageOf(r.Lang), nil, passage.TextDigest)
	h.TitleExcerpt = passage.Digest(h.Title, analysis.LanguageOf(r.Lang), nil, passage.TitleDigest)
	return &h, nil
}

// ReadText returns a window on a document's text; see [search.Service]. A window
// that would begin inside a character begins behind it.
func (s *Store) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	for tries := 1; ; tries++ {
		r, err := s.rowOf(ctx, id, labels, onlyRow)
		if err != nil {
			return nil, err
		}
		t := &search.Text{DocID: id, URL: r.URL, Hash: r.Hash, Size: r.TextSize, Offset: max(off, 0)}
		if n <= 0 || t.Offset >= t.Size {
			return t, nil
		}
		end := t.Size
		if int64(n) < t.Size-t.Offset {
			end = t.Offset + int64(n)
		}
		last := min(end+1, t.Size) // one more byte shows whether the window ends at a rune border
		w, err := s.window(ctx, r.Revision, t.Offset, last)
		if err != nil {
			return nil, fmt.Errorf("reading a text: %w", err)
		}
		if int64(len(w)) < last-t.Offset {
			if tries < changeAttempts { // the document was replaced meanwhile
				continue
			}
			return nil, fmt.Errorf("reading a text: chunks of document %q are missing: %w", id, errkind.Corrupt)
		}
		w = document.Truncate(w, n)
		begin := 0
		for begin < len(w) && !utf8.RuneStart(w[begin]) {
			begin++
		}
		t.Window, t.Offset = w[begin:], t.Offset+int64(begin)
		return t, nil
	}
}

// Sections returns the sections of a document; see [search.Outliner].
func (s *Store) Sections(ctx context.Context, id string, labels []string) ([]document.Section, error) {
	r, err := s.rowOf(ctx, id, labels, withoutTokens)
	if err != nil {
		return nil, err
	}
	return r.Kept.Sections, nil
}

// Locate returns the documents with a path; see [search.Outliner].
func (s *Store) Locate(ctx context.Context, path string, labels []string) ([]search.Place, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	var found []search.Place
	locate := func(filter []object, wanted func(r *row) bool) error {
		body := object{"_source": []string{"doc_id", "label", "path", "title"}, "sort": []object{{"label": "asc"}, {"number": "asc"}},
			"query": object{"bool": object{"filter": append(filters(labels, nil, nil), filter...)}}}
		return s.each(ctx, inDocuments, body, func(h rawHit) error {
			var r row
			if err := json.Unmarshal(h.Source, &r); err != nil {
				return damaged(err)
			}
			if wanted(&r) {
				found = append(found, search.Place{ID: r.ID, Label: r.Label})
			}
			return nil
		})
	}
	err := locate([]object{anyOf([]object{term("path", path), term("source_path", path)})}, func(*row) bool { return true })
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
	in := s.aliases()
	path := "/_cluster/health/" + in.documents + "," + in.chunks + "," + in.state
	if err := s.client.do(ctx, http.MethodGet, path, nil, nil, &answer); err != nil {
		return search.Health{}, fmt.Errorf("asking for the health: %w", public(err))
	}
	return search.Health{Status: answer.Status, TimedOut: answer.TimedOut}, nil
}
