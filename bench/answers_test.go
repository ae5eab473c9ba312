package bench

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// questionLines are the questions, one JSON object a line.
//
//go:embed testdata/questions.jsonl
var questionLines []byte

// moreLines are more questions, on other pages.
//
//go:embed testdata/questions-more.jsonl
var moreLines []byte

// A question is about Debian's documentation.
type question struct {
	Question string
	Kind     string   // plain, paraphrase, option, code, keywords or typo
	Facts    []string // texts that an answer contains, all of them
	Also     []string // texts of which each is an answer by itself
	Pages    []string // parts of the URLs of the right pages
}

func questions(t testing.TB) []question {
	t.Helper()
	var list []question
	lines := bufio.NewScanner(bytes.NewReader(slices.Concat(questionLines, moreLines)))
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		list = append(list, q)
	}
	return list
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
	quotes = strings.NewReplacer("“", `"`, "”", `"`, "’", "'", "`", "", "*", "", `\`, "")
)

// plainText returns a text without differences of markup and white space.
func plainText(s string) string {
	return strings.ToLower(blanks.ReplaceAllString(quotes.Replace(s), " "))
}

// An answerReply has the members of a search result that the benchmark reads.
type answerReply struct {
	text  string   // all of it
	hits  []string // texts of the hits, without markup
	first string   // path of the first hit, "" if there is none

	// readOn makes the second call, which reads the first hit where the search
	// found it. It returns all text and the text without markup.
	readOn func() (all, text string)
}

// measureAnswers asks all questions and reports how many the search answers,
// how many the search and reading on in the first hit, and what they cost. A
// question is answered if one hit contains the facts.
func measureAnswers(b *testing.B, search func(q question) answerReply) {
	b.Helper()
	all, firstQuestions := questions(b), bytes.Count(questionLines, []byte("\n"))
	var one, two, oneOfFirst, first int
	var perSearch, perAnswer []string
	for b.Loop() {
		one, two, oneOfFirst, first, perSearch, perAnswer = 0, 0, 0, 0, nil, nil
		for i, q := range all {
			r := search(q)
			text := r.text
			perSearch = append(perSearch, text)
			if slices.ContainsFunc(r.hits, q.answeredBy) {
				one++
				two++
				if i < firstQuestions {
					oneOfFirst++
				}
			} else if r.first != "" {
				more, clean := r.readOn()
				text += more
				if q.answeredBy(clean) {
					two++
				}
			}
			if r.first != "" && slices.ContainsFunc(q.Pages, func(page string) bool { return strings.Contains(pathWords(r.first), pathWords(page)) }) {
				first++
			}
			perAnswer = append(perAnswer, text)
		}
	}
	b.ReportMetric(0, "ns/op") // the loop also contains work that is not measured
	b.ReportMetric(float64(oneOfFirst), fmt.Sprintf("in-one-call-of-%d-answers", firstQuestions))
	b.ReportMetric(float64(one), fmt.Sprintf("in-one-call-of-%d-answers", len(all)))
	b.ReportMetric(float64(two), fmt.Sprintf("in-two-calls-of-%d-answers", len(all)))
	b.ReportMetric(float64(first), "right-page-first-questions")
	b.ReportMetric(medianTokens(b, perSearch), "p50-per-search-tokens")
	b.ReportMetric(medianTokens(b, perAnswer), "p50-per-answer-tokens")
}

// pathWords returns a path in which all signs except slashes are hyphens, as in
// the paths that qmd shows.
func pathWords(path string) string { return pathSigns.ReplaceAllString(path, "-") }

var pathSigns = regexp.MustCompile(`[^\pL\pN/]+`)

// charsPerToken is how many characters of a result a token has on average
// (o200k, results over this documentation).
const charsPerToken = 3.75

// medianTokens returns the median of the number of tokens of the texts. It is
// an estimate if bench/answers-peers has not installed a tokenizer.
func medianTokens(b *testing.B, texts []string) float64 {
	b.Helper()
	if dir := answersPeers(b); dir != "" {
		counts := tokens(b, dir, texts)
		slices.Sort(counts)
		return float64(median(counts))
	}
	var counts []int
	for _, text := range texts {
		counts = append(counts, utf8.RuneCountInString(text))
	}
	slices.Sort(counts)
	return math.Round(float64(median(counts)) / charsPerToken)
}

// An answerHit is a hit with its passages.
type answerHit struct {
	DocID    string `json:"doc_id"`
	URL      string
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
// arguments, and what that costs: with this program, with grep and with qmd.
func BenchmarkAnswers(b *testing.B) {
	c := debianPages(b)
	b.Run("knowhow", func(b *testing.B) { c.indexed(b).answers(b) })
	b.Run("grep", func(b *testing.B) { measureAnswers(b, grepPages(b, c.source).search) })
	for _, form := range []struct {
		name  string
		words bool // without the function words
		args  []string
	}{{"qmd", false, nil}, {"qmd-words", true, nil}, {"qmd-words-json", true, []string{"--format", "json"}}} {
		b.Run(form.name, func(b *testing.B) {
			p := openQMD(b, c)
			measureAnswers(b, func(q question) answerReply {
				query := q.Question
				if form.words {
					query = strings.Join(contentWords(query), " ")
				}
				return p.search(query, form.args...)
			})
		})
	}
}

// answers measures the answers of this program.
func (c corpus) answers(b *testing.B) {
	p := c.serve(b)
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
	measureAnswers(b, func(q question) answerReply {
		var f struct{ Results []answerHit }
		r := answerReply{text: call(searchTool, map[string]any{"query": q.Question}, &f)}
		for _, h := range f.Results {
			r.hits = append(r.hits, h.text())
		}
		if len(f.Results) == 0 {
			return r
		}
		r.first = f.Results[0].URL
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
	})
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
	for _, q := range questions(t) {
		if q.Question == "" || q.Kind == "" || len(q.Facts) == 0 || len(q.Pages) == 0 {
			t.Errorf("question %+v is not complete", q)
		}
	}
}
