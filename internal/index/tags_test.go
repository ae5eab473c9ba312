package index

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// tagged returns the sorted paths of the documents with all of some tags.
func tagged(t *testing.T, x *Index, text string, tags ...string) []string {
	t.Helper()
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Tags: tags, Num: 100})
	if err != nil {
		t.Fatalf("Search(%q) with tags %q = %v", text, tags, err)
	}
	paths := []string{}
	for _, h := range p.Hits {
		paths = append(paths, strings.TrimPrefix(h.URL, "file:///"))
	}
	slices.Sort(paths)
	return paths
}

// with returns a document of [simple] with tags.
func with(path string, tags ...string) document.Change {
	c := simple(path, 2)
	c.Put.Tags = tags
	return c
}

func TestTags(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	many := []string{"m0"}
	for len(many) < document.MaxTags {
		many = append(many, "m"+string(rune('a'+len(many)%26))+strings.Repeat("x", len(many)/26))
	}
	tests := []struct {
		name   string
		change document.Change
		tags   []string // to search for
		want   []string
	}{
		{"put", with("1", "red", "blue", "red"), []string{"blue", "red"}, []string{"1"}},
		{"another", with("2", "red"), []string{"red"}, []string{"1", "2"}},
		{"replaced without tags", with("1"), []string{"blue"}, []string{"1"}},
		{"replaced with tags", with("1", "green"), []string{"red"}, []string{"2"}},
		{"replaced with an empty list",
			document.Change{Put: func() *document.Document { d := with("1").Put; d.Tags = []string{}; return d }()},
			[]string{"green"}, []string{}},
		{"added", document.Change{Tag: &document.Tagging{ID: "id-1", Add: []string{"red", "red", "new"}}},
			[]string{"red"}, []string{"1", "2"}},
		{"removed", document.Change{Tag: &document.Tagging{ID: "id-2", Remove: []string{"red", "unknown"}}},
			[]string{"red"}, []string{"1"}},
		{"both", document.Change{Tag: &document.Tagging{ID: "id-1", Add: many, Remove: []string{"red", "new"}}},
			[]string{"m0"}, []string{"1"}},
		{"of a removed document", document.Change{Delete: &document.Ref{Label: "a", Path: "1"}}, []string{"m0"},
			[]string{}},
		{"of its successor", with("1"), []string{"m0"}, []string{}},
		{"of the label", with("1"), []string{"collection:a"}, []string{"1", "2"}},
		{"of another label", with("1"), []string{"collection:b"}, []string{}},
	}
	for _, test := range tests {
		apply(t, x, test.change)
		for _, text := range []string{"", "happy", "paragraph of happy"} {
			if got := tagged(t, x, text, test.tags...); !cmp.Equal(got, test.want) {
				t.Errorf("%s: Search(%q) with tags %q = %q, want %q", test.name, text, test.tags, got, test.want)
			}
		}
	}
	apply(t, x, document.Change{Tag: &document.Tagging{ID: "id-1", Add: many}})
	refused := []struct {
		name   string
		change document.Change
		kind   error
	}{
		{"empty", with("3", ""), errkind.Invalid},
		{"not UTF-8", with("3", "\xff"), errkind.Invalid},
		{"long", with("3", strings.Repeat("x", document.MaxTagSize+1)), errkind.Invalid},
		{"of a label", with("3", "collection:b"), errkind.Invalid},
		{"added of a label", document.Change{Tag: &document.Tagging{ID: "id-1", Add: []string{"collection:b"}}},
			errkind.Invalid},
		{"removed of a label", document.Change{Tag: &document.Tagging{ID: "id-1", Remove: []string{"collection:a"}}},
			errkind.Invalid},
		{"too many", with("3", append(many, "more")...), errkind.Invalid},
		{"too many together", document.Change{Tag: &document.Tagging{ID: "id-1", Add: []string{"more"}}},
			errkind.Invalid},
		{"under another label", document.Change{Tag: &document.Tagging{ID: "id-1", From: "b", Add: []string{"red"}}},
			errkind.Conflict},
		{"unknown document", document.Change{Tag: &document.Tagging{ID: "nosuch", Add: []string{"red"}}},
			errkind.NotFound},
		{"two changes", document.Change{Tag: &document.Tagging{ID: "id-1"},
			Delete: &document.Ref{Label: "a", Path: "1"}}, errkind.Invalid},
		{"none", document.Change{}, errkind.Invalid},
	}
	for _, test := range refused {
		if err := x.Apply(t.Context(), []document.Change{with("4"), test.change}); !errors.Is(err, test.kind) {
			t.Errorf("%s: Apply() = %v, want an error of kind %v", test.name, err, test.kind)
		}
	}
	if got, want := tagged(t, x, ""), []string{"1", "2"}; !cmp.Equal(got, want) {
		t.Errorf("after refused changes the tagged documents are %q, want %q", got, want)
	}
}

