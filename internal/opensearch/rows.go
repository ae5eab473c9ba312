package opensearch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A row is a stored document. Of most requests, only fields with values
// are read: see [fields].
type row struct {
	Number     int64    `json:"number"`
	ID         string   `json:"doc_id"`
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
	SameText   string   `json:"same_text"` // equal for documents with the same text
	TextSize   int64    `json:"text_size"`
	ChunkCount int      `json:"chunk_count"`
	Print      string   `json:"print"` // differs if what vectors are made of differs

	Text string `json:"text"`
	Kept rest   `json:"kept"`
	Hit  string `json:"hit"` // fields of the row in JSON, see packed

	// What only searches use. It is not read.
	All         []string   `json:"all,omitempty"` // of the title, the file name, the headings and the text
	TitleTokens string     `json:"title_tokens,omitempty"`
	TextTokens  string     `json:"text_tokens,omitempty"`
	Words       []string   `json:"words,omitempty"` // of the title and the text, as people write them
	TitleWords  []string   `json:"title_words,omitempty"`
	TitleKey    string     `json:"title_key,omitempty"`
	NameKey     string     `json:"name_key,omitempty"` // see [retrieval.NameKey]
	Chunks      []chunkRow `json:"chunks,omitempty"`
}

// A rest has the fields of a document that are stored and not searched.
type rest struct {
	Chunks   []document.Chunk   `json:"chunks,omitempty"`
	Sections []document.Section `json:"sections,omitempty"`
	Pages    []document.Page    `json:"pages,omitempty"`
	Stamp    document.Stamp     `json:"stamp"`
}

// A chunkRow is a stored chunk.
type chunkRow struct {
	N      int    `json:"n"` // from 0
	Offset int    `json:"off"`
	End    int    `json:"end"`
	Kept   string `json:"kept,omitempty"` // a piece; see pack
	Tokens string `json:"tokens,omitempty"`
}

// A piece has the fields of a chunk that are read, so that passages can be made of it alone.
type piece struct {
	Heading, Text string
	Around        string // of a short chunk: its text with some of the text around it
	Before        int    // bytes of Around that are before the chunk
	places
}

// places are the sections and pages that passages of a chunk can be in.
type places struct {
	Sections []document.Section `json:"sections,omitempty"`
	Pages    []document.Page    `json:"pages,omitempty"`
}

// pack returns a chunk as a text that is read fast: numbers, texts and the places in
// JSON.
func (p piece) pack(c chunkRow) string {
	places, _ := json.Marshal(p.places) // has only texts and numbers
	return fmt.Sprintf("%d %d %d %d %d %d %d\n%s%s%s%s", c.N, c.Offset, c.End, p.Before, len(p.Heading), len(p.Text),
		len(p.Around), p.Heading, p.Text, p.Around, places)
}

// unpack decodes what pack returns.
func unpack(s string) (c chunk, err error) {
	head, rest, _ := strings.Cut(s, "\n")
	var n [7]int
	parts := strings.Fields(head)
	for i := range n {
		if len(parts) != len(n) {
			return c, damaged(errors.New("a chunk has no numbers"))
		}
		if n[i], err = strconv.Atoi(parts[i]); err != nil || n[i] < 0 {
			return c, damaged(errors.New("a chunk has a number that is not valid"))
		}
	}
	c.N, c.Offset, c.End, c.Before = n[0], n[1], n[2], n[3]
	for i, to := range []*string{&c.Heading, &c.Text, &c.Around} {
		size := n[4+i]
		if size > len(rest) {
			return c, damaged(errors.New("a chunk is too short"))
		}
		*to, rest = rest[:size], rest[size:]
	}
	if c.Before > len(c.Around) {
		return c, damaged(errors.New("a chunk begins behind the text around it"))
	}
	if err := json.Unmarshal([]byte(rest), &c.places); err != nil {
		return c, damaged(err)
	}
	return c, nil
}

