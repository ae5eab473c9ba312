package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/relevance"
)

// mappingVersion is the version of the indexes. It is incremented with each
// change of what is stored. It is part of the names of the indexes, which are
// behind aliases.
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

// setUp connects to the cluster, and creates the indexes that are missing. It
// returns whether the cluster has vectors, and the fields of vectors.
func (s *Store) setUp(ctx context.Context) (vectors bool, fields map[string]bool, err error) {
	if err := s.checkServer(ctx); err != nil {
		return false, nil, err
	}
	if vectors, err = s.hasVectors(ctx); err != nil {
		return false, nil, err
	}
	for {
		missing, fields, err := s.checkIndexes(ctx)
		if err != nil || len(missing) == 0 {
			return vectors, fields, err
		}
		for _, name := range missing {
			err := s.client.do(ctx, http.MethodPut, "/"+name.index, nil, name.body(vectors), nil)
			if remote, ok := errors.AsType[*errkind.Remote](err); ok && remote.Code == "resource_already_exists_exception" {
				err = nil // another process creates it
			}
			if err != nil {
				return false, nil, err
			}
		}
	}
}

// checkServer returns an error unless the server is a version of OpenSearch that
// works.
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
	index, alias string
	properties   object
}

func (n newIndex) body(vectors bool) object {
	settings := object{
		"auto_expand_replicas": "0-1",
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
			"_meta":      object{"knowhow": meta{mappingVersion, analysis.Version}},
			"properties": n.properties,
		},
	}
	if n.alias != "" {
		out["aliases"] = object{n.alias: object{}}
	}
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

// checkIndexes checks the indexes that exist, and returns those that are
// missing, and the fields of vectors. It changes nothing.
func (s *Store) checkIndexes(ctx context.Context) (missing []newIndex, fields map[string]bool, err error) {
	fields = map[string]bool{}
	for _, n := range []newIndex{
		{fmt.Sprintf("%s-%d", s.names().documents, mappingVersion), s.names().documents, documentFields},
		{fmt.Sprintf("%s-%d", s.names().chunks, mappingVersion), s.names().chunks, chunkFields},
		{s.names().state, "", object{"kept": kept, "next": number}},
	} {
		name := n.index
		if n.alias != "" {
			name = n.alias
		}
		var found map[string]struct {
			Mappings struct {
				Meta struct {
					Knowhow *meta `json:"knowhow"`
				} `json:"_meta"`
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"mappings"`
		}
		if err := s.client.do(ctx, http.MethodGet, "/"+name, url.Values{"ignore_unavailable": {"true"}, "allow_no_indices": {"true"}}, nil, &found); err != nil {
			return nil, nil, err
		}
		if len(found) == 0 {
			missing = append(missing, n)
			continue
		}
		for index, f := range found {
			m := f.Mappings.Meta.Knowhow
			switch {
			case m == nil || len(found) > 1 || n.alias != "" && index == n.alias:
				return nil, nil, unusable(AddressReason, errkind.Conflict, "OpenSearch has an index with the name "+name+" that knowhow has not created: choose another PREFIX")
			case m.Version > mappingVersion || m.Analysis > analysis.Version:
				return nil, nil, unusable(AddressReason, errkind.Conflict, "the index "+name+" was written by a newer version of knowhow: update this program")
			case m.Version < mappingVersion || m.Analysis < analysis.Version:
				return nil, nil, unusable(AddressReason, errkind.Conflict, "the index "+name+" was written by an older version of knowhow: copy its documents with that version to a new PREFIX")
			}
			for p := range f.Mappings.Properties {
				fields[p] = fields[p] || strings.HasPrefix(p, vectorField)
			}
		}
	}
	return missing, fields, nil
}
