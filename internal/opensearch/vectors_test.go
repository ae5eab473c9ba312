package opensearch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A recorder is an embedder that notes the last word of each document. Texts are about
// cars or about something else.
type recorder struct {
	id   string
	away bool // it has no vectors of documents

	words []string
}

func (r *recorder) Embed(_ context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	if r.away && kind == embed.Document {
		return nil, errkind.Unavailable
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if words := strings.Fields(text); kind == embed.Document {
			r.words = append(r.words, words[len(words)-1])
		}
		out[i] = []float32{0, 1}
		if strings.Contains(text, "car") || strings.Contains(text, "automobile") {
			out[i] = []float32{1, 0}
		}
	}
	return out, nil
}

func (r *recorder) ID() string   { return r.id }
func (*recorder) Dimension() int { return 2 }
func (*recorder) MaxTokens() int { return 0 }

// parts returns a document with chunks whose last words are the ID and a number.
func parts(id string, chunks int) document.Document {
	d := document.Document{ID: id, Label: "l", Path: id, Title: id, Hash: id}
	for i := range chunks {
		begin := len(d.Text)
		d.Text += fmt.Sprintf("The walrus %s%d\n\n", id, i)
		d.Chunks = append(d.Chunks, document.Chunk{Offset: begin, Length: len(d.Text) - begin})
	}
	return d
}

// TestVectorStages checks that documents get the vectors of their first chunks before
// others, and that no process computes one again, also with several models.
func TestVectorStages(t *testing.T) {
	a := address(t)
	s := open(t, a)
	if !s.HasVectors() {
		t.Skip("needs an OpenSearch server with the k-NN plugin")
	}
	put := func(docs ...document.Document) {
		t.Helper()
		var changes []document.Change
		for i := range docs {
			changes = append(changes, document.Change{Put: &docs[i]})
		}
		if err := s.Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	put(parts("a", 18), parts("b", 1), parts("c", 5))
	want := []string{"a0", "b0", "c0"}
	stage := func(id string, from, to int) {
		for i := from; i < to; i++ {
			want = append(want, fmt.Sprint(id, i))
		}
	}
	stage("a", 1, 4)
	stage("c", 1, 4)
	stage("a", 4, 16)
	stage("c", 4, 5)
	stage("a", 16, 18)
	first, second := &recorder{id: "first"}, &recorder{id: "second"}
	next := func(s *opensearch.Store, e embed.Embedder, n int) bool {
		t.Helper()
		done, err := s.EmbedNext(t.Context(), e, nil, n)
		if err != nil {
			t.Fatalf("EmbedNext() = %v", err)
		}
		return done > 0
	}
	for next(s, first, 2) {
		got, total, err := s.Embedded(t.Context(), first, nil)
		if err != nil || got != len(first.words) || total != 24 {
			t.Errorf("Embedded() = %d of %d, %v, want %d of 24", got, total, err, len(first.words))
		}
		s = open(t, a) // a pass that begins again
	}
	for next(s, second, 3) {
		s = open(t, a)
	}
	check := func(want []string) {
		t.Helper()
		for _, e := range []*recorder{first, second} {
			if diff := cmp.Diff(want, e.words); diff != "" {
				t.Errorf("the vectors of %s were computed in another order (-want +got):\n%s", e.id, diff)
			}
			if got, total, err := s.Embedded(t.Context(), e, nil); got != total || err != nil {
				t.Errorf("Embedded() of %s = %d of %d, %v, want all", e.id, got, total, err)
			}
			e.words = nil
		}
	}
	check(want)

	// Chunks of a changed document keep their vectors if their texts are the same. Two
	// processes take turns, with a model each.
	changed := parts("a", 30)
	changed.Text, changed.Hash = strings.Replace(changed.Text, "a16", "new", 1), "new"
	put(changed)
	want = []string{"new"}
	stage("a", 18, 30)
	other := open(t, a)
	for more := true; more; {
		more = next(s, first, 2)
		more = next(other, second, 3) || more
	}
	check(want)
}

// TestComputedVectors checks that a search computes the vectors that its best documents
// lack, and makes no other request if they lack none.
func TestComputedVectors(t *testing.T) {
	a := address(t)
	s := open(t, a)
	if !s.HasVectors() {
		t.Skip("needs an OpenSearch server with the k-NN plugin")
	}
	near := parts("near", 1)
	near.Text += "Somebody repairs the automobile."
	near.Chunks = append(near.Chunks, document.Chunk{Offset: near.Chunks[0].Length,
		Length: len(near.Text) - near.Chunks[0].Length})
	var changes []document.Change
	for _, d := range []document.Document{near, {ID: "words", Label: "l", Path: "words", Title: "words",
		Text: "Somebody repairs broken engines quickly."}, parts("other", 1)} {
		changes = append(changes, document.Change{Put: &d})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	e := &recorder{id: "recorder"}
	through, requests := counted(t, a)
	with := func(limit time.Duration) *opensearch.Store {
		t.Helper()
		return openStore(t, opensearch.Options{Address: through, Embedder: e, EmbedTime: time.Minute, ComputeTime: limit})
	}
	find := func(s *opensearch.Store, when, first string, computed ...string) {
		t.Helper()
		e.words = nil
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("somebody repairs a car quickly"), Num: 8})
		if err != nil || p.Total != 2 || p.Hits[0].ID != first {
			t.Errorf("%s: Search() = %+v, %v, want two documents, %s first", when, p, err, first)
		}
		if diff := cmp.Diff(computed, e.words); diff != "" {
			t.Errorf("%s: embedded documents (-want +got):\n%s", when, diff)
		}
	}
	next := func(n int) {
		t.Helper()
		if done, err := s.EmbedNext(t.Context(), e, nil, n); done != n || err != nil {
			t.Fatalf("EmbedNext() = %d, %v, want %d", done, err, n)
		}
	}
	find(with(0), "without time", "words")
	e.away = true
	find(with(time.Minute), "without a model", "words")
	e.away = false
	kept := with(time.Minute)
	find(kept, "with time", "near", "quickly.", "automobile.")
	find(kept, "again", "near")
	next(3)
	find(with(time.Minute), "with the vectors of first chunks", "near", "automobile.")
	next(1)
	made := map[time.Duration]int32{}
	for _, limit := range []time.Duration{0, time.Minute} {
		s := with(limit)
		find(s, "with all vectors", "near")
		requests.Store(0)
		find(s, "with all vectors", "near")
		made[limit] = requests.Load()
	}
	if made[0] != made[time.Minute] {
		t.Errorf("with all vectors, searches that may compute some make %d requests, others %d", made[time.Minute], made[0])
	}
}

