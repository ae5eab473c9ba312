package opensearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// facetFields are the fields that documents can be counted by.
var facetFields = [...]string{"label", "host", "filetype", "mimetype", "lang", "filename"}

// FacetFields returns the fields that hits can be counted by; see
// [search.Service].
func (s *Store) FacetFields() []string { return slices.Clone(facetFields[:]) }

// facetSize is how many values of a field are counted if the query does not set
// a size.
const facetSize = 10

// facetAggregations adds the counts that a query wants. The words of its queries
// are translated for some languages.
func facetAggregations(q search.Query, langs []analysis.Language, aggs object) error {
	for _, name := range q.Facets.Fields {
		direction, by, _ := strings.Cut(cmp.Or(q.Facets.Sort, "count.desc"), ".")
		order := []object{{"_count": by}, {"_key": "asc"}}
		if direction == "term" {
			order = []object{{"_key": by}}
		}
		aggs["field_"+name] = object{"terms": object{"field": name, "size": cmp.Or(q.Facets.Size, facetSize) + 1,
			"min_doc_count": max(q.Facets.MinDocCount, 1), "order": order}}
	}
	for i, text := range q.Facets.Queries {
		t, err := query.Parse(text)
		var p part
		if err == nil {
			p, err = (&translator{langs: langs, now: time.Now()}).node(t.Tree())
		}
		if errors.Is(err, errkind.Invalid) {
			return &errkind.Argument{Name: "facets.query", Value: text, Want: fmt.Sprintf("a query (%v)", err)}
		}
		if err != nil {
			return err
		}
		if p.void {
			p.query = none()
		}
		aggs[fmt.Sprintf("query%d", i)] = object{"filter": p.query}
	}
	return nil
}

// facetCounts reads the counts of a result.
func facetCounts(f *search.Facets, r *result) (*search.FacetCounts, error) {
	out := &search.FacetCounts{}
	for _, name := range f.Fields {
		buckets, err := r.buckets("field_" + name)
		if err != nil {
			return nil, err
		}
		var counts []search.Count
		for _, b := range buckets {
			if value := cmp.Or(b.text(), f.Missing); value != "" && len(counts) < cmp.Or(f.Size, facetSize) {
				counts = append(counts, search.Count{Value: value, Count: b.Count})
			}
		}
		out.Fields = append(out.Fields, search.FieldCounts{Name: name, Counts: counts})
	}
	for i, text := range f.Queries {
		out.Queries = append(out.Queries, search.Count{Value: text, Count: r.inside(fmt.Sprintf("query%d", i))})
	}
	return out, nil
}

// escapeRegexp returns a regular expression of OpenSearch for a text.
func escapeRegexp(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`.?+*|{}[]()"\#@&<>~^$-`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Suggest returns words that begin with a prefix, those of the most documents
// first; see [search.Service].
func (s *Store) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	prefix := strings.TrimSpace(analysis.Lower(q.Prefix))
	if prefix == "" || len(prefix) > 256 {
		return nil, ctx.Err()
	}
	field := "words"
	if len(q.Fields) == 1 && q.Fields[0] == "title" {
		field = "title_words"
	}
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.search(ctx, inDocuments, wordsBody(field, escapeRegexp(prefix)+".*", q.Num,
		append(filters(q.Labels, q.Langs, nil), object{"prefix": object{field: prefix}})))
	if err != nil {
		return nil, fmt.Errorf("suggesting words: %w", err)
	}
	buckets, err := r.buckets("values")
	if err != nil {
		return nil, err
	}
	var out []search.Suggestion
	for _, b := range buckets {
		x := search.Suggestion{Text: b.text()}
		for _, l := range b.Labels.Buckets {
			x.Labels = append(x.Labels, l.text())
		}
		slices.Sort(x.Labels)
		out = append(out, x)
	}
	return out, nil
}

