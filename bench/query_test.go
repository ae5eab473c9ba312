package bench

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index"
	kquery "github.com/knowhow-mcp/knowhow/internal/query"
	ksearch "github.com/knowhow-mcp/knowhow/internal/search"
)

// queriesPerClass is the number of queries in a class.
const queriesPerClass = 100

// A class is a kind of query.
type class struct {
	name    string
	queries []query
}

// A query is one search, both as arguments of the tool and as a query of the
// index.
type query struct {
	text  string
	start int
	sort  bool // newest first
}

var (
	wordPattern   = regexp.MustCompile(`\b[a-z]{3,20}\b`)
	phrasePattern = regexp.MustCompile(`\b[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}\b`)
)

// draw returns queries made of words of the texts in an index, the same ones
// each time. Words are chosen by their position in the texts, so that common
// words occur more often.
func draw(b *testing.B, x *index.Index, label string) []class {
	b.Helper()
	rnd := rand.New(rand.NewPCG(5, 6))
	windows := texts(b, x, rnd)
	word := func(w []string) string { return w[rnd.IntN(len(w))] }
	common := commonWords(windows)
	makers := []struct {
		name string
		make func(text string, words []string) string
	}{
		{"one-word", func(_ string, w []string) string { return word(w) }},
		{"two-words", func(_ string, w []string) string { return word(w) + " " + word(w) }},
		{"three-words", func(_ string, w []string) string { return word(w) + " " + word(w) + " " + word(w) }},
		{"phrase", func(t string, _ []string) string {
			if all := phrasePattern.FindAllString(t, -1); len(all) > 0 {
				return `"` + word(all) + `"`
			}
			return ""
		}},
		{"or-of-common", func(_ string, _ []string) string { return word(common) + " OR " + word(common) + " OR " + word(common) }},
		{"prefix", func(_ string, w []string) string {
			if s := word(w); len(s) >= 4 {
				return s[:4] + "*"
			}
			return ""
		}},
	}
	var classes []class
	for _, m := range makers {
		c := class{name: m.name}
		for i := 0; len(c.queries) < queriesPerClass; i++ {
			text := windows[i%len(windows)]
			if q := m.make(text, wordPattern.FindAllString(text, -1)); q != "" {
				c.queries = append(c.queries, query{text: q})
			}
		}
		classes = append(classes, c)
	}
	list := class{name: "label-listing"}
	for range queriesPerClass {
		list.queries = append(list.queries, query{text: "label:" + label, start: rnd.IntN(1000), sort: true})
	}
	return append(classes, list)
}

// texts returns windows on texts of an index that have enough words.
func texts(b *testing.B, x *index.Index, rnd *rand.Rand) []string {
	b.Helper()
	stats, err := x.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var windows []string
	for try := 0; len(windows) < 3*queriesPerClass; try++ {
		if try > 100*queriesPerClass {
			b.Fatal("the corpus has too few words to draw queries from")
		}
		page, err := x.Search(b.Context(), ksearch.Query{Start: rnd.IntN(min(stats.Documents, 9000)), Num: 1})
		if err != nil {
			b.Fatal(err)
		}
		text, err := x.ReadText(b.Context(), page.Hits[0].ID, nil, rnd.Int64N(20_000), 4096)
		if err != nil {
			b.Fatal(err)
		}
		if len(wordPattern.FindAllString(text.Window, -1)) >= 50 && phrasePattern.MatchString(text.Window) {
			windows = append(windows, text.Window)
		}
	}
	return windows
}

// commonWords returns the 50 words of four or more letters that are in the most
// texts.
func commonWords(windows []string) []string {
	in := map[string]int{}
	for _, w := range windows {
		seen := map[string]bool{}
		for _, s := range wordPattern.FindAllString(w, -1) {
			if len(s) >= 4 && !seen[s] {
				seen[s] = true
				in[s]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(cmp.Compare(in[b], in[a]), strings.Compare(a, b))
	})
	return all[:min(50, len(all))]
}

// BenchmarkQuery measures searches with 20 hits, through MCP over pipes and in
// the same process.
func BenchmarkQuery(b *testing.B) {
	b.Run("generated", func(b *testing.B) { generated(b).queries(b) })
	b.Run("debian", func(b *testing.B) { debian(b).queries(b) })
}

func (c corpus) queries(b *testing.B) {
	c.indexed(b)
	x := c.open(b)
	classes := draw(b, x, c.label)
	p := c.serve(b)
	name := tool(b, p, "search")
	ask := func(q query) (int, time.Duration) {
		args := map[string]any{"query": q.text, "start": q.start, "pageSize": 20}
		if q.sort {
			args["sort"] = "timestamp.desc"
		}
		f, took := search(b, p, name, args)
		return f.Total, took
	}
	within := func(q query) (int, time.Duration) {
		sq := ksearch.Query{Text: kquery.MustParse(q.text), Labels: []string{c.label}, Start: q.start, Num: 20}
		if q.sort {
			sq.Sort = []ksearch.SortKey{{Field: "timestamp", Desc: true}}
		}
		began := time.Now()
		page, err := x.Search(b.Context(), sq)
		took := time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		return page.Total, took
	}
	for _, cl := range classes {
		b.Run(cl.name+"/mcp", func(b *testing.B) { cl.measure(b, ask) })
		b.Run(cl.name+"/inside", func(b *testing.B) { cl.measure(b, within) })
	}
}

// measure runs the queries of a class one after the other. Before that it runs
// the first tenth once, to warm up.
func (c class) measure(b *testing.B, ask func(query) (total int, took time.Duration)) {
	for _, q := range c.queries[:queriesPerClass/10] {
		ask(q)
	}
	var all Times
	var totals int
	for b.Loop() {
		total, took := ask(c.queries[len(all)%len(c.queries)])
		all, totals = append(all, took), totals+total
	}
	all.report(b, 0.95)
	b.ReportMetric(float64(totals)/float64(len(all)), "mean-hits")
}