// TestMoved gives a document another label.
func TestMoved(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	same := simple("kept", 2)
	same.Put.ID, same.Put.Label = "id-same", "c"
	apply(t, x, with("kept", "red"), simple("other", 2), same)
	type row struct {
		ID, Created int64
		Label       string
	}
	read := func() (r row) {
		if err := scanRow(t, x, `SELECT id, created, label FROM docs WHERE doc_id='id-kept'`, &r.ID, &r.Created,
			&r.Label); err != nil {
			t.Fatal(err)
		}
		return r
	}
	move := func(label string) error {
		return x.Apply(t.Context(), []document.Change{{Tag: &document.Tagging{ID: "id-kept", Label: label}}})
	}
	before := read()
	if err := move("c"); !errors.Is(err, errkind.Conflict) {
		t.Errorf("moving to a label that has the path = %v, want an error of kind Conflict", err)
	}
	for _, label := range []string{"b", "b", "a", "b"} {
		if err := move(label); err != nil {
			t.Errorf("moving to %s = %v", label, err)
		}
		want := before
		want.Label = label
		if got := read(); got != want {
			t.Errorf("moved to %s, the document is %+v, want %+v", label, got, want)
		}
		for _, other := range []string{"a", "b", "c"} {
			for _, text := range []string{"", "kept", "paragraph of kept"} {
				p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Labels: []string{other},
					Tags: []string{"red"}, Num: 10})
				if n := map[bool]int{true: 1}[other == label]; err != nil || p.Total != n || len(p.Hits) != n {
					t.Errorf("moved to %s, Search(%q) in %s = %+v, %v, want %d", label, text, other, p, err, n)
				}
			}
		}
		words, err := x.Suggest(t.Context(), search.SuggestQuery{Prefix: "kept", Num: 10})
		want2 := []search.Suggestion{{Text: "kept", Labels: slices.Sorted(slices.Values([]string{label, "c"}))}}
		if err != nil || !cmp.Equal(words, want2) {
			t.Errorf("moved to %s, Suggest(kept) = %v, %v, want %v", label, words, err, want2)
		}
	}
}

// TestUserColumns checks the columns that are stored for users.
func TestUserColumns(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	type row struct{ Type, SourcePath string }
	for _, want := range []row{{"note", ""}, {"pdf", "reports/2025.pdf"}} {
		c := simple("1", 1)
		c.Put.Type, c.Put.SourcePath = want.Type, want.SourcePath
		apply(t, x, c)
		var got row
		var created, updated, modified int64
		err := raw(t, x).QueryRow(`SELECT type, source_path, created, updated, coalesce(modified, 0)
			FROM docs WHERE doc_id='id-1'`).
			Scan(&got.Type, &got.SourcePath, &created, &updated, &modified)
		if err != nil || got != want || created == 0 || updated < created || modified != 0 {
			t.Errorf("stored %+v, created %d, updated %d, modified %d, %v, want %+v and times", got, created, updated,
				modified, err, want)
		}
	}
}

// TestNumbers checks that a document's number is never used again.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	apply(t, x, simple("1", 1), simple("2", 1))
	apply(t, x, document.Change{Delete: &document.Ref{Label: "a", Path: "2"}})
	closeIt(t, x)
	x = openIn(t, dir)
	apply(t, x, simple("3", 1), simple("1", 2))
	apply(t, x, simple("2", 1))
	defer closeIt(t, x)
	got := map[string]int64{}
	for _, id := range []string{"id-1", "id-2", "id-3"} {
		r, err := x.RecordOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got[id] = r.Number
	}
	if got["id-1"] != 1 || got["id-3"] != 3 || got["id-2"] <= 3 {
		t.Errorf("documents %v, want 1 and 3 as they were and the new one above", got)
	}
}

// TestVectors checks that vectors are deleted with their chunks, and kept if the
// same document is stored again.
func TestVectors(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("1", 3), simple("2", 2))
	for _, s := range []string{`INSERT INTO models(name) VALUES('small'), ('large')`,
		`INSERT INTO vectors(chunk, model, label, vector) SELECT c.id, m.id, 'a', x'00ff' FROM chunks c, models m`} {
		execute(t, x, s)
	}
	count := func(want int) {
		t.Helper()
		var n int
		if err := scanRow(t, x, `SELECT count(*) FROM vectors`, &n); err != nil || n != want {
			t.Errorf("%d vectors, %v, want %d", n, err, want)
		}
	}
	count(10)
	apply(t, x, document.Change{Tag: &document.Tagging{ID: "id-1", Label: "b", Add: []string{"red"}}})
	count(10)
	apply(t, x, simple("2", 2))
	count(10) // the same text
	changed := simple("2", 2)
	changed.Put.Title = "Another title"
	apply(t, x, changed)
	count(6)
	apply(t, x, document.Change{Delete: &document.Ref{Label: "b", Path: "1"}})
	count(0)
}
