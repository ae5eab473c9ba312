package opensearch_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
)

// A recorder is an embedder that notes the last word of each text.
type recorder struct {
	id string

	mu    sync.Mutex
	words []string
}

func (r *recorder) Embed(_ context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if kind == embed.Document {
			words := strings.Fields(text)
			r.words = append(r.words, words[len(words)-1])
		}
		out[i] = []float32{1, 0}
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
