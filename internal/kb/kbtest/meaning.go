package kbtest

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// RunMeaning runs the part of the suite about searches by meaning. open returns
// an empty base whose jobs make progress, and which computes the vectors of its
// documents with e in the background. It closes the base with t.Cleanup.
func RunMeaning(t *testing.T, open func(t *testing.T, e embed.Embedder) kb.Base) {
	t.Run("Meaning", func(t *testing.T) {
		t.Parallel()
		testMeaning(t, open(t, topics{}))
	})
}

// topics is an embedder that knows which words mean the same. Other words have
// directions of their own, of less length.
type topics struct{}

var meanings = [][]string{{"car", "automobile", "vehicle"}, {"doctor", "physician", "surgeon"}, {"boat",
	"ship", "vessel"}}

func (topics) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 64)
		for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if n := slices.IndexFunc(meanings, func(m []string) bool { return slices.Contains(m, w) }); n >= 0 {
				v[n] += 5
				continue
			}
			h := fnv.New32a()
			h.Write([]byte(w))
			v[len(meanings)+int(h.Sum32()%uint32(len(v)-len(meanings)))] += 0.5
		}
		if !embed.Normalize(v) {
			v[len(v)-1] = 1
		}
		out[i] = v
	}
	return out, ctx.Err()
}

func (topics) ID() string               { return "topics" }
func (topics) Dimension() int           { return 64 }
func (topics) MaxTokens() int           { return 0 }
func (topics) Foreign(text string) bool { return strings.ContainsAny(text, "検索") }

func testMeaning(t *testing.T, b kb.Base) {
	find := func(q kb.SearchQuery) (ids []int64, r *kb.SearchResult) {
		r = Find(t, b, q)
		for i, h := range r.Results {
			ids = append(ids, h.DocumentID)
			if h.Score < 0 || h.Score > 1 || i > 0 && h.Score > r.Results[i-1].Score {
				t.Errorf("Search(%+v): result %d has the score %g", q, i, h.Score)
			}
		}
		return ids, r
	}
	// await waits until all vectors are there.
	await := func(documents int) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			_, r := find(kb.SearchQuery{Query: "boat", VectorOnly: true})
			if r.Note == "" && r.Total == documents {
				return
			}
			if r.Note != "" && !strings.Contains(r.Note, "vectors are being computed") {
				t.Errorf("note = %q", r.Note)
			}
			if time.Now().After(end) {
				t.Fatalf("after a minute, %d of %d documents have vectors; %s", r.Total, documents, r.Note)
			}
		}
	}
	car := Note(t, b, "The automobile stands in the garage overnight.", "collection:memory")
	doctor := File(t, b, kb.File{Filename: "clinic.md", Tags: []string{"people"}},
		"A physician sees patients each morning.")
	await(2)
	for _, c := range []struct {
		q    kb.SearchQuery
		want []int64
	}{
		{kb.SearchQuery{Query: "car"}, []int64{car.ID}},
		{kb.SearchQuery{Query: "car", FTSOnly: true}, nil},
		{kb.SearchQuery{Query: "car", VectorOnly: true}, []int64{car.ID, doctor.ID}},
		{kb.SearchQuery{Query: "car", VectorOnly: true, Top: 1}, []int64{car.ID}},
		{kb.SearchQuery{Query: `"car" (`, VectorOnly: true, Top: 1}, []int64{car.ID}}, // any text
		{kb.SearchQuery{Query: "car patients"}, []int64{car.ID, doctor.ID}},
		{kb.SearchQuery{Query: "vehicle", Tags: []string{"collection:memory"}}, []int64{car.ID}},
		{kb.SearchQuery{Query: "vehicle", Tags: []string{"collection:documents"}}, nil},
		{kb.SearchQuery{Query: "vehicle", Tags: []string{"people"}, VectorOnly: true}, []int64{doctor.ID}},
		{kb.SearchQuery{Query: "surgeon", Tags: []string{"people", "collection:documents"}}, []int64{doctor.ID}},
		{kb.SearchQuery{Query: "surgeon", Tags: []string{"people", "collection:memory"}}, nil},
	} {
		got, _ := find(c.q)
		if c.q.Query == "car patients" {
			slices.Sort(got) // both are as good
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Search(%+v) (-want +got)\n%s", c.q, diff)
		}
	}
	_, err := b.Search(t.Context(), kb.SearchQuery{Query: "検索", VectorOnly: true, Top: 1})
	refused(t, "vector_only in a language that the model does not know", err, errkind.Unsupported)

	text := "The ship is in the harbour."
	if _, err := b.UpdateNote(t.Context(), car.ID, kb.NoteChange{Text: &text}); err != nil {
		t.Fatal(err)
	}
	if got, _ := find(kb.SearchQuery{Query: "car"}); got != nil {
		t.Errorf("the old text is found by meaning in %v", got)
	}
	await(2)
	if got, _ := find(kb.SearchQuery{Query: "vessel"}); !slices.Equal(got, []int64{car.ID}) {
		t.Errorf("the new text is found by meaning in %v, want %d", got, car.ID)
	}
	if err := b.Delete(t.Context(), doctor.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := find(kb.SearchQuery{Query: "doctor", VectorOnly: true}); !slices.Equal(got, []int64{car.ID}) {
		t.Errorf("after a document was deleted, %v are found, want %d", got, car.ID)
	}

	// A word that a document has says exactly what is wanted. One that no document
	// has finds what is close in meaning.
	vessel := Note(t, b, "A vessel needs fuel.")
	await(2)
	for query, want := range map[string][]int64{"ship": {car.ID}, "vessel": {vessel.ID}, "boat": {car.ID, vessel.ID},
		"ship harbour": {car.ID}, "vessel harbour": {car.ID, vessel.ID}} {
		got, _ := find(kb.SearchQuery{Query: query})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v are found, want %v", query, got, want)
		}
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Model["name"] != "topics" {
		t.Errorf("Status() = %+v, %v, want the model topics", s, err)
	}
}
