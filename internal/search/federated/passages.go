package federated

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Limits of what is read of documents for one search.
const (
	maxText  = 512 << 10 // bytes of one text that passages are chosen from
	maxTexts = 50        // documents whose texts are compared
	atOnce   = 8         // texts that are read at the same time
)

// texts are the beginnings of the texts of entries, each read once.
type texts struct {
	service *Service
	read    map[string]*text // by the ID of the document
}

// A text is the beginning of a document's text.
type text struct {
	body     string
	size     int64 // of the whole text, in bytes
	sections []document.Section
	sum      [sha256.Size]byte // of its letters and digits, if it is whole
}

func (s *Service) newTexts() *texts { return &texts{s, map[string]*text{}} }

// need reads the texts of entries that have not been read. Texts that cannot be read
// before ctx ends are empty.
func (t *texts) need(ctx context.Context, list []entry) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, e := range list {
		if t.read[e.ID] != nil {
			continue
		}
		x := &text{}
		t.read[e.ID] = x
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := x.load(ctx, e); err != nil {
				t.service.log.Debug("reading a text for passages", "doc_id", e.ID, "source", e.sources(), "error", err)
			}
		})
	}
	wg.Wait()
}

// load reads the text of an entry.
func (x *text) load(ctx context.Context, e entry) error {
	window, err := e.Service.ReadText(ctx, e.ID, e.labels, 0, maxText)
	if err != nil {
		return err
	}
	x.body, x.size = window.Window, max(window.Size, int64(len(window.Window)))
	if int64(len(x.body)) == x.size {
		x.sum = letters(x.body)
	}
	if o, ok := e.Service.(search.Outliner); ok {
		x.sections, err = o.Sections(ctx, e.ID, e.labels)
	}
	return err
}

// letters returns the hash of the letters and digits of a text, which two services that
// read the same document agree on. It is zero if there are none.
func letters(s string) (sum [sha256.Size]byte) {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
	if plain == "" {
		return sum
	}
	return sha256.Sum256([]byte(plain))
}

// distinct returns the entries without those that the list has before them: with
// the same URL or the same text. These are in Also of the first. Texts are compared for
// the first depth entries, and at most maxTexts.
func (t *texts) distinct(ctx context.Context, list []entry, depth int) []entry {
	var out []entry
	same := map[any]int{} // places in out, by URL, hash and letters
	for len(list) > 0 {
		if n := min(depth, maxTexts) - len(out); n > 0 {
			t.need(ctx, list[:min(n, len(list))])
		}
		e := list[0]
		list = list[1:]
		keys := t.keys(e)
		i := slices.IndexFunc(keys, func(k any) bool {
			_, ok := same[k]
			return ok
		})
		at := len(out)
		if i >= 0 {
			at = same[keys[i]]
			out[at].addAlso(e)
		} else {
			out = append(out, e)
		}
		for _, k := range keys {
			if _, ok := same[k]; !ok {
				same[k] = at
			}
		}
	}
	return out
}

// addAlso adds the path of the same document in another place, or its address if it has
// no path and the address is another one.
func (e *entry) addAlso(other entry) {
	e.Also = slices.Clone(e.Also)
	switch {
	case other.Path != "":
		e.Also = append(e.Also, other.Path)
	case other.URL != "" && other.URL != e.URL && !slices.Contains(e.Also, other.URL):
		e.Also = append(e.Also, other.URL)
	}
	e.Also = append(e.Also, other.Also...)
}

// keys returns what two entries of one document have in common.
func (t *texts) keys(e entry) (keys []any) {
	if e.URL != "" {
		keys = append(keys, strings.TrimSuffix(e.URL, "/"))
	}
	if e.TextHash != "" {
		keys = append(keys, e.TextHash)
	}
	if x := t.read[e.ID]; x != nil && x.sum != [sha256.Size]byte{} {
		keys = append(keys, x.sum)
	}
	return keys
}

