package bench

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// An answerSet is a file of questions about a corpus.
type answerSet struct {
	name string
	file string // in testdata, one JSON object a line
	docs answerDocs

	language analysis.Language // of the questions; English by default

	// A large set is asked only with this program and OLD_BIN, and has a row of its
	// own for the paraphrases.
	large bool
}

// An answerDocs is documentation that bench/debian-docs downloads.
type answerDocs struct {
	label    string
	variable string   // of the environment, which names the folder
	endings  []string // of the file names, in addition to all manual pages
}

var (
	firstDocs    = answerDocs{"debian-pages", "DEBIAN_DOCS", []string{".html"}}
	secondDocs   = answerDocs{"second-pages", "DEBIAN_DOCS_SECOND", []string{".html", ".txt", ".md", ".rst", ".adoc"}}
	languageDocs = answerDocs{"language-pages", "DEBIAN_DOCS_LANGUAGES", secondDocs.endings}

	administrationDocs = answerDocs{"administration-pages", "DEBIAN_DOCS_ADMINISTRATION", secondDocs.endings}
	programmingDocs    = answerDocs{"programming-pages", "DEBIAN_DOCS_PROGRAMMING", append(secondDocs.endings, ".htm")}
)

var answerSets = []answerSet{
	{name: "first", file: "questions.jsonl", docs: firstDocs},
	{name: "more", file: "questions-more.jsonl", docs: firstDocs},
	{name: "held-out", file: "questions-held-out.jsonl", docs: firstDocs},
	{name: "second", file: "questions-second.jsonl", docs: secondDocs},
	{name: "german", file: "questions-de.jsonl", docs: languageDocs, language: analysis.LanguageOf("de")},
	{name: "french", file: "questions-fr.jsonl", docs: languageDocs, language: analysis.LanguageOf("fr")},
	{name: "japanese", file: "questions-ja.jsonl", docs: languageDocs, language: analysis.LanguageOf("ja")},
	{name: "administration", file: "questions-administration.jsonl.gz", docs: administrationDocs, large: true},
	{name: "programming", file: "questions-programming.jsonl.gz", docs: programmingDocs, large: true},
}

//go:embed testdata/questions* testdata/pages*
var answerFiles embed.FS

// answerFile returns the content of a file in testdata. It decompresses those
// whose names end in .gz.
func answerFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := answerFiles.ReadFile("testdata/" + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var r io.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(r)
		}
	}
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return data
}

var questionKinds = []string{"plain", "paraphrase", "option", "code", "keywords", "typo"}

// A question is about the documentation of a set.
type question struct {
	Question string
	Kind     string   // one of questionKinds
	Facts    []string // texts that an answer contains, all of them
	Also     []string // texts of which each is an answer by itself
	Pages    []string // parts of the paths of the right pages

	language analysis.Language
}

// questions returns the questions of the set.
func (s answerSet) questions(t testing.TB) []question {
	t.Helper()
	var list []question
	for line := range bytes.Lines(answerFile(t, s.file)) {
		q := question{language: s.language}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, q)
	}
	return list
}

// onRightPage reports whether a path is that of a right page.
func (q question) onRightPage(path string) bool {
	return slices.ContainsFunc(q.Pages, func(page string) bool { return strings.Contains(pathWords(path), pathWords(page)) })
}

// answeredBy reports whether a text answers the question.
func (q question) answeredBy(text string) bool {
	text = plainText(text)
	for _, also := range q.Also {
		if strings.Contains(text, plainText(also)) {
			return true
		}
	}
	for _, fact := range q.Facts {
		if !strings.Contains(text, plainText(fact)) {
			return false
		}
	}
	return true
}

