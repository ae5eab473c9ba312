package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkVectors measures how soon vectors help: it indexes the documentation of the
// first sets of questions into a new data folder, and asks all these questions at once and
// after 1, 3 and 10 minutes, while the vectors are computed. Vectors that searches compute
// are kept, so that the questions help each other a little.
func BenchmarkVectors(b *testing.B) {
	c := firstDocs.corpus(b)
	c.data += "-vectors"
	b.Setenv("KNOWHOW_EMBEDDER", "builtin")
	for b.Loop() {
		if err := os.RemoveAll(c.data); err != nil {
			b.Fatal(err)
		}
		p := start(b, "serve", "--transport", "stdio", "--no-watch", "--data", c.data, "--label", c.label, c.source)
		p.initialize()
		p.await(`^` + c.label + `: \d+ document`)
		search, began := p.answers(b), time.Now()
		for _, minutes := range []int{0, 1, 3, 10} {
			time.Sleep(time.Until(began.Add(time.Duration(minutes) * time.Minute)))
			reportPages(b, fmt.Sprintf("after-%d-min", minutes), search)
		}
		if err := p.stop(); !ended(err) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // most of the time is waiting
}

// reportPages asks the questions, and reports for how many the right page is first, among
// five and among eight, how many one search answers, and the median time of a search.
func reportPages(b *testing.B, when string, search func(question) answerReply) {
	b.Helper()
	var among [9]int // by n, how often the right page is among the first n
	answered := 0
	var took Times
	for _, s := range answerSets {
		if s.docs.label != firstDocs.label {
			continue
		}
		for _, q := range s.questions(b) {
			began := time.Now()
			r := search(q)
			took = append(took, time.Since(began))
			if at := slices.IndexFunc(r.pages, q.onRightPage); at >= 0 {
				for n := at + 1; n < len(among); n++ {
					among[n]++
				}
			}
			if slices.ContainsFunc(r.hits, q.answeredBy) {
				answered++
			}
		}
	}
	b.ReportMetric(float64(among[1]), when+"-first-questions")
	b.ReportMetric(float64(among[5]), when+"-of-5-questions")
	b.ReportMetric(float64(among[8]), when+"-of-8-questions")
	b.ReportMetric(float64(answered), when+"-answered-questions")
	b.ReportMetric(ms(took.at(0.5)), when+"-p50-ms")
}