// Ranking of the first hits of a merged list. Of a folder of 4,693 pages that is split
// over a folder, a Fess server, datasets and the knowledge base, 116 questions are
// answered, of the whole folder 121, and by reciprocal ranks alone 107
// (bench/notes/answers.md).
const (
	compared  = 12  // hits whose texts are compared with the question
	leastPart = 0.1 // of its score that a hit without a word of the question keeps
)

// rank scores the chunks of entries whose texts were read. near reports whether words
// that stand close together count more.
func (t *texts) rank(w *words, list []entry, near bool) (*page, []passage.Chunk) {
	p := &page{}
	for i, e := range list {
		p.add(i, e, t.read[e.ID])
	}
	return p, p.score(w, near)
}

// compare sorts the first entries of a merged list, whose texts were read, by their
// scores times those of their best chunks.
func (t *texts) compare(w *words, list, first []entry) {
	best, top := make([]float64, len(first)), 0.0
	_, chunks := t.rank(w, first, false)
	for _, c := range chunks {
		best[c.Document] = max(best[c.Document], c.Score)
		top = max(top, c.Score)
	}
	for i := range list {
		part := 0.0
		if i < len(first) && top > 0 {
			part = best[i] / top
		}
		list[i].score *= leastPart + part
	}
	slices.SortStableFunc(first, func(a, b entry) int { return cmp.Compare(b.score, a.score) })
}

// havePassages reports whether the entries of a page are of one member, which has chosen
// their passages.
func havePassages(list []entry) bool {
	return !slices.ContainsFunc(list, func(e entry) bool { return e.place != list[0].place || e.Passages == nil })
}

// choose sets the passages of the entries of a page, whose texts were read.
func (t *texts) choose(ctx context.Context, w *words, list []entry, budget int) error {
	p, chunks := t.rank(w, list, true)
	best := 0.0
	for _, e := range list {
		best = max(best, e.score)
	}
	for i, c := range chunks { // a chunk of a better document precedes
		chunks[i].Score *= math.Sqrt(list[c.Document].score / best)
	}
	slices.SortStableFunc(chunks, func(a, b passage.Chunk) int { return cmp.Compare(b.Score, a.Score) })
	chosen, err := passage.Choose(ctx, p, len(list), leading(chunks, len(list)), w.conditions, budget)
	if err != nil {
		return err
	}
	wanted := passage.Wanted(w.conditions)
	for i := range list {
		e := &list[i]
		switch {
		case chosen[i] != nil:
			e.Digest = search.Excerpt{}
		case len(e.Passages) > 0: // the member made no digest
			e.Digest = passage.Digest(e.Passages[0].Text, languageOf(*e), wanted, passage.ShortDigest)
		}
		e.Passages = chosen[i]
	}
	return nil
}

// languageOf returns the language of an entry, English if it is not known.
func languageOf(e entry) analysis.Language {
	if len(e.Langs) == 0 {
		return analysis.LanguageOf("")
	}
	return analysis.LanguageOf(e.Langs[0])
}

// A page is the chunks of some documents. It implements passage.Source.
type page struct {
	contents []passage.Content
	of       []int // document of each of contents
	titles   []string
	sections [][]document.Section
	known    [][]search.Passage // that the member chose; they know their pages
}

// add adds the chunks of a document's text.
func (p *page) add(place int, e entry, x *text) {
	p.titles, p.known = append(p.titles, e.Title), append(p.known, e.Passages)
	p.sections = append(p.sections, x.sections)
	lang := languageOf(e).String()
	for _, c := range chunk.Split(x.body, headings(x.sections), chunk.Options{}) {
		from, to := c.Offset, c.Offset+c.Length
		if passage.IsShort(x.body[from:to]) {
			from, to = max(0, from-passage.Around), min(len(x.body), to+passage.Around)
		}
		p.contents = append(p.contents, passage.Content{Offset: int64(c.Offset), Length: int64(c.Length), TextSize: x.size,
			Heading: passage.HeadingAt(x.sections, int64(c.Offset)), Lang: lang, Text: x.body[from:to], Start: int64(from)})
		p.of = append(p.of, place)
	}
}