// wordsBody returns a search that counts up to n words that match a regular
// expression, and how many of the documents that filters select have each, the
// most first.
func wordsBody(field, include string, n int, filter []object) object {
	words := object{"field": field, "size": n, "order": []object{{"_count": "desc"}, {"_key": "asc"}},
		"include": include}
	return object{"size": 0, "track_total_hits": false, "query": object{"bool": object{"filter": filter}},
		"aggs": object{"values": object{"terms": words,
			"aggs": object{"labels": object{"terms": object{"field": "label",
				"size": pageSize}}}}}}
}

// Limits of the list of popular words.
const (
	popularWords = 10
	popularPool  = 500 // words that the list is chosen from
)

// PopularWords returns up to ten of the words that the most documents have; see
// [search.Service]. The seed picks among words that are about equal, which means
// the same power of two.
func (s *Store) PopularWords(ctx context.Context, q search.WordsQuery) ([]string, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	filter := filters(q.Labels, nil, nil)
	r, err := s.search(ctx, inDocuments, object{"size": 0, "track_total_hits": true,
		"query": object{"bool": object{"filter": filter}},
		"aggs":  object{"values": object{"terms": object{"field": "words", "size": popularPool}}}})
	if err != nil {
		return nil, fmt.Errorf("listing popular words: %w", err)
	}
	buckets, err := r.buckets("values")
	if err != nil {
		return nil, err
	}
	langs, err := s.languages(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing popular words: %w", err)
	}
	docs := r.Hits.Total.Value
	buckets = slices.DeleteFunc(buckets, func(b bucket) bool {
		first, _ := utf8.DecodeRuneInString(b.text())
		short := utf8.RuneCountInString(b.text()) < 3 && !analysis.IsCJK(first)
		return short || analysis.FunctionWord(b.text(), langs) || !unicode.IsLetter(first) || docs >= 20 &&
			2*b.Count > docs
	})
	hash := func(b bucket) uint64 {
		h := fnv.New64a()
		h.Write([]byte(q.Seed + "\x00" + b.text())) // never fails
		return h.Sum64()
	}
	slices.SortFunc(buckets, func(a, b bucket) int {
		return cmp.Or(cmp.Compare(bits.Len(uint(b.Count)), bits.Len(uint(a.Count))), cmp.Compare(hash(a), hash(b)))
	})
	out := []string{}
	for _, b := range buckets[:min(len(buckets), popularWords)] {
		out = append(out, b.text())
	}
	return out, nil
}

// similarPool is how many words are compared with one.
const similarPool = 1000

// nearWords returns a search for the words of documents with one of some labels
// (nil: any) that are similar to one word; see [retrieval.Store].
func nearWords(word string, labels []string, found func([]string)) asked {
	word = analysis.Lower(word)
	first, size := utf8.DecodeRuneInString(word)
	n, edits := utf8.RuneCountInString(word), 1
	if n >= retrieval.FarLetters {
		edits = 2
	}
	filter := append(filters(labels, nil, nil), object{"fuzzy": object{"words": object{"value": word,
		"fuzziness":     edits,
		"prefix_length": 1, "max_expansions": expansions}}})
	include := fmt.Sprintf("%s.{%d,%d}", escapeRegexp(word[:size]), max(0, n-1-edits), n-1+edits)
	return asked{inDocuments, wordsBody("words", include, similarPool, filter), func(r *result) error {
		buckets, err := r.buckets("values")
		if err == nil {
			found(nearest(word, first, edits, buckets))
		}
		return err
	}}
}

// nearest returns the values of buckets that begin with a letter and have at most
// some edits to a word, the nearest ones first.
func nearest(word string, letter rune, edits int, buckets []bucket) []string {
	type candidate struct {
		word     string
		distance int
	}
	var found []candidate
	for _, b := range buckets {
		if r, _ := utf8.DecodeRuneInString(b.text()); r != letter {
			continue
		}
		if d := distance(word, b.text()); d <= edits {
			found = append(found, candidate{b.text(), d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, f := range found[:min(len(found), retrieval.SimilarEach)] {
		out = append(out, f.word)
	}
	return out
}

// distance returns the number of inserted, deleted and replaced characters and
// swapped neighbours between two words.
func distance(s, t string) int {
	a, b := []rune(s), []rune(t)
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now := rows[0], rows[1], rows[2]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, now, before}
	}
	return rows[1][len(b)]
}
