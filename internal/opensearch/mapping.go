package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/relevance"
)

// mappingVersion is the version of the indexes. It is incremented with each
// change of what is stored. Until [Store.Migrate] has replaced indexes of an older
// version, they are searched and changed with the code of this version, without
// the fields that they do not have.
const mappingVersion = 1

// The oldest version of OpenSearch that works.
const leastMajor, leastMinor = 2, 19

// between separates tokens at one position in a text, and a token from its
// frequency. No token contains it, and OpenSearch does not take it for white
// space.
const between = "\x01"

// meta is what the mapping of an index says about it.
type meta struct {
	Version  int `json:"version"`
	Analysis int `json:"analysis"` // analysis.Version
}

// indexes are the two indexes of documents and of chunks that belong together.
// Their names end with a number, which grows when they are replaced. The aliases
// without a number name the present ones.
type indexes struct {
	number int
	old    bool // they were written by an older version
	// oneShard reports whether the documents are in one shard.
	oneShard bool
	// Properties are the fields of old indexes, by name, which changes must not
	// exceed; nil if they are not old.
	documents, chunks map[string]bool
}

// names are names of indexes or aliases.
type names struct{ documents, chunks, state string }

// aliases returns the names of the present indexes for people and other programs.
func (s *Store) aliases() names {
	return names{s.prefix + "-documents", s.prefix + "-chunks", s.prefix + "-state"}
}

// numbered returns the names of indexes with a number.
func (s *Store) numbered(n int) names {
	return names{fmt.Sprintf("%s-documents-%d", s.prefix, n), fmt.Sprintf("%s-chunks-%d", s.prefix, n), s.prefix + "-state"}
}

// Suffixes of the aliases that are used for all requests. An index has openSuffix
// while it is the present one, and fillSuffix before. So a request that is late
// fails, instead of changing indexes of another version or making new ones.
const (
	openSuffix = "-open"
	fillSuffix = "-fill"
)

func (n names) with(suffix string) names {
	return names{n.documents + suffix, n.chunks + suffix, n.state}
}

// names returns the names of the present indexes.
func (s *Store) names() names {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbered(s.current.number).with(openSuffix)
}

// of returns the name of an index.
func (n names) of(in kind) string { return [...]string{n.documents, n.chunks, n.state}[in] }

// setUp connects to the cluster, and creates the indexes that are missing unless
// the store has been open. It returns whether the cluster has vectors, the indexes,
// and the fields of vectors.
func (s *Store) setUp(ctx context.Context) (vectors bool, now indexes, fields map[string]bool, err error) {
	if err = s.checkServer(ctx); err == nil {
		vectors, err = s.hasVectors(ctx)
	}
	for err == nil {
		var missing []newIndex
		if missing, now, fields, err = s.checkIndexes(ctx); err != nil || len(missing) == 0 {
			break
		}
		for _, index := range missing {
			if err == nil {
				err = s.create(ctx, index, vectors)
			}
		}
	}
	return vectors, now, fields, err
}

// create creates an index, unless another process does.
func (s *Store) create(ctx context.Context, n newIndex, vectors bool) error {
	err := s.client.do(ctx, http.MethodPut, "/"+n.index, nil, s.body(n, vectors), nil)
	if remote, ok := errors.AsType[*errkind.Remote](err); ok && remote.Code == "resource_already_exists_exception" {
		err = nil
	}
	return err
}