// headings returns the places where sections begin, as headings of one level.
func headings(sections []document.Section) []document.Heading {
	out := make([]document.Heading, len(sections))
	for i, s := range sections {
		out[i] = document.Heading{Offset: s.Offset, Level: 1, Text: s.Heading}
	}
	return out
}

// Contents implements passage.Source.
func (p *page) Contents(_ context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out := make([]passage.Content, len(chunks))
	for i, c := range chunks {
		out[i] = p.contents[c.Number]
	}
	return out, nil
}

// Locate implements passage.Source.
func (p *page) Locate(_ context.Context, places []passage.Place) error {
	for _, place := range places {
		for _, k := range p.known[place.Document] {
			if k.Offset <= place.Offset && place.Offset < k.Offset+int64(len(k.Text)) {
				place.Page = k.Page
			}
		}
		if list := p.sections[place.Document]; place.Inside && list != nil {
			place.Heading = passage.HeadingAt(list, place.Offset)
		}
	}
	return nil
}

// maxCounted is how many words of a query members are asked about.
const maxCounted = 16

// words are what a query looks for, in every language that a document may be in.
type words struct {
	texts      []string // without repetitions
	conditions []passage.Condition
	tokens     map[string][]int // conditions by the text of a token
	phrases    []string         // in the form of plainText

	documents int   // of the members that count words; 0 if none does
	with      []int // of these, those that have the words, at most maxCounted
}

// newWords returns the words that count of the text of a query. The entries have the
// languages of the documents.
func newWords(text query.Text, list []entry) *words {
	languages := []analysis.Language{analysis.LanguageOf("")}
	for _, e := range list {
		for _, code := range e.Langs {
			if l := analysis.LanguageOf(code); !slices.Contains(languages, l) {
				languages = append(languages, l)
			}
		}
	}
	typed, _ := query.Divide(text.Terms())
	w := &words{tokens: map[string][]int{}}
	for _, p := range text.Phrases() {
		w.phrases = append(w.phrases, plainText(p))
	}
	for _, word := range analysis.Significant(typed, languages) {
		if slices.Contains(w.texts, word) {
			continue
		}
		c := passage.Condition{}
		for _, tokens := range analysis.Variants(word, languages, false) {
			c.Add(tokens, false)
		}
		for _, t := range c.Terms {
			if n := len(w.conditions); !slices.Contains(w.tokens[t], n) {
				w.tokens[t] = append(w.tokens[t], n)
			}
		}
		w.texts, w.conditions = append(w.texts, word), append(w.conditions, c)
	}
	return w
}

// count asks members how many of their documents have each word. Those that fail or are
// late are left out.
func (s *Service) count(ctx context.Context, parts []part, w *words) {
	f := &search.Facets{}
	for _, word := range w.texts[:min(maxCounted, len(w.texts))] {
		f.Queries = append(f.Queries, query.Quote(word))
	}
	pages, _ := each(ctx, s, parts, func(ctx context.Context, p part) (*search.Page, error) {
		return p.Service.Search(ctx, search.Query{Labels: p.labels, Facets: f})
	})
	w.with = make([]int, len(f.Queries))
	for _, p := range pages {
		if p != nil && p.Facets != nil && len(p.Facets.Queries) == len(f.Queries) {
			w.documents += p.Total
			for i, c := range p.Facets.Queries {
				w.with[i] += c.Count
			}
		}
	}
}

// weigh sets the weights of the words by their rarity: among the documents of the
// members or, of a word that none of these has, among some chunks.
func (w *words) weigh(chunks int, with []int) {
	for n := range w.conditions {
		idf := relevance.IDF(chunks, with[n])
		if n < len(w.with) && w.with[n] > 0 {
			idf = relevance.IDF(w.documents, w.with[n])
		}
		w.conditions[n].Weight = float32(idf)
	}
}