// recordFields are the fields that the record of a document is made of, and
// rowFields those of its hit.
var (
	recordFields = []string{"number", "doc_id", "label", "path", "from_source", "source_path", "type", "title",
		"filename",
		"hash", "text_size", "tags", "created", "updated", "chunk_count"}
	rowFields = append([]string{"url", "lang", "mimetype", "filetype", "host", "size", "modified", "same_text"},
		recordFields...)
	hitFields = append([]string{"title_key", "name_key", "print"}, rowFields...)
)

// packed returns hitFields of the row as one text, which is read faster than many
// fields. Tags are left out, because they may be very long.
func (r row) packed() string {
	r.Text, r.Kept, r.Hit, r.Tags, r.All, r.Words, r.TitleWords, r.Chunks, r.TitleTokens, r.TextTokens = "", rest{}, "",
		nil, nil, nil, nil, nil, "", ""
	data, _ := json.Marshal(r) // has only texts, numbers and times
	var all map[string]json.RawMessage
	_ = json.Unmarshal(data, &all)
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(hitFields, name) })
	data, _ = json.Marshal(all)
	return string(data)
}

// newRow returns the row of a document. Number, Created and, if they are kept, Tags
// must be set.
func newRow(d *document.Document, now time.Time) *row {
	r := &row{
		ID: d.ID, Label: d.Label, Path: d.Path, FromSource: d.FromSource, SourcePath: d.SourcePath,
		Tags:  sorted(d.Tags),
		Type:  d.Type,
		Title: d.Title, URL: d.URL, Lang: d.Lang, MIMEType: d.MIMEType, FileType: d.FileType, Filename: d.Filename,
		Host: d.Host,
		Size: d.Size, Updated: now.UnixMilli(), Hash: d.Hash, SameText: d.Hash, TextSize: int64(len(d.Text)),
		ChunkCount: len(chunksOf(d)),
		Text:       d.Text, Kept: rest{Chunks: d.Chunks, Sections: d.Sections, Pages: d.Pages, Stamp: d.Stamp},
	}
	if _, site, ok := strings.Cut(d.URL, "://"); ok {
		r.Site = site
	}
	if d.Text == "" || d.Hash == "" {
		r.SameText = unique + d.ID
	}
	if !d.Modified.IsZero() {
		ms := d.Modified.UnixMilli()
		r.Modified = &ms
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", d.Label) // never fails
	for _, text := range embedTexts(d) {
		fmt.Fprintf(sum, "%q", text)
	}
	r.Print = hex.EncodeToString(sum.Sum(nil)[:12])
	r.analyse(d)
	return r
}

// document returns the document of a row that has its text.
func (r *row) document() *document.Document {
	d := &document.Document{
		ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath,
		Tags: sorted(r.Tags),
		Type: r.Type,
		URL:  r.URL, Title: r.Title, Lang: r.Lang, MIMEType: r.MIMEType, FileType: r.FileType, Filename: r.Filename,
		Host: r.Host,
		Size: r.Size, Hash: r.Hash, Text: r.Text, Chunks: r.Kept.Chunks, Sections: r.Kept.Sections, Pages: r.Kept.Pages,
		Stamp: r.Kept.Stamp,
	}
	if d.Tags == nil {
		d.Tags = []string{}
	}
	if r.Modified != nil {
		d.Modified = time.UnixMilli(*r.Modified).UTC()
	}
	return d
}

// unique begins the SameText of a document whose text is equal to no other.
const unique = "id:"

// sorted returns different tags in order.
func sorted(tags []string) []string { return slices.Compact(slices.Sorted(slices.Values(tags))) }

// record returns the record of a row.
func (r *row) record() *document.Record {
	tags := slices.Clone(r.Tags)
	slices.Sort(tags)
	return &document.Record{
		Number: r.Number, ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath,
		Type: r.Type, Title: r.Title,
		Filename: r.Filename, Hash: r.Hash, TextSize: r.TextSize, Tags: tags, Created: time.UnixMilli(r.Created).UTC(),
		Updated: time.UnixMilli(r.Updated).UTC(),
	}
}

// hit returns the hit of a row, without excerpts.
func (r *row) hit() search.Hit {
	h := search.Hit{
		ID: r.ID, URL: r.URL, Path: document.ResultPath(r.Path, r.SourcePath, r.Title), Title: r.Title,
		Created: time.UnixMilli(r.Created), Size: r.Size, MIMEType: r.MIMEType,
		FileType: r.FileType, Filename: r.Filename, Host: r.Host, Labels: []string{r.Label}, TextHash: r.Hash,
		Written: !r.FromSource,
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

// A version identifies a state of a row.
type version struct {
	Seq  int64 `json:"_seq_no"`
	Term int64 `json:"_primary_term"`
}

// A versionedRow is a row with its version.
type versionedRow struct {
	version
	row row
}

// onlyRow is what is read of a row for a change.
var onlyRow = object{"excludes": []string{"text", "kept", "hit"}}

// latest returns the rows of the documents with some IDs, by ID. It sees all
// changes, not only those that searches see, and those that only the primary shard
// has yet.
func (s *Store) latest(ctx context.Context, ids []string, source any) (map[string]*versionedRow, error) {
	out := map[string]*versionedRow{}
	err := s.get(ctx, inDocuments, ids, source, func(id string, v version, data json.RawMessage) error {
		f := &versionedRow{version: v}
		out[id] = f
		return json.Unmarshal(data, &f.row)
	})
	return out, err
}

// get calls f with those of the rows of an index with some IDs that exist.
func (s *Store) get(ctx context.Context, in kind, ids []string, source any,
	f func(id string, v version, source json.RawMessage) error) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" || len(id) > document.MaxID })
	if len(ids) == 0 {
		return ctx.Err()
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
	path := "/" + s.index(in) + "/_mget"
	if err := s.client.do(ctx, http.MethodPost, path, url.Values{"preference": {"_primary"}}, object{"docs": docs},
		&answer); err != nil {
		return err
	}
	for _, d := range answer.Docs {
		if d.Error != nil {
			return s.client.noted(d.Error.error(path, http.StatusServiceUnavailable))
		}
		if !d.Found {
			continue
		}
		if err := f(d.ID, d.version, d.Source); err != nil {
			return damaged(err)
		}
	}
	return nil
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
	Fields  fields            `json:"fields"`
	Matched []string          `json:"matched_queries"`
	Sort    []json.RawMessage `json:"sort"`
	Inner   map[string]result `json:"inner_hits"`
}

// fields are values of a hit that OpenSearch has beside its source. They are read
// faster, because the source has the whole text.
type fields map[string][]json.RawMessage

// only makes a search return only values of fields.
func only(body object, fields ...string) object {
	body["_source"], body["stored_fields"], body["docvalue_fields"] = false, "_none_", fields
	return body
}

// decode sets the fields of out, a pointer to a struct, to values. Only tags have
// several.
func (f fields) decode(out any) error {
	var b bytes.Buffer
	for name, values := range f {
		if len(values) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", name[strings.LastIndexByte(name, '.')+1:])
		if name != "tags" {
			b.Write(values[0])
			continue
		}
		for i, v := range values {
			b.WriteByte("[,"[min(i, 1)])
			b.Write(v)
		}
		b.WriteByte(']')
	}
	if err := json.Unmarshal(fmt.Appendf(nil, "{%s}", &b), out); err != nil {
		return damaged(err)
	}
	return nil
}

func (h rawHit) score() float64 {
	if h.Score == nil {
		return 0
	}
	return *h.Score
}

// row decodes the source, or else the fields, of a document.
func (h rawHit) row() (r row, err error) {
	if packed := h.Fields["hit"]; packed != nil {
		var text string
		if err = json.Unmarshal(packed[0], &text); err == nil {
			err = json.Unmarshal([]byte(text), &r)
		}
		if err != nil {
			err = damaged(err)
		}
	} else if h.Source == nil {
		err = h.Fields.decode(&r)
	} else if err = json.Unmarshal(h.Source, &r); err != nil {
		err = damaged(err)
	}
	return r, err
}

// rows decodes the hits of a search for documents.
func (r *result) rows() ([]row, error) {
	out := make([]row, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		var err error
		if out[i], err = h.row(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A chunk is a chunk that was read.
type chunk struct {
	chunkRow
	piece
	score float64
}

// chunks decodes the chunks that inner hits with a name have.
func (h rawHit) chunks(name string) ([]chunk, error) {
	var out []chunk
	for _, i := range h.Inner[name].Hits.Hits {
		var c chunk
		var err error
		if packed := i.Fields["chunks.kept"]; packed == nil {
			err = i.Fields.decode(&c.chunkRow)
		} else {
			var text string
			if err = json.Unmarshal(packed[0], &text); err == nil {
				c, err = unpack(text)
			}
		}
		if err != nil {
			return nil, err
		}
		c.score = i.score()
		out = append(out, c)
	}
	return out, nil
}

// withTexts are inner hits with the texts of n chunks.
func withTexts(name string, n int) object {
	return object{"name": name, "size": n, "_source": false, "stored_fields": []string{"chunks.kept"}}
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
	return []object{{"bool": object{"must_not": object{"bool": object{"filter": []object{oneOf("label", written),
		term("from_source", true)}}}}}}
}

// all returns a query for what meets all conditions, which do not count in the
// ranking.
func all(conditions ...object) object {
	return object{"bool": object{"filter": slices.Concat(conditions, []object{})}}
}

// oneRow returns the row that filters select, with some fields, or its source if
// there are none. The error is errMissing if there is none.
func (s *Store) oneRow(ctx context.Context, filter []object, fields ...string) (*row, error) {
	body := object{"size": 1, "track_total_hits": false, "query": all(filter...)}
	if fields != nil {
		only(body, fields...)
	}
	r, err := s.search(ctx, inDocuments, body)
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

// search sends a search to an index.
func (s *Store) search(ctx context.Context, in kind, body object) (*result, error) {
	r := &result{}
	path := "/" + s.index(in) + "/_search"
	// allow_partial_search_results makes a search fail instead of leaving out the
	// documents of a shard that is missing.
	err := s.client.do(ctx, http.MethodPost, path, url.Values{"allow_partial_search_results": {"false"},
		"filter_path": {left("")}}, body, r)
	if errors.Is(err, errMissing) {
		err = notOpenSearch(path)
	}
	return r, err
}

// left returns what is left out of the answers to searches.
func left(prefix string) string {
	var out []string
	for _, path := range []string{"took", "timed_out", "_shards", "hits.hits._index",
		"hits.hits.inner_hits.*.hits.hits._index", "hits.hits.inner_hits.*.hits.hits._nested"} {
		out = append(out, "-"+prefix+path)
	}
	return strings.Join(out, ",")
}

// A asked is a search of [Store.searchAll].
type asked struct {
	in   kind
	body object
	then func(*result) error // is called with the result
}

// searchAll sends several searches in one request, and uses their results in
// order. The error is the first one of a search.
func (s *Store) searchAll(ctx context.Context, list []asked) error {
	if len(list) == 0 {
		return ctx.Err()
	}
	const path = "/_msearch"
	var body bytes.Buffer
	out := json.NewEncoder(&body)
	out.SetEscapeHTML(false)
	for _, x := range list {
		header := object{"index": s.index(x.in), "allow_partial_search_results": false}
		if err := errors.Join(out.Encode(header), out.Encode(x.body)); err != nil {
			return fmt.Errorf("writing a request to OpenSearch: %w", err)
		}
	}
	return s.client.again(ctx, func() error {
		var answer struct {
			Responses []struct {
				result
				Status int             `json:"status"`
				Error  json.RawMessage `json:"error"`
			} `json:"responses"`
		}
		err := s.client.once(ctx, http.MethodPost, path, url.Values{"filter_path": {"-took," + left("responses.")}},
			"application/x-ndjson", body.Bytes(), &answer)
		switch {
		case errors.Is(err, errMissing):
			return notOpenSearch(path)
		case err != nil:
			return err
		case len(answer.Responses) != len(list):
			return notOpenSearch(path)
		}
		for _, a := range answer.Responses {
			if a.Error != nil {
				var f failure
				_ = json.Unmarshal(a.Error, &f) // a text instead of an object has no type
				return s.client.noted(f.error(path, a.Status))
			}
		}
		for i, x := range list {
			if err := x.then(&answer.Responses[i].result); err != nil {
				return err
			}
		}
		return nil
	})
}
