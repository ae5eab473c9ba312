package bench

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// charsPerToken is how many characters of a result a token has on average
// (o200k, results over this documentation).
const charsPerToken = 3.6

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

// BenchmarkAnswers measures how many questions the first search answers, with
// default arguments, how many the search and one call that reads on at the
// first passage of the first hit, and what they cost.
func BenchmarkAnswers(b *testing.B) {
	c := debian(b).indexed(b)
	p := c.serve(b)
	searchTool, readTool := tool(b, p, "search"), tool(b, p, "read_content")
	call := func(name string, args map[string]any, to any) int {
		result, _, _ := p.call("tools/call", map[string]any{"name": name, "arguments": args})
		var r struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 {
			b.Fatalf("reading the result %.200s: %v", result, err)
		}
		if err := json.Unmarshal([]byte(r.Content[0].Text), to); err != nil {
			b.Fatalf("reading the result %.200s: %v", r.Content[0].Text, err)
		}
		return len([]rune(r.Content[0].Text))
	}
	all := questions(b)
	var one, two, first int
	var perSearch, perAnswer []int
	for b.Loop() {
		one, two, first, perSearch, perAnswer = 0, 0, 0, nil, nil
		for _, q := range all {
			var f struct{ Results []answerHit }
			n := call(searchTool, map[string]any{"query": q.Question}, &f)
			perSearch = append(perSearch, n)
			answered := false
			for i, h := range f.Results {
				answered = answered || q.answeredBy(h.text())
				if i == 0 && slices.ContainsFunc(q.Pages, func(page string) bool { return strings.Contains(h.URL, page) }) {
					first++
				}
			}
			if answered {
				one++
				two++
			} else if len(f.Results) > 0 {
				args := map[string]any{"docId": f.Results[0].DocID}
				if ps := f.Results[0].Passages; len(ps) > 0 {
					args["from"] = ps[0].Offset
				}
				var t struct{ Text string }
				n += call(readTool, args, &t)
				if q.answeredBy(t.Text) {
					two++
				}
			}
			perAnswer = append(perAnswer, n)
		}
	}
	slices.Sort(perSearch)
	slices.Sort(perAnswer)
	b.ReportMetric(float64(len(all)), "questions")
	b.ReportMetric(float64(one), "in-one-call")
	b.ReportMetric(float64(two), "in-two-calls")
	b.ReportMetric(float64(first), "right-page-first")
	b.ReportMetric(float64(median(perSearch))/charsPerToken, "p50-tokens-per-search")
	b.ReportMetric(float64(median(perAnswer))/charsPerToken, "p50-tokens-per-answer")
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
