package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
)

// A corpus is a folder with these files:
//
//	documents.gob  the documents, for knowhow
//	chunks.tsv     for the other engines: a line for each chunk, with its label
//	               and the tokens of its title, file name, heading and text,
//	               separated by blanks
//	queries.jsonl  the queries; see query
//	corpus.json    the exported fields
type corpus struct {
	dir     string
	classes []string // of each line of queries.jsonl
	warm    int      // lines before those that are measured, which are as many

	Key               string // differs for other documents
	Documents, Chunks int
	Tokens, Bytes     int
}

// A query is a line of queries.jsonl.
type query struct {
	Class  string   `json:"class"`
	Text   string   `json:"text"`   // for knowhow
	Tokens []string `json:"tokens"` // for the others, without words that knowhow does not search for
	Label  string   `json:"label"`  // "" for all
}

// queriesPerClass is the number of queries of each class, all of which run once
// for warm-up and once more to be measured. Then the first run again, until the
// number of searches is lastSearch.
const (
	queriesPerClass = 100
	lastSearch      = 2000
)

// corpusVersion is incremented when the files of a corpus change.
const corpusVersion = "1"

// makeCorpus makes the corpus of the documents in folders that bench/debian-docs
// filled, unless it exists. It has the first documents, with up to limit chunks.
func makeCorpus(ctx context.Context, dir string, folders []string, limit int) (corpus, error) {
	c := corpus{dir: dir, warm: len(kinds) * queriesPerClass}
	for n := range lastSearch {
		c.classes = append(c.classes, kinds[n%c.warm/queriesPerClass].name)
	}
	key := fmt.Sprint(corpusVersion, limit)
	for _, f := range folders {
		packages, err := os.ReadFile(filepath.Join(f, "PACKAGES"))
		if err != nil {
			return c, fmt.Errorf("%w: fill the folder with bench/debian-docs", err)
		}
		key += "\n" + string(packages)
	}
	record := filepath.Join(dir, "corpus.json")
	if old, err := os.ReadFile(record); err == nil && json.Unmarshal(old, &c) == nil && c.Key == key {
		return c, nil
	}
	c.Key, c.Documents, c.Chunks, c.Tokens, c.Bytes = key, 0, 0, 0, 0
	fmt.Fprintf(os.Stderr, "making the corpus %s\n", dir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return c, err
	}
	w := &writer{corpus: &c, limit: limit, rnd: rand.New(rand.NewPCG(5, 6))}
	if err := w.write(ctx, folders); err != nil {
		return c, fmt.Errorf("making the corpus: %w", err)
	}
	made, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	return c, os.WriteFile(record, made, 0o600)
}

// A writer writes the files of a corpus.
type writer struct {
	*corpus
	limit  int
	rnd    *rand.Rand
	gob    *gob.Encoder
	tsv    *bufio.Writer
	sample []passage // that queries are drawn from
	seen   int       // passages that could have been in the sample
}

