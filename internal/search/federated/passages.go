package federated

import (
	"cmp"
	"context"
	"crypto/sha256"
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

// need reads the texts of entries that have not been read. Texts that cannot be read in
// time are empty.
func (t *texts) need(ctx context.Context, list []entry) {
	ctx, cancel := context.WithTimeout(ctx, t.service.timeout)
	defer cancel()
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

// distinct returns the entries without those that other members list before them: with
// the same URL or the same text. These are in Also of the first. Texts are compared for
// the first depth entries, and at most maxTexts.
func (t *texts) distinct(ctx context.Context, list []entry, depth int) []entry {
	several := slices.ContainsFunc(list, func(e entry) bool { return e.place != list[0].place })
	if !several {
		return list
	}
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
			at, ok := same[k]
			return ok && out[at].place != e.place
		})
		at := len(out)
		if i >= 0 {
			at = same[keys[i]]
			first := &out[at].Hit
			first.Also = append(slices.Clone(first.Also), append([]string{cmp.Or(e.Path, e.URL)}, e.Also...)...)
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

// choose sets the passages of the entries of a page.
func (t *texts) choose(ctx context.Context, q search.Query, list []entry) error {
	if !slices.ContainsFunc(list, func(e entry) bool { return e.place != list[0].place || e.Passages == nil }) {
		return nil // the member has chosen
	}
	t.need(ctx, slices.DeleteFunc(slices.Clone(list), entry.hasPassages))
	p := &page{}
	for i, e := range list {
		p.add(i, e, t.read[e.ID])
	}
	words := newWords(q.Text, list)
	chunks := p.rank(words)
	chosen, err := passage.Choose(ctx, p, len(list), chunks, words.conditions, q.Passages)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Passages = chosen[i]; chosen[i] != nil {
			list[i].Digest = search.Excerpt{}
		}
	}
	return nil
}

// hasPassages reports whether the member has chosen passages that are long enough to
// choose from.
func (e entry) hasPassages() bool {
	return len(e.Passages) > 0 &&
		!slices.ContainsFunc(e.Passages, func(p search.Passage) bool { return passage.IsShort(p.Text) })
}

// A page is the chunks of the documents of a page of results. It implements
// passage.Source.
type page struct {
	contents []passage.Content
	of       []int // document of each of contents
	pages    []string
	titles   []string
	sections [][]document.Section // of each document
	known    [][]search.Passage   // of each document, that its member chose
}

// add adds the chunks of a document: what its member chose, or those of its text.
func (p *page) add(place int, e entry, x *text) {
	p.titles = append(p.titles, e.Title)
	p.sections, p.known = append(p.sections, nil), append(p.known, nil)
	lang := ""
	if len(e.Langs) > 0 {
		lang = e.Langs[0]
	}
	if e.hasPassages() {
		p.known[place] = e.Passages
		for _, c := range e.Passages {
			p.contents = append(p.contents, passage.Content{Offset: c.Offset, Length: int64(len(c.Text)),
				TextSize: c.Offset + int64(len(c.Text)) + 1, Heading: c.Heading, Lang: lang, Text: c.Text, Start: c.Offset})
			p.of = append(p.of, place)
		}
		return
	}
	if x == nil || x.body == "" {
		return
	}
	p.sections[place] = x.sections
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

// words are what a query looks for, in every language that a document may be in.
type words struct {
	conditions []passage.Condition
	tokens     map[string][]int // conditions by the text of a token
}

// newWords returns the words of a query that count.
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
	seen := map[string]bool{}
	for _, word := range analysis.Significant(typed, languages) {
		if seen[word] {
			continue
		}
		seen[word] = true
		c := passage.Condition{}
		for _, tokens := range analysis.Variants(word, languages, false) {
			c.Add(tokens, false)
		}
		for _, t := range c.Terms {
			if n := len(w.conditions); !slices.Contains(w.tokens[t], n) {
				w.tokens[t] = append(w.tokens[t], n)
			}
		}
		w.conditions = append(w.conditions, c)
	}
	return w
}

// rank sets the weights of words by their rarity among the chunks, and returns the best
// chunks for [passage.Choose].
func (p *page) rank(w *words) []passage.Chunk {
	type counts struct {
		of     []float64 // weighted frequency of each word
		length float64
	}
	all := make([]counts, len(p.contents))
	with := make([]int, len(w.conditions)) // chunks that have a word
	total := 0.0
	count := func(c *counts, s string, l analysis.Language, weight float64) {
		for t := range analysis.Tokens(s, l) {
			c.length++
			for _, n := range w.tokens[t.Text] {
				c.of[n] += weight
			}
		}
	}
	for i, x := range p.contents {
		c, l := &all[i], analysis.LanguageOf(x.Lang)
		c.of = make([]float64, len(w.conditions))
		count(c, x.Text, l, relevance.TextWeight)
		total += c.length
		length := c.length
		count(c, x.Heading, l, relevance.HeadingWeight)
		count(c, p.titles[p.of[i]], l, relevance.TitleWeight)
		c.length = length
		for n, f := range c.of {
			if f > 0 {
				with[n]++
			}
		}
	}
	for n := range w.conditions {
		w.conditions[n].Weight = float32(relevance.IDF(len(all), with[n]))
	}
	chunks := make([]passage.Chunk, len(all))
	for i, c := range all {
		chunks[i] = passage.Chunk{Number: i, Document: p.of[i]}
		for n, f := range c.of {
			norm := 1 - relevance.TextB + relevance.TextB*c.length*float64(len(all))/max(total, 1)
			chunks[i].Score += float64(w.conditions[n].Weight) * f / (f + relevance.K1*norm)
		}
	}
	return best(chunks, len(p.titles))
}

// best returns the best chunks, best first, and the first chunk of each document without
// one, with the score 0.
func best(chunks []passage.Chunk, documents int) []passage.Chunk {
	first := make([]int, documents)
	for i := range first {
		first[i] = -1
	}
	for i, c := range chunks {
		if first[c.Document] < 0 {
			first[c.Document] = i
		}
	}
	firsts := slices.Clone(chunks)
	chunks = slices.DeleteFunc(chunks, func(c passage.Chunk) bool { return c.Score == 0 })
	slices.SortStableFunc(chunks, func(a, b passage.Chunk) int { return cmp.Compare(b.Score, a.Score) })
	chunks = chunks[:min(len(chunks), passage.MaxChunks)]
	for d, i := range first {
		if i >= 0 && !slices.ContainsFunc(chunks, func(c passage.Chunk) bool { return c.Document == d }) {
			firsts[i].Score = 0
			chunks = append(chunks, firsts[i])
		}
	}
	return chunks
}
