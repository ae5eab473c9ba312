package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// A row is what is stored of a document.
type row struct {
	Number     int64    `json:"number"`
	ID         string   `json:"doc_id"`
	Revision   string   `json:"revision"` // of its chunks
	Label      string   `json:"label"`
	Path       string   `json:"path"`
	FromSource bool     `json:"from_source"`
	SourcePath string   `json:"source_path"`
	Tags       []string `json:"tags"`
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	URL        string   `json:"url"`
	Site       string   `json:"site"` // URL without its scheme
	Lang       string   `json:"lang"`
	MIMEType   string   `json:"mimetype"`
	FileType   string   `json:"filetype"`
	Filename   string   `json:"filename"`
	Host       string   `json:"host"`
	Size       int64    `json:"size"`
	Modified   *int64   `json:"modified,omitempty"` // times are milliseconds since 1970
	Created    int64    `json:"created"`
	Updated    int64    `json:"updated"`
	Hash       string   `json:"hash"`
	Twin       string   `json:"twin"` // equal for documents with the same text
	TextSize   int64    `json:"text_size"`
	Chunks     int      `json:"chunks"`
	Kept       rest     `json:"kept"`

	TitleTokens string   `json:"title_tokens,omitempty"`
	NameTokens  []string `json:"name_tokens,omitempty"` // of the file name and of the headings
	TextTokens  string   `json:"text_tokens,omitempty"`
	Words       []string `json:"words,omitempty"` // of the title and the text, as people write them
	TitleWords  []string `json:"title_words,omitempty"`
}

// A rest is what is stored of a document and not searched.
type rest struct {
	Sections []document.Section `json:"sections,omitempty"`
	Pages    []document.Page    `json:"pages,omitempty"`
	Stamp    document.Stamp     `json:"stamp"`
}

// What is read of a document: all but what only searches use, the same without
// sections, and without sections and pages.
var (
	withoutTokens = object{"excludes": []string{"title_tokens", "name_tokens", "text_tokens", "words", "title_words"}}
	withPages     = object{"excludes": []string{"title_tokens", "name_tokens", "text_tokens", "words", "title_words", "kept.sections"}}
	onlyRow       = object{"excludes": []string{"title_tokens", "name_tokens", "text_tokens", "words", "title_words", "kept"}}
)

// newRow returns the row of a document. Revision, Number, Created and, if they
// are kept, Tags must be set.
func newRow(d *document.Document, now time.Time) *row {
	r := &row{
		ID: d.ID, Label: d.Label, Path: d.Path, FromSource: d.FromSource, SourcePath: d.SourcePath, Tags: sorted(d.Tags), Type: d.Type,
		Title: d.Title, URL: d.URL, Lang: d.Lang, MIMEType: d.MIMEType, FileType: d.FileType, Filename: d.Filename, Host: d.Host,
		Size: d.Size, Updated: now.UnixMilli(), Hash: d.Hash, Twin: d.Hash, TextSize: int64(len(d.Text)), Chunks: len(chunksOf(d)),
		Kept: rest{Sections: d.Sections, Pages: d.Pages, Stamp: d.Stamp},
	}
	if _, site, ok := strings.Cut(d.URL, "://"); ok {
		r.Site = site
	}
	if d.Text == "" || d.Hash == "" {
		r.Twin = noTwin + d.ID
	}
	if !d.Modified.IsZero() {
		ms := d.Modified.UnixMilli()
		r.Modified = &ms
	}
	r.analyse(d)
	return r
}

// noTwin is what the twin of a document begins with that is equal to no other.
const noTwin = "id:"

// sorted returns different tags in order.
func sorted(tags []string) []string { return slices.Compact(slices.Sorted(slices.Values(tags))) }

// record returns the record of a row.
func (r *row) record() *document.Record {
	tags := slices.Clone(r.Tags)
	slices.Sort(tags)
	return &document.Record{
		Number: r.Number, ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath, Type: r.Type, Title: r.Title,
		Filename: r.Filename, Hash: r.Hash, TextSize: r.TextSize, Tags: tags, Created: time.UnixMilli(r.Created).UTC(), Updated: time.UnixMilli(r.Updated).UTC(),
	}
}