func (w *writer) write(ctx context.Context, folders []string) error {
	documents, err := os.Create(filepath.Join(w.dir, "documents.gob"))
	if err != nil {
		return err
	}
	defer documents.Close()
	chunks, err := os.Create(filepath.Join(w.dir, "chunks.tsv"))
	if err != nil {
		return err
	}
	defer chunks.Close()
	buffer := bufio.NewWriterSize(documents, 1<<20)
	w.gob, w.tsv = gob.NewEncoder(buffer), bufio.NewWriterSize(chunks, 1<<20)
	for _, f := range folders {
		sources, err := filepath.Glob(filepath.Join(f, "usr/share/doc/*"))
		if err != nil {
			return err
		}
		for _, s := range append(sources, filepath.Join(f, "usr/share/man")) {
			if err := w.source(ctx, s); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(buffer.Flush(), documents.Close(), w.tsv.Flush(), chunks.Close()); err != nil {
		return err
	}
	return w.queries()
}

// A collector is a sink that keeps the documents.
type collector struct{ documents []*document.Document }

// Apply keeps new documents.
func (c *collector) Apply(_ context.Context, changes []document.Change) error {
	for _, change := range changes {
		c.documents = append(c.documents, change.Put)
	}
	return nil
}

// Stamps returns none: all files are read.
func (c *collector) Stamps(context.Context, string) (map[string]document.Stamp, error) {
	return nil, nil
}

// Generation returns a constant.
func (c *collector) Generation(context.Context) (string, error) { return "", nil }

// source adds the documents of a folder, with the letters and digits of its
// name as their label.
func (w *writer) source(ctx context.Context, dir string) error {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, filepath.Base(dir))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || w.Chunks >= w.limit {
		return nil
	}
	var all collector
	if _, err := ingest.New(ingest.Options{Sink: &all}).Sync(ctx, document.Source{Label: label, Path: dir}); err != nil {
		return err
	}
	slices.SortFunc(all.documents, func(a, b *document.Document) int { return strings.Compare(a.Path, b.Path) })
	for _, d := range all.documents {
		if w.Chunks+len(d.Chunks) > w.limit {
			w.limit = 0
			return nil
		}
		if err := w.gob.Encode(d); err != nil {
			return err
		}
		w.Documents++
		w.Bytes += len(d.Text)
		w.chunks(d)
	}
	return nil
}

// chunks adds the chunks of a document.
func (w *writer) chunks(d *document.Document) {
	names := joined(d.Title + " " + d.Filename)
	for _, c := range d.Chunks {
		text := d.Text[c.Offset : c.Offset+c.Length]
		tokens := names + " " + joined(c.Heading+" "+text)
		fmt.Fprintf(w.tsv, "%s\t%s\n", d.Label, tokens) // an error is reported by Flush
		w.Chunks++
		w.Tokens += strings.Count(tokens, " ") + 1
		if p := newPassage(d.Label, text); p.usable() { // each has the same chance to be in the sample
			w.seen++
			if len(w.sample) < 10*queriesPerClass {
				w.sample = append(w.sample, p)
			} else if i := w.rnd.IntN(w.seen); i < len(w.sample) {
				w.sample[i] = p
			}
		}
	}
}

// A passage is a text that queries can be drawn from.
type passage struct {
	label     string
	words     []string // without stop words
	phrases   []string // of three words
	sentences []string // of eight words
}

var (
	wordPattern     = regexp.MustCompile(`\b[a-z]{3,20}\b`)
	phrasePattern   = regexp.MustCompile(`\b[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}\b`)
	sentencePattern = regexp.MustCompile(`\b[A-Za-z]{2,20}(?: [a-z]{1,20}){7}\b`)
)

func newPassage(label, text string) passage {
	return passage{
		label:     label,
		words:     slices.DeleteFunc(wordPattern.FindAllString(text, -1), isFunctionWord),
		phrases:   phrasePattern.FindAllString(text, -1),
		sentences: sentencePattern.FindAllString(text, -1),
	}
}

func (p passage) usable() bool {
	return len(p.words) >= 20 && len(p.phrases) > 0 && len(p.sentences) > 0
}

// kinds are the classes of queries. A function returns a query without its
// class, or one without tokens if the passage has none that is suitable.
var kinds = []struct {
	name string
	draw func(rnd *rand.Rand, p passage) query
}{
	{"one word", func(rnd *rand.Rand, p passage) query { return words(rnd, p, 1, "") }},
	{"two words, AND", func(rnd *rand.Rand, p passage) query { return words(rnd, p, 2, " AND ") }},
	{"three words, AND", func(rnd *rand.Rand, p passage) query { return words(rnd, p, 3, " AND ") }},
	{"three words, OR", func(rnd *rand.Rand, p passage) query { return words(rnd, p, 3, " OR ") }},
	{"question of eight words", question},
	{"phrase of three words", func(rnd *rand.Rand, p passage) query {
		phrase := p.phrases[rnd.IntN(len(p.phrases))]
		q := query{Text: `"` + phrase + `"`, Tokens: strings.Fields(joined(phrase))}
		if len(q.Tokens) != 3 {
			return query{}
		}
		return q
	}},
	{"question with a label", func(rnd *rand.Rand, p passage) query {
		q := question(rnd, p)
		q.Label = p.label
		return q
	}},
	{"prefix of four letters", func(rnd *rand.Rand, p passage) query {
		word := p.words[rnd.IntN(len(p.words))]
		if len(word) < 5 {
			return query{}
		}
		return query{Text: word[:4] + "*", Tokens: []string{word[:4]}}
	}},
	{"fuzzy, one edit", func(rnd *rand.Rand, p passage) query {
		word := []byte(p.words[rnd.IntN(len(p.words))])
		if len(word) < 5 {
			return query{}
		}
		word[1+rnd.IntN(len(word)-1)] = byte('a' + rnd.IntN(26))
		return query{Text: string(word) + "~1", Tokens: strings.Fields(joined(string(word)))}
	}},
}

// words returns a query for n words with different tokens.
func words(rnd *rand.Rand, p passage, n int, operator string) query {
	var q query
	var list []string
	for range 20 {
		w := p.words[rnd.IntN(len(p.words))]
		if token := joined(w); len(list) < n && !slices.Contains(q.Tokens, token) {
			list, q.Tokens = append(list, w), append(q.Tokens, token)
		}
	}
	if len(list) < n {
		return query{}
	}
	q.Text = strings.Join(list, operator)
	return q
}

// question returns a query for eight words that follow each other.
func question(rnd *rand.Rand, p passage) query {
	q := query{Text: p.sentences[rnd.IntN(len(p.sentences))]}
	for w := range strings.FieldsSeq(q.Text) {
		if token := joined(w); !isFunctionWord(w) && !slices.Contains(q.Tokens, token) {
			q.Tokens = append(q.Tokens, token)
		}
	}
	return q
}

// queries writes the queries.
func (w *writer) queries() error {
	if len(w.sample) < queriesPerClass {
		return errors.New("the documents have too few sentences to draw queries from")
	}
	var all []query
	for _, k := range kinds {
		for n := 0; n < queriesPerClass; {
			if q := k.draw(w.rnd, w.sample[w.rnd.IntN(len(w.sample))]); len(q.Tokens) > 0 {
				q.Class = k.name
				all = append(all, q)
				n++
			}
		}
	}
	f, err := os.Create(filepath.Join(w.dir, "queries.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	lines := json.NewEncoder(f)
	for n := range w.classes {
		if err := lines.Encode(all[n%len(all)]); err != nil {
			return err
		}
	}
	return f.Close()
}

// joined returns the English tokens of a text, separated by blanks.
func joined(s string) string {
	var b strings.Builder
	for t := range analysis.Tokens(s, analysis.English) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

func isFunctionWord(w string) bool {
	return analysis.FunctionWord(w, []analysis.Language{analysis.English})
}
