package index_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// chunks searches for chunks and returns the names of their documents with the
// numbers of the chunks.
func chunks(t testing.TB, x *index.Index, q search.ChunkQuery) ([]string, *search.ChunkPage) {
	t.Helper()
	if q.Top == 0 {
		q.Top = 10
	}
	p, err := x.SearchChunks(t.Context(), q)
	if err != nil {
		t.Fatalf("SearchChunks(%+v) = %v", q, err)
	}
	found := []string{}
	for i, h := range p.Hits {
		if h.Score < 0 || h.Score > 1 || i > 0 && h.Score > p.Hits[i-1].Score {
			t.Errorf("SearchChunks(%+v): hit %d has the score %g", q, i, h.Score)
		}
		found = append(found, fmt.Sprintf("%s/%d", strings.TrimSuffix(h.Path, ".md"), h.Chunk))
	}
	return found, p
}

// TestChunksByMeaning checks what chunks are found by words, by meaning and by
// both.
func TestChunksByMeaning(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	check := func(q search.ChunkQuery, total int, want ...string) {
		t.Helper()
		got, p := chunks(t, x, q)
		if diff := cmp.Diff(want, got, cmp.Transformer("list", func(l []string) []string {
			return append([]string{}, l...)
		})); diff != "" || p.Total != total {
			t.Errorf("SearchChunks(%+v) finds %d documents, want %d (-want +got)\n%s", q, p.Total, total, diff)
		}
	}
	check(search.ChunkQuery{Text: query.MustParse("car"), Ranking: search.ByMeaning}, 0) // no vectors yet
	check(search.ChunkQuery{Text: query.MustParse("car")}, 0)
	embedAll(t, x, e)

	check(search.ChunkQuery{Text: query.MustParse("car"), Ranking: search.ByWords}, 0)
	check(search.ChunkQuery{Text: query.MustParse("car")}, 1, "garage/0")
	check(search.ChunkQuery{Text: query.MustParse("car"), Labels: []string{"b"}}, 0)
	check(search.ChunkQuery{Text: query.MustParse("car"), Tags: []string{"missing"}}, 0)
	check(search.ChunkQuery{Text: query.MustParse("repairs car")}, 3, "garage/0", "harbour/1", "tools/0")
	check(search.ChunkQuery{Text: query.MustParse("repairs car"), Ranking: search.ByWords}, 0) // no document has both
	// only the document that has the word
	check(search.ChunkQuery{Text: query.MustParse("automobile")}, 1, "garage/0")
	// an operator: as written
	check(search.ChunkQuery{Text: query.MustParse(`"car"`)}, 0)
	check(search.ChunkQuery{Text: query.MustParse("ship"), Ranking: search.ByMeaning, Top: 1}, 4, "harbour/0")
	check(search.ChunkQuery{Text: query.MustParse("doctor"), Ranking: search.ByMeaning, Labels: []string{"a"},
		Top: 1}, 4, "clinic/0")
	check(search.ChunkQuery{Text: query.MustParse("doctor"), Ranking: search.ByMeaning, Labels: []string{"b"}}, 0)
	if _, p := chunks(t, x, search.ChunkQuery{Text: query.MustParse("ship"),
		Ranking: search.ByMeaning}); len(p.Hits) != 6 {
		t.Errorf("by meaning, %d chunks are found, want all 6", len(p.Hits))
	}

	tag := document.Change{Tag: &document.Tagging{ID: garage()[1].ID, Add: []string{"people"}}}
	if err := x.Apply(t.Context(), []document.Change{tag}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []search.Ranking{search.ByBoth, search.ByMeaning} {
		check(search.ChunkQuery{Text: query.MustParse("surgeon"), Tags: []string{"people"}, Ranking: r}, 1, "clinic/0")
		check(search.ChunkQuery{Text: query.MustParse("surgeon"), Tags: []string{"others"}, Ranking: r}, 0)
	}
	put(t, x, doc("a", "clinic.md", "Clinic", "The building is closed."))
	if got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("surgeon")}); len(got) > 0 {
		t.Errorf("after the document was replaced, %q are found", got)
	}
}

// TestShortQueriesByMeaning checks that a document with the words of a short query
// is not joined by others that are close in meaning.
func TestShortQueriesByMeaning(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, doc("a", "one.md", "One", "The automobile is beside much else that is here."),
		doc("a", "two.md", "Two", "A motorcar."), doc("a", "three.md", "Three", "A vehicle."))
	embedAll(t, x, e)
	if got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("automobile")}); !cmp.Equal(got,
		[]string{"one/0"}) {
		t.Errorf("SearchChunks() = %q, want the document with the word", got)
	}
	if got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("car")}); len(got) != 3 {
		t.Errorf("SearchChunks() = %q, want what is close in meaning", got)
	}
}

// TestChunksWithoutVector checks that a chunk without a vector is found by its
// words beside others that have one.
func TestChunksWithoutVector(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	embedAll(t, x, e)
	put(t, x, doc("a", "new.md", "New", "The zeppelin is new."))
	if got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("zeppelin car")}); !cmp.Equal(got,
		[]string{"new/0", "garage/0"}) {
		t.Errorf("SearchChunks() = %q, want the new chunk first and that about cars", got)
	}
}

// TestManyChunksByMeaning checks that one document does not displace the others.
func TestManyChunksByMeaning(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, doc("a", "fleet.md", "Fleet", strings.Repeat("An automobile.\n\n", 12)),
		doc("a", "one.md", "One", "Some other vehicle is here, with much else beside it."))
	embedAll(t, x, e)
	for _, r := range []search.Ranking{search.ByBoth, search.ByMeaning} {
		got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("motorcar"), Ranking: r, Top: 4})
		if len(got) != 4 || got[3] != "one/0" {
			t.Errorf("ranking %d: %q, want 3 of fleet and one/0", r, got)
		}
	}
}

// TestChunksWithoutModel checks the errors of searches by meaning only, and that
// other searches use words when the model fails.
func TestChunksWithoutModel(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, garage()...)
	if _, err := x.SearchChunks(t.Context(), search.ChunkQuery{Text: query.MustParse("car"),
		Ranking: search.ByMeaning, Top: 1}); !errors.Is(err, errkind.Unsupported) {
		t.Errorf("without a model: %v, want Unsupported", err)
	}
	e := &topics{id: "topics"}
	x = openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	embedAll(t, x, e)
	if _, err := x.SearchChunks(t.Context(), search.ChunkQuery{Text: query.MustParse("検索"), Ranking: search.ByMeaning,
		Top: 1}); !errors.Is(err, errkind.Unsupported) {
		t.Errorf("in a foreign language: %v, want Unsupported", err)
	}
	e.fail.Store(true)
	if _, err := x.SearchChunks(t.Context(), search.ChunkQuery{Text: query.MustParse("boat"),
		Ranking: search.ByMeaning, Top: 1}); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("with a model that fails: %v, want Unavailable", err)
	}
	if got, _ := chunks(t, x, search.ChunkQuery{Text: query.MustParse("vessel")}); !cmp.Equal(got,
		[]string{"harbour/0"}) {
		t.Errorf("with a model that fails: %q, want harbour/0 by its words", got)
	}
}