// hit returns the hit of a row, without excerpts.
func (r *row) hit() search.Hit {
	h := search.Hit{
		ID: r.ID, URL: r.URL, Path: document.ResultPath(r.Path, r.SourcePath, r.Title), Title: r.Title, Created: time.UnixMilli(r.Created), Size: r.Size, MIMEType: r.MIMEType,
		FileType: r.FileType, Filename: r.Filename, Host: r.Host, Labels: []string{r.Label}, TextHash: r.Hash,
	}
	if r.Lang != "" {
		h.Langs = []string{r.Lang}
	}
	if r.Modified != nil {
		h.Modified = time.UnixMilli(*r.Modified)
		h.Timestamp = h.Modified
	}
	return h
}

// A chunkRow is what is stored of a chunk.
type chunkRow struct {
	Revision string `json:"revision"`
	Label    string `json:"label"`
	Number   int64  `json:"number"` // of the document
	N        int    `json:"n"`      // of the chunk, from 0
	Offset   int    `json:"off"`
	Length   int    `json:"len"`
	Title    string `json:"title"` // of the document
	Heading  string `json:"heading"`
	Text     string `json:"text"`
	Around   string `json:"around,omitempty"` // of a short chunk: its text with some of the text around it
	Before   int    `json:"before,omitempty"` // bytes of Around that are before the chunk
	Tokens   string `json:"tokens,omitempty"`
}

func chunkID(revision string, n int) string { return fmt.Sprintf("%s-%d", revision, n) }

// A version identifies a state of a row.
type version struct {
	Seq  int64 `json:"_seq_no"`
	Term int64 `json:"_primary_term"`
}

// A found is a row with its version.
type found struct {
	version
	row row
}

// get returns the rows of the documents with some IDs of an index, by ID. It sees
// all changes that were confirmed, not only those that searches see.
func (s *Store) get(ctx context.Context, index string, ids []string, source object) (map[string]*found, error) {
	return s.getWith(ctx, index, ids, source, nil)
}

// latest is get for changes. It also sees changes that only the primary shard
// has yet.
func (s *Store) latest(ctx context.Context, index string, ids []string) (map[string]*found, error) {
	return s.getWith(ctx, index, ids, onlyRow, map[string][]string{"preference": {"_primary"}})
}

// getWith is get with the parameters of a request.
func (s *Store) getWith(ctx context.Context, index string, ids []string, source object, params map[string][]string) (map[string]*found, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" || len(id) > document.MaxID })
	out := map[string]*found{}
	if len(ids) == 0 {
		return out, ctx.Err()
	}
	docs := make([]object, len(ids))
	for i, id := range ids {
		docs[i] = object{"_id": id, "_source": source}
	}
	var answer struct {
		Docs []struct {
			version
			ID     string          `json:"_id"`
			Found  bool            `json:"found"`
			Source json.RawMessage `json:"_source"`
			Error  *failure        `json:"error"`
		} `json:"docs"`
	}
	path := "/" + index + "/_mget"
	if err := s.client.do(ctx, http.MethodPost, path, params, object{"docs": docs}, &answer); err != nil {
		return nil, err
	}
	for _, d := range answer.Docs {
		if d.Error != nil {
			return nil, d.Error.error(path, http.StatusServiceUnavailable)
		}
		if !d.Found {
			continue
		}
		f := &found{version: d.version}
		if err := json.Unmarshal(d.Source, &f.row); err != nil {
			return nil, damaged(err)
		}
		out[d.ID] = f
	}
	return out, nil
}

// damaged returns the error for a row that cannot be read.
func damaged(err error) error {
	return fmt.Errorf("reading a document of the store: %v: %w", err, errkind.Corrupt)
}

// A result is the answer to a search.
type result struct {
	Hits struct {
		Total struct {
			Value int `json:"value"`
		} `json:"total"`
		Hits []rawHit `json:"hits"`
	} `json:"hits"`
	Aggregations map[string]json.RawMessage `json:"aggregations"`
}

