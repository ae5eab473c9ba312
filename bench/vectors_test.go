package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkVectors measures how soon vectors help: it indexes the documentation of the
// first sets of questions into a new data folder, and asks all these questions at once,
// after 1, 3 and 10 minutes of processor time, while the vectors are computed, and when
// all are there. The background rests a fifth of the time, so on one idle core, a minute of
// processor time takes 75 seconds. Vectors that searches compute are kept, so that the
// questions help each other a little.
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
		search, began, idle := p.answers(b), time.Now(), p.used()
		for _, minutes := range []float64{0, 1, 3, 10, 60} {
			ready, total := c.vectors(b)
			for ; p.used()-idle < minutes*60 && !(ready > 0 && ready == total); ready, total = c.vectors(b) {
				if time.Since(began) > maxWait-time.Minute {
					b.Fatalf("only %d of %d vectors are ready: the machine is too busy", ready, total)
				}
				time.Sleep(5 * time.Second)
			}
			when := fmt.Sprintf("after-%.1f-min", (p.used()-idle)/60)
			b.ReportMetric(time.Since(began).Minutes(), when+"-elapsed-min")
			b.ReportMetric(float64(ready), when+"-vectors")
			reportPages(b, when, search)
			if minutes > 0 && ready == total {
				break
			}
		}
		if err := p.stop(); !ended(err) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // most of the time is waiting
}

// vectors returns how many passages of the corpus have a vector, and how many there are.
func (c corpus) vectors(b *testing.B) (ready, total int) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), program(b), "status", "--data", c.data, "--json").Output()
	var status struct{ Vectors struct{ Done, Total int } } // without vectors, nothing
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	if err != nil {
		b.Fatalf("asking for the state of the vectors: %v", err)
	}
	return status.Vectors.Done, status.Vectors.Total
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
