package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
)

// mappingVersion is the version of the indexes. It is incremented with each
// change of what is stored. Indexes of another version are refused: they are
// copied to new ones; see [Store.Switch].
const mappingVersion = 3

// leastReadable is the oldest version of indexes that can be copied from. In version
// 2, documents have earlier IDs.
const leastReadable = 2

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

// A kind is one of the indexes of a store.
type kind int

const (
	inDocuments kind = iota
	inVectors
	inState
)

// alias returns the name of an index for people and other programs, which is also
// that of the present index. The state is not numbered.
func (s *Store) alias(in kind) string {
	return s.prefix + [...]string{"-documents", "-vectors", "-state"}[in]
}

// numbered returns the name of an index with a number. The number grows when
// indexes are replaced.
func (s *Store) numbered(in kind, n int) string { return fmt.Sprintf("%s-%d", s.alias(in), n) }

// numberedKinds returns the indexes with numbers of a cluster.
func numberedKinds(vectors bool) []kind {
	if vectors {
		return []kind{inDocuments, inVectors}
	}
	return []kind{inDocuments}
}

// openSuffix is the suffix of the alias of a numbered index that is used for all
// requests. It is removed when the index is replaced. So a request that is late
// fails, instead of changing an index that is not used any more or making a new
// one.
const openSuffix = "-open"