type rawHit struct {
	version
	ID      string            `json:"_id"`
	Score   *float64          `json:"_score"`
	Source  json.RawMessage   `json:"_source"`
	Fields  values            `json:"fields"`
	Matched []string          `json:"matched_queries"`
	Sort    []json.RawMessage `json:"sort"`
}

// values are values of a hit that OpenSearch has beside what is stored of it.
// They are read faster, because a row with all its tokens may be large.
type values struct {
	Number   []int64  `json:"number"`
	ID       []string `json:"doc_id"`
	Revision []string `json:"revision"`
	Twin     []string `json:"twin"`
	Title    []string `json:"title"`
	Lang     []string `json:"lang"`
	Path     []string `json:"path"`
	Source   []string `json:"source_path"`
	Tags     []string `json:"tags"`
	Chunks   []int    `json:"chunks"`
}

// only makes a search return only values of fields.
func only(body object, fields ...string) object {
	body["_source"], body["stored_fields"], body["docvalue_fields"] = false, "_none_", fields
	return body
}

// first returns the first value of a field, or the zero value if there is none.
func first[T any](values []T) (v T) {
	if len(values) > 0 {
		v = values[0]
	}
	return v
}

// row returns the part of a row that is in values.
func (v *values) row() row {
	return row{Number: first(v.Number), ID: first(v.ID), Revision: first(v.Revision), Twin: first(v.Twin), Title: first(v.Title), Lang: first(v.Lang), Path: first(v.Path), SourcePath: first(v.Source), Tags: v.Tags, Chunks: first(v.Chunks)}
}

func (h rawHit) score() float64 {
	if h.Score == nil {
		return 0
	}
	return *h.Score
}

// rows decodes the hits of a search for documents.
func (r *result) rows() ([]row, error) {
	out := make([]row, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		if err := json.Unmarshal(h.Source, &out[i]); err != nil {
			return nil, damaged(err)
		}
	}
	return out, nil
}

// buckets decodes an aggregation of terms.
func (r *result) buckets(name string) ([]bucket, error) {
	var agg struct {
		Buckets []bucket `json:"buckets"`
	}
	if err := json.Unmarshal(r.Aggregations[name], &agg); err != nil {
		return nil, notOpenSearch("/_search")
	}
	return agg.Buckets, nil
}

// A bucket is a value with its number of documents.
type bucket struct {
	Key    any `json:"key"`
	Count  int `json:"doc_count"`
	Labels struct {
		Buckets []bucket `json:"buckets"`
	} `json:"labels"`
}

func (b bucket) text() string {
	s, _ := b.Key.(string)
	return s
}

// Parts of queries.
func term(field string, value any) object { return object{"term": object{field: value}} }
func oneOf(field string, values any) object {
	return object{"terms": object{field: values}}
}
func none() object { return object{"match_none": object{}} }

// filters returns the conditions of a search that no part of a query can widen.
// They are never empty. A nil list is no condition.
func filters(labels, langs, tags []string) []object {
	out := []object{{"match_all": object{}}}
	if labels != nil {
		out = append(out, oneOf("label", labels))
	}
	if langs != nil {
		out = append(out, oneOf("lang", langs))
	}
	for _, tag := range tags {
		if label, ok := document.TagLabel(tag); ok {
			out = append(out, term("label", label))
		} else {
			out = append(out, term("tags", tag))
		}
	}
	return out
}

// writtenOnly returns the filter for documents that users wrote, of the labels in
// written.
func writtenOnly(written []string) []object {
	if len(written) == 0 {
		return nil
	}
	return []object{{"bool": object{"must_not": object{"bool": object{"filter": []object{oneOf("label", written), term("from_source", true)}}}}}}
}

// oneRow returns the row that a filter selects. The error is errMissing if there
// is none.
func (s *Store) oneRow(ctx context.Context, filter object, source object) (*row, error) {
	r, err := s.search(ctx, inDocuments, object{"size": 1, "_source": source, "query": object{"bool": object{"filter": []object{filter}}}})
	if err != nil {
		return nil, err
	}
	rows, err := r.rows()
	if err == nil && len(rows) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &rows[0], nil
}