var (
	blanks = regexp.MustCompile(`\s+`)
	// Japanese has no spaces; those of a text are ends of lines.
	japaneseBlanks = regexp.MustCompile(` *([\p{Han}\p{Hiragana}\p{Katakana}ー、。]) *`)
	quotes         = strings.NewReplacer("“", `"`, "”", `"`, "’", "'", "`", "", "*", "", `\`, "")
)

// plainText returns a text without differences of markup and white space.
func plainText(s string) string {
	s = blanks.ReplaceAllString(quotes.Replace(s), " ")
	return strings.ToLower(japaneseBlanks.ReplaceAllString(s, "$1"))
}

// An answerReply has the members of a search result that the benchmark reads.
type answerReply struct {
	text  string   // all of it
	hits  []string // texts of the hits, without markup
	pages []string // paths of the hits

	// readOn makes the second call, which reads the first hit where the search
	// found it. It returns all text and the text without markup.
	readOn func() (all, text string)
}

// answerHeader is the head of the table of the answers.
const answerHeader = `
| set | search | questions | in one call | in two | right page first | of five | of eight | tokens of a search | of an answer | p50 ms |
|---|---|---|---|---|---|---|---|---|---|---|
`

// measure asks all questions and prints a row of the table, or two for a large set.
func (s answerSet) measure(b *testing.B, name string, search func(q question) answerReply) {
	b.Helper()
	all := s.questions(b)
	for b.Loop() {
		if !s.large {
			measureRow(b, s.name, name, all, search)
			continue
		}
		var paraphrases, others []question
		for _, q := range all {
			if q.Kind == "paraphrase" {
				paraphrases = append(paraphrases, q)
			} else {
				others = append(others, q)
			}
		}
		measureRow(b, s.name+", paraphrases", name, paraphrases, search)
		measureRow(b, s.name+", others", name, others, search)
	}
	b.ReportMetric(0, "ns/op") // the loop also contains work that is not measured
}

// measureRow asks questions and prints a row of the table: how many the search
// answers, how many the search and reading on in the first hit, where the right
// page is, and what they cost. A question is answered if one hit contains the
// facts.
func measureRow(b *testing.B, set, name string, questions []question, search func(q question) answerReply) {
	b.Helper()
	var one, two int
	var first [9]int // by n, how often the right page is among the first n
	var perSearch, perAnswer []string
	var took Times
	for _, q := range questions {
		began := time.Now()
		r := search(q)
		took = append(took, time.Since(began))
		text := r.text
		perSearch = append(perSearch, text)
		at := slices.IndexFunc(r.pages, q.onRightPage)
		if slices.ContainsFunc(r.hits, q.answeredBy) {
			one++
			two++
		} else {
			b.Logf("not answered, right page %d of %d: %s", at+1, len(r.pages), q.Question)
			if len(r.pages) > 0 {
				more, clean := r.readOn()
				text += more
				if q.answeredBy(clean) {
					two++
				}
			}
		}
		perAnswer = append(perAnswer, text)
		if at >= 0 {
			for n := at + 1; n < len(first); n++ {
				first[n]++
			}
		}
	}
	fmt.Printf("\n| %s | %s | %d | %d | %d | %d | %d | %d | %.0f | %.0f | %.3g |\n", set, name, len(questions), one, two,
		first[1], first[5], first[8], medianTokens(b, perSearch), medianTokens(b, perAnswer), ms(took.at(0.5)))
}

// pathWords returns a path in which all signs except slashes are hyphens, as in
// the paths that qmd shows.
func pathWords(path string) string { return pathSigns.ReplaceAllString(path, "-") }

var pathSigns = regexp.MustCompile(`[^\pL\pN/]+`)

// charsPerToken is how many characters of a result a token has on average, and
// cjkPerToken how many of scripts without blanks (o200k, results over this
// documentation).
const (
	charsPerToken = 3.75
	cjkPerToken   = 1.1
)

// medianTokens returns the median of the number of tokens of the texts. It is
// an estimate if bench/answers-peers has not installed a tokenizer.
func medianTokens(b *testing.B, texts []string) float64 {
	b.Helper()
	if dir := answersPeers(b); dir != "" {
		counts := tokens(b, dir, texts)
		slices.Sort(counts)
		return float64(median(counts))
	}
	var counts []float64
	for _, text := range texts {
		count := 0.0
		for _, r := range text {
			if analysis.IsCJK(r) {
				count += 1 / cjkPerToken
			} else {
				count += 1 / charsPerToken
			}
		}
		counts = append(counts, count)
	}
	slices.Sort(counts)
	return median(counts)
}

// An answerHit is a hit with its passages.
type answerHit struct {
	DocID    string `json:"doc_id"`
	Path     string
	Digest   string
	Passages []struct {
		Offset        int
		Heading, Text string
	}
}

func (h answerHit) text() string {
	parts := []string{h.Digest}
	for _, p := range h.Passages {
		parts = append(parts, p.Heading, p.Text)
	}
	return strings.Join(parts, " … ")
}

// BenchmarkAnswers measures how many questions a search answers, with default
// arguments, and what that costs: with this program and with OLD_BIN, and for sets
// that are not large with grep and with qmd. It prints a table.
func BenchmarkAnswers(b *testing.B) {
	fmt.Print(answerHeader)
	programs := map[string]string{"knowhow": program(b), "before": os.Getenv("OLD_BIN")}
	for _, s := range answerSets {
		for _, name := range []string{"knowhow", "before"} {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				if programs[name] == "" {
					b.Skip("OLD_BIN is not set")
				}
				c := s.docs.corpus(b)
				c.program = programs[name]
				if name != "knowhow" {
					c.data += "-" + name
				}
				s.measure(b, name, c.indexed(b).answers(b))
			})
		}
		if s.large {
			continue
		}
		b.Run(s.name+"/several kinds", func(b *testing.B) {
			c := s.docs.corpus(b)
			c.program = programs["knowhow"]
			s.measure(b, "several kinds", c.severalKinds(b))
		})
		b.Run(s.name+"/grep", func(b *testing.B) { s.measure(b, "grep", grepPages(b, s.docs.corpus(b).source).search) })
		for _, form := range []struct {
			name  string
			words bool // without the function words
			args  []string
		}{{"qmd", false, nil}, {"qmd words", true, nil}, {"qmd words json", true, []string{"--format", "json"}}} {
			b.Run(s.name+"/"+form.name, func(b *testing.B) {
				p := openQMD(b, s.docs.corpus(b))
				s.measure(b, form.name, func(q question) answerReply {
					query := q.Question
					if form.words {
						query = strings.Join(contentWords(q), " ")
					}
					return p.search(query, form.args...)
				})
			})
		}
	}
}

// answers returns a function that searches the corpus with this program.
func (c corpus) answers(b *testing.B) func(question) answerReply { return c.serve(b).answers(b) }

// answers returns a function that searches with a running program.
func (p *process) answers(b *testing.B) func(question) answerReply {
	b.Helper()
	searchTool, readTool := tool(b, p, "search"), tool(b, p, "read_content")
	call := func(name string, args map[string]any, to any) string {
		result, _, _ := p.call("tools/call", map[string]any{"name": name, "arguments": args})
		var r struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 {
			b.Fatalf("reading the result %.200s: %v", result, err)
		}
		if err := json.Unmarshal([]byte(r.Content[0].Text), to); err != nil {
			b.Fatalf("reading the result %.200s: %v", r.Content[0].Text, err)
		}
		return r.Content[0].Text
	}
	return func(q question) answerReply {
		var f struct{ Results []answerHit }
		r := answerReply{text: call(searchTool, map[string]any{"query": q.Question}, &f)}
		for _, h := range f.Results {
			r.hits = append(r.hits, h.text())
			r.pages = append(r.pages, h.Path)
		}
		r.readOn = func() (all, text string) {
			args := map[string]any{"docId": f.Results[0].DocID}
			if ps := f.Results[0].Passages; len(ps) > 0 {
				args["from"] = ps[0].Offset
			}
			var t struct{ Text string }
			all = call(readTool, args, &t)
			return all, t.Text
		}
		return r
	}
}

func TestAnsweredBy(t *testing.T) {
	q := question{Facts: []string{"Replace the tip", "--amend"}, Also: []string{`say "no"`}}
	for text, want := range map[string]bool{
		"git commit --amend\n  replaces": false, "`--amend` Replace\n the  tip": true, "Say “no”": true, "": false,
	} {
		if got := q.answeredBy(text); got != want {
			t.Errorf("answeredBy(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestQuestions checks that the questions of all sets are complete and different, and
// that those of the large sets are about pages that bench/debian-docs keeps.
func TestQuestions(t *testing.T) {
	type key struct {
		language analysis.Language
		question string
	}
	asked := map[key]bool{}
	for _, s := range answerSets {
		var kept []string
		if s.large {
			kept = strings.Split(string(answerFile(t, "pages-"+s.name+".txt.gz")), "\n")
		}
		for _, q := range s.questions(t) {
			if q.Question == "" || !slices.Contains(questionKinds, q.Kind) || len(q.Facts) == 0 || len(q.Pages) == 0 {
				t.Errorf("%s: question %+v is not complete", s.name, q)
			}
			k := key{s.language, q.Question}
			if asked[k] {
				t.Errorf("%s: question %q is there twice", s.name, q.Question)
			}
			asked[k] = true
			for _, page := range q.Pages {
				if s.large && !slices.Contains(kept, "usr/"+page) {
					t.Errorf("%s: page %s is not in the list", s.name, page)
				}
			}
		}
	}
}

// TestAnswersInDocs checks that a right page of each question contains the facts,
// for the corpora that are there.
func TestAnswersInDocs(t *testing.T) {
	for _, s := range answerSets {
		t.Run(s.name, func(t *testing.T) {
			all, c := s.questions(t), s.docs.corpus(t)
			found := make([]bool, len(all))
			err := eachText(t.Context(), c.source, func(name string, d *extract.Text) error {
				text := d.Title + " " + d.Body
				for i, q := range all {
					found[i] = found[i] || q.onRightPage(name) && q.answeredBy(text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range all {
				if !found[i] {
					t.Errorf("no right page answers %q", q.Question)
				}
			}
		})
	}
}
