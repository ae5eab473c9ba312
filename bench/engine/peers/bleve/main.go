// The driver of bleve. Its chunks have one field of tokens, with positions, and
// a label. Neither is stored.
package main

import (
	"fmt"
	"io"
	"time"

	"github.com/blevesearch/bleve/v2"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"

	"peers/driver"
)

func main() { driver.Main(func(dir string) driver.Engine { return &engine{dir: dir + "/bleve"} }) }

type engine struct {
	dir   string
	index bleve.Index
}

const batchSize = 1000

func (e *engine) Build(chunks *driver.Chunks) error {
	m, err := newMapping()
	if err != nil {
		return err
	}
	if e.index, err = bleve.New(e.dir, m); err != nil {
		return err
	}
	batch := e.index.NewBatch()
	for n := 0; ; n++ {
		label, tokens, err := chunks.Next()
		if err == io.EOF {
			return e.index.Batch(batch)
		}
		if err == nil {
			err = batch.Index(fmt.Sprint(n), map[string]any{"text": tokens, "label": label})
		}
		if err == nil && batch.Size() == batchSize {
			err = e.index.Batch(batch)
			batch = e.index.NewBatch()
		}
		if err != nil {
			return err
		}
	}
}

func newMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	m.ScoringModel = "bm25"
	if err := m.AddCustomAnalyzer("tokens", map[string]any{"type": "custom", "tokenizer": whitespace.Name}); err != nil {
		return nil, err
	}
	m.DefaultMapping = bleve.NewDocumentStaticMapping()
	for name, analyzer := range map[string]string{"text": "tokens", "label": keyword.Name} {
		f := bleve.NewTextFieldMapping()
		f.Analyzer, f.IncludeTermVectors = analyzer, name == "text"
		f.Store, f.IncludeInAll, f.DocValues = false, false, false
		m.DefaultMapping.AddFieldMappingsAt(name, f)
	}
	return m, nil
}

// Settle gives bleve the time to merge what it merges soon.
func (e *engine) Settle() error {
	time.Sleep(3 * time.Second)
	return nil
}

func (e *engine) Open() (err error) {
	e.index, err = bleve.Open(e.dir)
	return err
}

func (e *engine) Close() error { return e.index.Close() }

func (e *engine) Search(q driver.Query) (int, error) {
	var terms []query.Query
	for _, t := range q.Tokens {
		terms = append(terms, inField(bleve.NewTermQuery(t), "text"))
	}
	var query query.Query
	switch q.Class {
	case "two words, AND", "three words, AND":
		query = bleve.NewConjunctionQuery(terms...)
	case "phrase of three words":
		query = bleve.NewPhraseQuery(q.Tokens, "text")
	case "prefix of four letters":
		query = inField(bleve.NewPrefixQuery(q.Tokens[0]), "text")
	case "fuzzy, one edit":
		f := bleve.NewFuzzyQuery(q.Tokens[0])
		f.SetFuzziness(1)
		query = inField(f, "text")
	default:
		query = bleve.NewDisjunctionQuery(terms...)
		if len(terms) == 1 {
			query = terms[0]
		}
		if q.Label != "" {
			query = bleve.NewConjunctionQuery(inField(bleve.NewTermQuery(q.Label), "label"), query)
		}
	}
	result, err := e.index.Search(bleve.NewSearchRequestOptions(query, 10, 0, false))
	if err != nil {
		return 0, err
	}
	return int(result.Total), nil
}

func inField(q query.FieldableQuery, field string) query.Query {
	q.SetField(field)
	return q
}