// wordBytes is the usual number of bytes from the beginning of a word to that of the
// next one.
const wordBytes = 6

// phraseWeight is what quoted words of a sentence count where they stand together, of
// what the rarest word counts.
const phraseWeight = 3

// score sets the weights of words, and returns the chunks with their scores: BM25F and,
// if near is true, the proximity of words.
func (p *page) score(w *words, near bool) []passage.Chunk {
	type counts struct {
		of     []float64  // weighted frequency of each word
		at     [][]uint32 // where each word is in the text, in steps of wordBytes
		length float64    // of the text, in bytes
	}
	all := make([]counts, len(p.contents))
	with := make([]int, len(w.conditions)) // chunks that have a word
	total := 0.0
	for i, x := range p.contents {
		c, l := &all[i], analysis.LanguageOf(x.Lang)
		c.of, c.at = make([]float64, len(w.conditions)), make([][]uint32, len(w.conditions))
		count := func(s string, weight float64) {
			for t := range analysis.TokensLike(s, l, maps.Keys(w.tokens)) {
				for _, n := range w.tokens[t.Text] {
					if c.of[n] += weight; weight == relevance.TextWeight {
						c.at[n] = append(c.at[n], uint32(t.Start/wordBytes))
					}
				}
			}
		}
		c.length = float64(len(x.Text))
		count(x.Text, relevance.TextWeight)
		count(x.Heading, relevance.HeadingWeight)
		count(p.titles[p.of[i]], relevance.TitleWeight)
		total += c.length
		for n, f := range c.of {
			if f > 0 {
				with[n]++
			}
		}
	}
	w.weigh(len(all), with)
	rarest := 0.0
	for _, c := range w.conditions {
		rarest = max(rarest, float64(c.Weight))
	}
	chunks := make([]passage.Chunk, len(all))
	for i, c := range all {
		chunks[i] = passage.Chunk{Number: i, Document: p.of[i]}
		norm := 1 - relevance.TextB + relevance.TextB*c.length*float64(len(all))/max(total, 1)
		for n, f := range c.of {
			chunks[i].Score += float64(w.conditions[n].Weight) * f / (f + relevance.K1*norm)
			if n > 0 && near {
				weight := min(w.conditions[n-1].Weight, w.conditions[n].Weight)
				chunks[i].Score += float64(relevance.Near(c.at[n-1], c.at[n], weight))
			}
		}
		if w.phrases == nil {
			continue
		}
		text := plainText(p.titles[p.of[i]] + "\n" + p.contents[i].Heading + "\n" + p.contents[i].Text)
		for _, phrase := range w.phrases {
			if strings.Contains(text, phrase) {
				chunks[i].Score += phraseWeight * rarest / (1 + relevance.K1*norm)
			}
		}
	}
	return chunks
}

// plainText returns the letters and digits of a text in lower case, with one blank for
// everything between them.
func plainText(s string) string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(analysis.Lower(s), between), " ")
}

// leading returns the best of some chunks, which are sorted, and the first chunk of each
// document without one, with the score 0.
func leading(chunks []passage.Chunk, documents int) []passage.Chunk {
	best := slices.DeleteFunc(slices.Clone(chunks[:min(len(chunks), passage.MaxChunks)]),
		func(c passage.Chunk) bool { return c.Score == 0 })
	for d := range documents {
		of := func(c passage.Chunk) bool { return c.Document == d }
		if slices.ContainsFunc(best, of) {
			continue
		}
		first := passage.Chunk{Number: -1}
		for _, c := range chunks {
			if of(c) && (first.Number < 0 || c.Number < first.Number) {
				first = passage.Chunk{Number: c.Number, Document: d}
			}
		}
		if first.Number >= 0 {
			best = append(best, first)
		}
	}
	return best
}