// index returns the name by which an index is used.
func (s *Store) index(in kind) string {
	if in == inState {
		return s.alias(in)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbered(in, s.current) + openSuffix
}

// An indexes describes the indexes of a store.
type indexes struct {
	number  int
	vectors bool            // the cluster can search by meaning
	fields  map[string]bool // fields of vectors
}

// setUp connects to the cluster, and creates the indexes that are missing unless
// the store has been open.
func (s *Store) setUp(ctx context.Context) (found indexes, err error) {
	if err = s.checkServer(ctx); err == nil {
		found.vectors, err = s.hasVectors(ctx)
	}
	for err == nil {
		var missing []newIndex
		if missing, err = s.checkIndexes(ctx, &found); len(missing) == 0 {
			break
		}
		for _, n := range missing {
			if err == nil {
				err = s.create(ctx, n)
			}
		}
	}
	return found, err
}

// create creates an index, unless another process does.
func (s *Store) create(ctx context.Context, n newIndex) error {
	err := s.client.do(ctx, http.MethodPut, "/"+n.name, nil, s.body(n), nil)
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
	err := s.client.do(ctx, http.MethodGet, "/_cat/plugins", url.Values{"format": {"json"}, "h": {"name,component"}},
		nil,
		&rows)
	if errors.Is(err, errkind.Denied) {
		return false, nil // the user may not ask; words can be searched
	}
	if err != nil {
		return false, err
	}
	nodes := map[string]bool{}
	for _, r := range rows {
		nodes[r.Name] = nodes[r.Name] || strings.HasSuffix(r.Component, "opensearch-knn") ||
			strings.HasSuffix(r.Component, "KNNPlugin")
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
	name    string
	in      kind
	aliases []string
}

// maxWindow is how many chunks of a document a request returns at most.
const maxWindow = 1000

// body returns the settings and the mapping of an index.
func (s *Store) body(n newIndex) object {
	settings := object{
		"auto_expand_replicas": "0-1",
		"refresh_interval":     "30s",     // changes refresh what they change, and more often would make small segments
		"codec":                "default", // others unpack much more than the chunks that are read
	}
	mappings := object{"dynamic": "strict", "_meta": object{"knowhow": s.o.version}}
	switch n.in {
	case inDocuments:
		settings["max_inner_result_window"] = maxWindow
		settings["mapping"] = object{"nested_objects": object{"limit": maxChunks}}
		settings["analysis"] = object{
			"tokenizer": object{"tokens": object{"type": "whitespace", "max_token_length": 1 << 16}},
			"filter": object{
				"beside": object{"type": "pattern_capture", "preserve_original": false,
					"patterns": []string{"([^" + between + "]+)"}},
				"frequency": object{"type": "delimited_term_freq", "delimiter": between},
			},
			"analyzer": object{
				"tokens":      object{"type": "custom", "tokenizer": "tokens", "filter": []string{"beside"}},
				"frequencies": object{"type": "custom", "tokenizer": "tokens", "filter": []string{"frequency"}},
			},
		}
		settings["similarity"] = object{"weighed": object{"type": "BM25", "k1": relevance.K1 * scale, "b": 0}}
		mappings["properties"] = documentFields
		mappings["_source"] = object{"excludes": []string{"all", "title_tokens", "text_tokens", "words", "title_words",
			"title_key", "name_key", "hit", "chunks"}}
	case inVectors:
		settings["knn"] = true
		mappings["properties"] = object{"number": number, "label": keyword, "print": keyword, "n": number,
			"hash":   value,
			"chunks": number, "models": keyword}
	case inState:
		mappings["properties"] = object{"kept": kept, "next": number}
	}
	aliases := object{}
	for _, a := range n.aliases {
		aliases[a] = object{}
	}
	return object{"settings": object{"index": settings}, "mappings": mappings, "aliases": aliases}
}

// Kinds of fields.
var (
	keyword = object{"type": "keyword", "ignore_above": 8000}
	number  = object{"type": "long"}
	kept    = object{"type": "object", "enabled": false} // any JSON, only stored
	stored  = object{"type": "keyword", "index": false, "doc_values": false}
	value   = object{"type": "keyword", "index": false, "ignore_above": 8000} // read with a hit, and not searched
	tokens  = object{"type": "text", "analyzer": "tokens", "search_analyzer": "whitespace"}
)

// documentFields are the fields of a document.
var documentFields = object{
	"number": number, "doc_id": keyword, "label": keyword, "path": keyword, "from_source": object{"type": "boolean"},
	"source_path": keyword, "tags": keyword, "type": keyword, "title": value, "url": keyword, "site": keyword,
	"lang":     keyword,
	"mimetype": keyword, "filetype": keyword, "filename": keyword, "host": keyword, "size": number, "modified": number,
	"created": number, "updated": number, "hash": keyword, "same_text": keyword, "text_size": number, "chunk_count": number,
	"print": value,
	"text":  stored, "kept": kept, "hit": value,
	"all": tokens, "title_tokens": tokens, "text_tokens": tokens, "words": keyword, "title_words": keyword,
	"title_key": keyword, "name_key": keyword,
	"chunks": object{"type": "nested", "properties": object{
		"n": number, "off": number, "end": number,
		"kept": object{"type": "keyword", "index": false, "doc_values": false, "store": true},
		"tokens": object{"type": "text", "analyzer": "frequencies", "search_analyzer": "whitespace",
			"index_options": "freqs",
			"norms":         false, "similarity": "weighed"},
	}},
}

// A described is the description of an index by OpenSearch.
type described struct {
	Mappings struct {
		Meta struct {
			Knowhow *meta `json:"knowhow"`
		} `json:"_meta"`
		Properties map[string]struct{} `json:"properties"`
	} `json:"mappings"`
}

// describe returns the indexes with a name or alias.
func (s *Store) describe(ctx context.Context, name string) (found map[string]described, err error) {
	err = s.client.do(ctx, http.MethodGet, "/"+name, url.Values{"ignore_unavailable": {"true"},
		"allow_no_indices": {"true"}}, nil, &found)
	return found, err
}

// checkVersion returns an error if an index with a version cannot be used.
func (s *Store) checkVersion(name string, m *meta) error {
	const newer = " was written by a newer version of knowhow: update this program"
	switch {
	case m == nil:
		return unusable(AddressReason, errkind.Conflict,
			"OpenSearch has an index with the name "+name+" that knowhow has not created: choose another PREFIX")
	case m.Version > s.o.version.Version || m.Analysis > s.o.version.Analysis:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opened { // it was replaced while this program was running
			return &errkind.Remote{Kind: errkind.Unavailable, Endpoint: "/" + name,
				Status:  http.StatusServiceUnavailable,
				Message: "the index " + name + newer}
		}
		return unusable(AddressReason, errkind.Conflict, "the index "+name+newer)
	case m.Version < leastReadable:
		return unusable(AddressReason, errkind.Conflict,
			"the index "+name+" was written by an older version of knowhow, and this version cannot read it: copy the documents to a data folder with "+
				"\"knowhow store copy\" of that version, and from there to another PREFIX with that of this version")
	case *m != s.o.version && s.o.Move == Stay:
		return unusable(AddressReason, errkind.Conflict,
			"the index "+name+" was written by an older version of knowhow: end the programs of that version, and copy the store to itself with \"knowhow store copy\" of this version")
	}
	return nil
}

// checkIndexes checks the indexes that exist, and returns those that are missing.
// It changes nothing in the cluster.
func (s *Store) checkIndexes(ctx context.Context, now *indexes) (missing []newIndex, err error) {
	now.number, now.fields = 0, map[string]bool{}
	kinds := numberedKinds(now.vectors)
	absent := map[kind]bool{}
	for _, in := range kinds {
		found, err := s.describe(ctx, s.alias(in))
		if err != nil {
			return nil, err
		}
		absent[in] = len(found) == 0
		for index, f := range found {
			text, numbered := strings.CutPrefix(index, s.alias(in)+"-")
			n, err := strconv.Atoi(text)
			m := f.Mappings.Meta.Knowhow
			if len(found) > 1 || !numbered || err != nil || now.number > 0 && n != now.number {
				m = nil // not one of ours
			}
			if err := s.checkVersion(s.alias(in), m); err != nil {
				return nil, err
			}
			now.number = n
			now.note(f)
		}
	}
	switch {
	case s.o.Move == To && now.number > 0:
		now.number++
		now.fields = map[string]bool{}
		for _, in := range kinds {
			found, err := s.describe(ctx, s.numbered(in, now.number))
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				missing = append(missing, newIndex{s.numbered(in, now.number), in,
					[]string{s.numbered(in, now.number) + openSuffix}})
			}
			for index, f := range found {
				if m := f.Mappings.Meta.Knowhow; m == nil || *m != s.o.version {
					return nil, unusable(AddressReason, errkind.Conflict,
						"OpenSearch has an index with the name "+index+" of another version: delete it")
				}
				now.note(f)
			}
		}
	default:
		now.number = max(now.number, 1)
		for _, in := range kinds {
			if absent[in] {
				name := s.numbered(in, now.number)
				missing = append(missing, newIndex{name, in, []string{name + openSuffix, s.alias(in)}})
			}
		}
	}
	state, err := s.describe(ctx, s.alias(inState))
	if err != nil {
		return nil, err
	}
	if len(state) == 0 {
		missing = append(missing, newIndex{name: s.alias(inState), in: inState})
	}
	for _, f := range state { // its form is the same in all versions
		if m := f.Mappings.Meta.Knowhow; m == nil {
			return nil, s.checkVersion(s.alias(inState), m)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened && len(missing) > 0 { // an operator may be restoring it
		return nil, failure{Type: lostIndex}.error("/"+missing[0].name, http.StatusNotFound)
	}
	return missing, nil
}

// note notes the fields of vectors of an index.
func (now *indexes) note(f described) {
	for p := range f.Mappings.Properties {
		if strings.HasPrefix(p, vectorField) {
			now.fields[p] = true
		}
	}
}

// Switch makes the indexes that a store with the option [To] has filled the present
// ones, in one step. Programs that use the old ones then get errors. The old
// indexes remain; their names are returned.
func (s *Store) Switch(ctx context.Context) (old []string, err error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	var actions []object
	for _, in := range numberedKinds(s.HasVectors()) {
		s.mu.Lock()
		now := s.numbered(in, s.current)
		before := s.numbered(in, s.current-1)
		s.mu.Unlock()
		actions = append(actions, object{"add": object{"index": now, "alias": s.alias(in)}})
		found, err := s.describe(ctx, before)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		old = append(old, before)
		for _, alias := range []string{s.alias(in), before + openSuffix} {
			actions = append(actions, object{"remove": object{"index": before, "alias": alias, "must_exist": false}})
		}
	}
	return old, s.client.do(ctx, http.MethodPost, "/_aliases", nil, object{"actions": actions}, nil)
}