// checkServer returns an error unless the server is a version of OpenSearch that
// works. It sets what tokens of chunks are boosted with.
func (s *Store) checkServer(ctx context.Context) error {
	var info struct {
		Version struct {
			Distribution string `json:"distribution"`
			Number       string `json:"number"`
		} `json:"version"`
	}
	if err := s.client.do(ctx, http.MethodGet, "/", nil, nil, &info); err != nil {
		if errors.Is(err, errMissing) {
			err = notOpenSearch("/")
		}
		return err
	}
	if info.Version.Number == "" {
		return notOpenSearch("/")
	}
	bad := func(what string) error {
		return unusable(AddressReason, errkind.Unsupported, what)
	}
	if info.Version.Distribution != "opensearch" {
		return bad("the server is not OpenSearch, but perhaps Elasticsearch: use OpenSearch 2.19 or later")
	}
	major, rest, _ := strings.Cut(info.Version.Number, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return notOpenSearch("/")
	}
	if a < leastMajor || a == leastMajor && b < leastMinor {
		return bad(fmt.Sprintf("the server is OpenSearch %d.%d, which is too old: use 2.19 or later", a, b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boost = relevance.K1 + 1
	if a < 3 { // https://github.com/opensearch-project/OpenSearch/pull/17306
		s.boost /= relevance.K1*scale + 1
	}
	return nil
}

// hasVectors reports whether every node has the k-NN plugin.
func (s *Store) hasVectors(ctx context.Context) (bool, error) {
	var rows []struct {
		Name      string `json:"name"`
		Component string `json:"component"`
	}
	err := s.client.do(ctx, http.MethodGet, "/_cat/plugins", url.Values{"format": {"json"}, "h": {"name,component"}}, nil, &rows)
	if errors.Is(err, errkind.Denied) {
		return false, nil // the user may not ask; words can be searched
	}
	if err != nil {
		return false, err
	}
	nodes := map[string]bool{}
	for _, r := range rows {
		nodes[r.Name] = nodes[r.Name] || strings.HasSuffix(r.Component, "opensearch-knn") || strings.HasSuffix(r.Component, "KNNPlugin")
	}
	for _, has := range nodes {
		if !has {
			return false, nil
		}
	}
	return len(nodes) > 0, nil
}

// A newIndex is an index that has to be created.
type newIndex struct {
	index      string
	aliases    []string
	properties object
}

// newIndexes returns the indexes of documents and chunks with a number, which get
// aliases with a suffix.
func (s *Store) newIndexes(n int, suffix string) [2]newIndex {
	names, out := s.numbered(n), [2]newIndex{}
	for i, index := range [...]string{names.documents, names.chunks} {
		out[i] = newIndex{index, []string{index + suffix}, maps.Clone([...]object{documentFields, chunkFields}[i])}
		for _, f := range s.o.fields {
			delete(out[i].properties, f)
		}
	}
	return out
}

// body returns the settings and the mapping of an index.
func (s *Store) body(n newIndex, vectors bool) object {
	settings := object{
		"auto_expand_replicas": "0-1",
		"refresh_interval":     "30s", // changes refresh what they change, and more often would make small segments
		"analysis": object{
			"tokenizer": object{"tokens": object{"type": "whitespace", "max_token_length": 1 << 16}},
			"filter": object{
				"beside":    object{"type": "pattern_capture", "preserve_original": false, "patterns": []string{"([^" + between + "]+)"}},
				"frequency": object{"type": "delimited_term_freq", "delimiter": between},
			},
			"analyzer": object{
				"tokens":      object{"type": "custom", "tokenizer": "tokens", "filter": []string{"beside"}},
				"frequencies": object{"type": "custom", "tokenizer": "tokens", "filter": []string{"frequency"}},
			},
		},
		"similarity": object{"weighed": object{"type": "BM25", "k1": relevance.K1 * scale, "b": 0}},
	}
	if vectors {
		settings["knn"] = true
	}
	out := object{
		"settings": object{"index": settings},
		"mappings": object{
			"dynamic":    "strict",
			"_meta":      object{"knowhow": s.o.version},
			"properties": n.properties,
		},
	}
	aliases := object{}
	for _, a := range n.aliases {
		aliases[a] = object{}
	}
	out["aliases"] = aliases
	return out
}

// Kinds of fields.
var (
	keyword = object{"type": "keyword", "ignore_above": 8000}
	number  = object{"type": "long"}
	kept    = object{"type": "object", "enabled": false} // any JSON, only stored
	stored  = object{"type": "keyword", "index": false, "doc_values": false}
	unused  = object{"type": "long", "index": false, "doc_values": false}
	value   = object{"type": "keyword", "index": false, "ignore_above": 8000} // read with a hit, and not searched
	tokens  = object{"type": "text", "analyzer": "tokens", "search_analyzer": "whitespace"}
)

// documentFields are the fields of a document.
var documentFields = object{
	"number": number, "doc_id": keyword, "revision": keyword, "label": keyword, "path": keyword, "from_source": object{"type": "boolean"},
	"source_path": keyword, "tags": keyword, "type": keyword, "title": value, "url": keyword, "site": keyword, "lang": keyword,
	"mimetype": keyword, "filetype": keyword, "filename": keyword, "host": keyword, "size": number, "modified": number,
	"created": number, "updated": number, "hash": keyword, "twin": keyword, "text_size": number, "chunks": number, "kept": kept,
	"title_tokens": tokens, "name_tokens": tokens, "text_tokens": tokens, "words": keyword, "title_words": keyword,
}

// chunkFields are the fields of a chunk.
var chunkFields = object{
	"revision": keyword, "label": keyword, "number": number, "n": number, "off": number, "len": number, "title": stored, "heading": stored, "text": stored, "around": stored, "before": unused, noVector: keyword,
	"tokens": object{"type": "text", "analyzer": "frequencies", "search_analyzer": "whitespace", "index_options": "freqs", "norms": false, "similarity": "weighed"},
}

// A described is what OpenSearch says about an index.
type described struct {
	Mappings struct {
		Meta struct {
			Knowhow *meta `json:"knowhow"`
		} `json:"_meta"`
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"mappings"`
	Aliases  map[string]json.RawMessage `json:"aliases"`
	Settings struct {
		Index struct {
			Shards string `json:"number_of_shards"`
		} `json:"index"`
	} `json:"settings"`
}

// describe returns the indexes with a name or alias.
func (s *Store) describe(ctx context.Context, name string) (found map[string]described, err error) {
	err = s.client.do(ctx, http.MethodGet, "/"+name, url.Values{"ignore_unavailable": {"true"}, "allow_no_indices": {"true"}}, nil, &found)
	return found, err
}

// compare returns an error if an index with a version cannot be used. old reports
// whether it has to be replaced.
func (s *Store) compare(name string, m *meta) (old bool, err error) {
	switch {
	case m == nil:
		return false, unusable(AddressReason, errkind.Conflict, "OpenSearch has an index with the name "+name+" that knowhow has not created: choose another PREFIX")
	case m.Version > s.o.version.Version || m.Analysis > s.o.version.Analysis:
		const message = " was written by a newer version of knowhow: update this program"
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opened { // it was replaced while this program was running
			return false, &errkind.Remote{Kind: errkind.Unavailable, Endpoint: "/" + name, Status: http.StatusServiceUnavailable, Message: "the index " + name + message}
		}
		return false, unusable(AddressReason, errkind.Conflict, "the index "+name+message)
	}
	return *m != s.o.version, nil
}

// checkIndexes checks the indexes that exist, and returns those that are
// missing, the present ones, and the fields of vectors. It changes nothing.
func (s *Store) checkIndexes(ctx context.Context) (missing []newIndex, now indexes, fields map[string]bool, err error) {
	fields = map[string]bool{}
	aliases := s.aliases()
	var absent []int
	for i, name := range [...]string{aliases.documents, aliases.chunks} {
		found, err := s.describe(ctx, name)
		if err != nil {
			return nil, now, nil, err
		}
		if len(found) == 0 {
			absent = append(absent, i)
		}
		for index, f := range found {
			number, numbered := strings.CutPrefix(index, name+"-")
			n, err := strconv.Atoi(number)
			m := f.Mappings.Meta.Knowhow
			if len(found) > 1 || !numbered || err != nil || now.number > 0 && n != now.number {
				m = nil // not one of ours
			}
			old, err := s.compare(name, m)
			if err != nil {
				return nil, now, nil, err
			}
			now.number, now.old = n, now.old || old
			properties := map[string]bool{}
			for p := range f.Mappings.Properties {
				properties[p] = true
				fields[p] = fields[p] || strings.HasPrefix(p, vectorField)
			}
			if i == 0 {
				now.documents, now.oneShard = properties, f.Settings.Index.Shards == "1"
			} else {
				now.chunks = properties
			}
		}
	}
	now.number = max(now.number, 1)
	for _, i := range absent {
		n := s.newIndexes(now.number, openSuffix)[i]
		n.aliases = append(n.aliases, [...]string{aliases.documents, aliases.chunks}[i])
		missing = append(missing, n)
	}
	found, err := s.describe(ctx, aliases.state)
	if err != nil {
		return nil, now, nil, err
	}
	if len(found) == 0 {
		missing = append(missing, newIndex{index: aliases.state, properties: object{"kept": kept, "next": number}})
	}
	for _, f := range found {
		if _, err := s.compare(aliases.state, f.Mappings.Meta.Knowhow); err != nil {
			return nil, now, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened && len(missing) > 0 { // an operator may be restoring it
		return nil, now, nil, failure{Type: lostIndex}.error("/"+missing[0].index, http.StatusNotFound)
	}
	return missing, now, fields, nil
}

// lostIndex is the code of errors that are due to an index that does not exist.
const lostIndex = "index_not_found_exception"

// present calls f with the names of the present indexes, and once more if another
// process has replaced them.
func (s *Store) present(ctx context.Context, f func(in names) error) error {
	err := f(s.names())
	if isLost(err) {
		if err = s.reopen(ctx); err == nil {
			err = f(s.names())
		}
	}
	return err
}

// isLost reports whether an error is due to an index that does not exist, perhaps
// because another process has replaced it.
func isLost(err error) bool {
	remote, ok := errors.AsType[*errkind.Remote](err)
	return ok && remote.Code == lostIndex
}

// fit returns a row for the present indexes: without the fields that old ones do
// not have.
func (s *Store) fit(in kind, row any) (any, error) {
	s.mu.Lock()
	now := s.current
	s.mu.Unlock()
	if !now.old && s.o.fields == nil {
		return row, nil
	}
	data, err := json.Marshal(row)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	has := [...]map[string]bool{now.documents, now.chunks}[in]
	maps.DeleteFunc(out, func(field string, _ json.RawMessage) bool { return !has[field] })
	return out, nil
}
