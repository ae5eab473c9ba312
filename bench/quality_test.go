package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A collection is a test collection: documents, and queries with relevance
// judgements.
type collection struct {
	corpus
	queries []string
	grades  []map[int]int // by query: the grade of each relevant document, from 4 (best) to 1
}

// cranfield returns the Cranfield collection.
func cranfield(b *testing.B) collection {
	b.Helper()
	dir := os.Getenv("CRANFIELD")
	if dir == "" {
		b.Skip("CRANFIELD is not set: it names a folder with documents.txt, queries.txt and qrels.txt of the Cranfield collection")
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Skipf("CRANFIELD: %v", err)
		}
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	documents := read("documents.txt")
	c := collection{corpus: newCorpus(b, "cranfield", filepath.Join(workDir(b), "cranfield"), fmt.Sprint("1 ", len(documents)))}
	c.fill(b, func() error { return writeCranfield(c.source, documents) })
	for _, r := range records(read("queries.txt")) {
		c.queries = append(c.queries, strings.Join(strings.Fields(r["W"]), " "))
		c.grades = append(c.grades, map[int]int{})
	}
	for line := range strings.Lines(read("qrels.txt")) {
		var query, doc, grade int
		if n, err := fmt.Sscan(line, &query, &doc, &grade); n != 3 || err != nil || query < 1 || query > len(c.grades) {
			b.Fatalf("qrels.txt: %q: %v", line, err)
		}
		if grade >= 1 && grade <= 4 { // others mean not relevant
			c.grades[query-1][doc] = 5 - grade
		}
	}
	return c
}

// fieldPattern matches the line that begins a field of a record.
var fieldPattern = regexp.MustCompile(`(?m)^\.([ITABW])(?: (\d+))?[ \t]*$`)

// records parses records with the fields ".I number", ".T", ".A", ".B" and
// ".W".
func records(text string) (all []map[string]string) {
	at := fieldPattern.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if text[m[2]:m[3]] == "I" && m[4] >= 0 {
			all = append(all, map[string]string{"I": text[m[4]:m[5]]})
		} else if len(all) > 0 {
			all[len(all)-1][text[m[2]:m[3]]] = strings.TrimSpace(text[m[1]:end])
		}
	}
	return all
}

// writeCranfield writes each document to a file named by its number.
func writeCranfield(dir, documents string) error {
	for _, r := range records(documents) {
		title := strings.Join(strings.Fields(r["T"]), " ")
		text := strings.TrimSpace(strings.TrimPrefix(r["W"], r["T"])) // the text begins with the title
		number, err := strconv.Atoi(r["I"])
		if err != nil {
			return err
		}
		if err := writeSettled(dir, fmt.Sprintf("%04d.md", number), "# "+title+"\n\n"+text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkQuality reports how good the order of hits is: nDCG@10 (gains 4 to
// 1), MRR@10 and recall@100, as means over the queries of the Cranfield
// collection.
func BenchmarkQuality(b *testing.B) {
	c := cranfield(b)
	c.indexed(b)
	p := c.serve(b)
	name := tool(b, p, "search")
	// The sentences of the collection, and only their words.
	words := regexp.MustCompile(`[\pL\pN]+`)
	find := func(b *testing.B, query string) (paths []string, took time.Duration) {
		f, took := search(b, p, name, map[string]any{"query": query, "pageSize": 100, "includeFields": []string{"filename"}})
		for _, h := range f.Results {
			paths = append(paths, h.Filename)
		}
		return paths, took
	}
	b.Run("cranfield-as-written", func(b *testing.B) { c.judge(b, find) })
	b.Run("cranfield-words", func(b *testing.B) {
		c.judge(b, func(b *testing.B, query string) ([]string, time.Duration) {
			return find(b, strings.Join(words.FindAllString(query, -1), " "))
		})
	})
}

// judge reports the means of the measures over the queries of a collection. find
// returns the paths of the documents that a query finds, sorted by rank; only
// the first one of equal paths counts.
func (c collection) judge(b *testing.B, find func(b *testing.B, query string) (paths []string, took time.Duration)) {
	var ndcg, mrr, recall float64
	var all Times
	for b.Loop() {
		ndcg, mrr, recall = 0, 0, 0
		for i, q := range c.queries {
			paths, took := find(b, q)
			all = append(all, took)
			var hits []int
			for _, path := range paths {
				n, err := strconv.Atoi(strings.TrimSuffix(path, ".md"))
				if err != nil {
					b.Fatal(err)
				}
				if !slices.Contains(hits, n) {
					hits = append(hits, n)
				}
			}
			n, m, r := measures(hits, c.grades[i])
			ndcg, mrr, recall = ndcg+n, mrr+m, recall+r
		}
	}
	queries := float64(len(c.queries))
	all.report(b, 0.95)
	b.ReportMetric(ndcg/queries, "nDCG@10")
	b.ReportMetric(mrr/queries, "MRR@10")
	b.ReportMetric(recall/queries, "recall@100")
}

// measures returns nDCG@10, the reciprocal rank within the first 10, and
// recall@100 of hits, which are sorted by rank. Documents without a grade are
// not relevant.
func measures(hits []int, grades map[int]int) (ndcg, reciprocal, recall float64) {
	if len(grades) == 0 {
		return 0, 0, 0
	}
	var ideal []int
	for _, g := range grades {
		ideal = append(ideal, g)
	}
	slices.SortFunc(ideal, func(a, b int) int { return b - a })
	var gain, best float64
	for i, g := range ideal[:min(10, len(ideal))] {
		best += float64(g) / math.Log2(float64(i)+2)
	}
	for i, h := range hits[:min(100, len(hits))] {
		g := grades[h]
		if g == 0 {
			continue
		}
		recall++
		if i < 10 {
			gain += float64(g) / math.Log2(float64(i)+2)
			if reciprocal == 0 {
				reciprocal = 1 / float64(i+1)
			}
		}
	}
	return gain / best, reciprocal, recall / float64(len(grades))
}

func TestMeasures(t *testing.T) {
	grades := map[int]int{1: 4, 2: 2, 3: 1}
	far := make([]int, 11)
	far[10] = 1
	log3 := math.Log2(3)
	for _, c := range []struct {
		name                     string
		hits                     []int
		ndcg, reciprocal, recall float64
	}{
		{"ideal", []int{1, 2, 3}, 1, 1, 1},
		{"none", nil, 0, 0, 0},
		{"second", []int{9, 1}, 4 / log3 / (4 + 2/log3 + 0.5), 0.5, 1.0 / 3},
		{"beyond ten", far, 0, 0, 1.0 / 3},
	} {
		n, m, r := measures(c.hits, grades)
		if math.Abs(n-c.ndcg) > 1e-12 || m != c.reciprocal || math.Abs(r-c.recall) > 1e-12 {
			t.Errorf("%s: measures(%v) = %v, %v, %v, want %v, %v, %v", c.name, c.hits, n, m, r, c.ndcg, c.reciprocal, c.recall)
		}
	}
}

func TestRecords(t *testing.T) {
	got := records(".I 1\n.T\na wing\n.A\n.W\na wing\nin air .\n.I 002\n.W\nwhat .is it\n")
	want := []map[string]string{{"I": "1", "T": "a wing", "A": "", "W": "a wing\nin air ."}, {"I": "002", "W": "what .is it"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records(...) = %v, want %v", got, want)
	}
}