// TestPassagesByMeaning checks that a passage without a word of the question is shown if
// its meaning is near, also among many that have words.
func TestPassagesByMeaning(t *testing.T) {
	a := address(t)
	if !open(t, a).HasVectors() {
		t.Skip("needs an OpenSearch server with the k-NN plugin")
	}
	e := &recorder{id: "recorder"}
	s := openStore(t, opensearch.Options{Address: a, Embedder: e, EmbedTime: time.Minute})
	d := document.Document{ID: "long", Label: "l", Path: "long", Title: "long", Hash: "long"}
	for i := range 40 {
		text := fmt.Sprintf("The walrus number %d repairs something quickly, says the %d. report of somebody.\n\n", i, i)
		if i == 30 {
			text = "An automobile stands in the yard behind the house of the zeppelin's captain all day.\n\n"
		}
		d.Chunks = append(d.Chunks, document.Chunk{Offset: len(d.Text), Length: len(text)})
		d.Text += text
	}
	if err := s.Apply(t.Context(), []document.Change{{Put: &d}}); err != nil {
		t.Fatal(err)
	}
	for more := 1; more > 0; {
		var err error
		if more, err = s.EmbedNext(t.Context(), e, nil, 20); err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("somebody repairs a car quickly"), Num: 8,
		Passages: 2000})
	if err != nil || len(p.Hits) != 1 {
		t.Fatalf("Search() = %+v, %v, want one document", p, err)
	}
	var passages strings.Builder
	for _, x := range p.Hits[0].Passages {
		passages.WriteString(x.Text)
	}
	for _, want := range []string{"An automobile stands", "repairs something quickly"} {
		if !strings.Contains(passages.String(), want) {
			t.Errorf("the passages do not contain %q:\n%s", want, &passages)
		}
	}
}
