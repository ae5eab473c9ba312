package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func TestApplyReplaces(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, doc("a", "one.txt", "First title", "some zebras run"))
	put(t, x, doc("a", "one.txt", "Second title", "some walruses swim"))
	for text, want := range map[string]int{"zebras": 0, "walruses": 1, "first": 0, "second": 1, "": 1} {
		if p := page(t, x, search.Query{Text: query.MustParse(text)}); p.Total != want {
			t.Errorf("Search(%q).Total = %d, want %d", text, p.Total, want)
		}
	}
	list, err := x.Suggest(t.Context(), search.SuggestQuery{Prefix: "zebra", Num: 5})
	if err != nil || len(list) != 0 {
		t.Errorf("Suggest(zebra) = %v, %v, want none", list, err)
	}
	if err := x.Apply(t.Context(), []document.Change{{Delete: &document.Ref{Label: "a", Path: "one.txt"}},
		{Delete: &document.Ref{Label: "a", Path: "no"}}}); err != nil {
		t.Fatalf("Apply(delete) = %v", err)
	}
	if p := page(t, x, search.Query{Text: query.MustParse("walruses")}); p.Total != 0 {
		t.Errorf("after the deletion Total = %d, want 0", p.Total)
	}
	stats, err := x.Stats(t.Context())
	if err != nil || stats.Documents != 0 || stats.Chunks != 0 || stats.TextBytes != 0 {
		t.Errorf("Stats() = %+v, %v, want nothing", stats, err)
	}
}

func TestApplyTwiceInOneBatch(t *testing.T) {
	x := open(t, t.TempDir())
	first, second := doc("a", "f", "T", "alpha one\n\nalpha two"), doc("a", "f", "T", "beta")
	changes := append(puts(first, second), document.Change{Delete: &document.Ref{Label: "a", Path: "f"}})
	changes = append(changes, puts(first, second)...)
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
	if got, want := []int{page(t, x, search.Query{Text: query.MustParse("alpha")}).Total,
		page(t, x, search.Query{Text: query.MustParse("beta")}).Total}, []int{0, 1}; !cmp.Equal(got, want) {
		t.Errorf("documents with alpha and beta = %v, want %v", got, want)
	}
}

func TestApplyRefuses(t *testing.T) {
	good := doc("a", "good", "Good", "good text")
	with := func(change func(*document.Document)) document.Change {
		d := doc("a", "bad", "Bad", "bad text")
		change(&d)
		return document.Change{Put: &d}
	}
	tests := []struct {
		name   string
		change document.Change
		want   error
	}{
		{"neither", document.Change{}, errkind.Invalid},
		{"both", document.Change{Put: &good, Delete: &document.Ref{Label: "a", Path: "x"}}, errkind.Invalid},
		{"no id", with(func(d *document.Document) { d.ID = "" }), errkind.Invalid},
		{"no label", with(func(d *document.Document) { d.Label = "" }), errkind.Invalid},
		{"no path", with(func(d *document.Document) { d.Path = "" }), errkind.Invalid},
		{"not UTF-8", with(func(d *document.Document) { d.Text = "\xff"; d.Chunks = nil }), errkind.Invalid},
		{"chunk beyond", with(func(d *document.Document) { d.Chunks = []document.Chunk{{Offset: 5, Length: 4}} }),
			errkind.Invalid},
		{"chunk before", with(func(d *document.Document) { d.Chunks = []document.Chunk{{Offset: -1, Length: 1}} }),
			errkind.Invalid},
		{"id of another", with(func(d *document.Document) { d.ID = good.ID }), errkind.Conflict},
	}
	for _, test := range tests {
		x := open(t, t.TempDir())
		err := x.Apply(t.Context(), append(puts(good), test.change))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: Apply() = %v, want an error of kind %v", test.name, err, test.want)
		}
		if p := page(t, x, search.Query{}); p.Total != 0 {
			t.Errorf("%s: the index has %d documents, want none of the batch", test.name, p.Total)
		}
	}
}

func TestStamps(t *testing.T) {
	x := open(t, t.TempDir())
	zero := doc("a", "zero", "Zero", "")
	zero.Stamp, zero.Modified = document.Stamp{}, time.Time{}
	one := doc("a", "dir/one", "One", "text")
	put(t, x, zero, one, doc("b", "other", "Other", "text"))
	got, err := x.Stamps(t.Context(), "a")
	if err != nil || len(got) != 2 || !got["zero"].Equal(document.Stamp{}) || !got["dir/one"].Equal(one.Stamp) {
		t.Errorf("Stamps(a) = %v, %v, want those of zero and dir/one", got, err)
	}
	h, err := x.Find(t.Context(), zero.ID, nil)
	if err != nil {
		t.Fatalf("Find(zero) = %v", err)
	}
	if !h.Timestamp.IsZero() || !h.Modified.IsZero() {
		t.Errorf("a document without a time has the times %v and %v, want none", h.Timestamp, h.Modified)
	}
}

// TestApplyAtRandom compares an index after many changes with one to which only
// the final documents were applied, and with the texts.
func TestApplyAtRandom(t *testing.T) {
	vocabulary := strings.Fields("walrus zebra budget running policies 検索結果 設定値 naïve x86 alpha beta gamma")
	r := rand.New(rand.NewPCG(3, 4))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(vocabulary[r.IntN(len(vocabulary))] + []string{" ", " ", "\n\n"}[r.IntN(3)])
		}
		return b.String()
	}
	x, final := open(t, t.TempDir()), map[string]document.Document{}
	for range 120 {
		var batch []document.Change
		for range 1 + r.IntN(4) {
			label, path := fmt.Sprint("l", r.IntN(3)), fmt.Sprint(r.IntN(12))
			if r.IntN(4) == 0 {
				batch = append(batch, document.Change{Delete: &document.Ref{Label: label, Path: path}})
				delete(final, label+"/"+path)
				continue
			}
			d := doc(label, path, words(2), words(r.IntN(12)))
			batch = append(batch, document.Change{Put: &d})
			final[label+"/"+path] = d
		}
		if err := x.Apply(t.Context(), batch); err != nil {
			t.Fatalf("Apply() = %v", err)
		}
	}
	fresh := open(t, t.TempDir())
	for _, d := range final {
		put(t, fresh, d)
	}
	for _, word := range vocabulary {
		want := []string{}
		for _, d := range final {
			if slices.Contains(strings.Fields(d.Title+" "+d.Text), word) {
				want = append(want, d.Path)
			}
		}
		got := find(t, x, search.Query{Text: query.MustParse(word)})
		slices.Sort(got)
		slices.Sort(want)
		if !cmp.Equal(got, want) {
			t.Errorf("Search(%q): (-want +got)\n%s", word, cmp.Diff(want, got))
		}
		q := search.SuggestQuery{Prefix: string([]rune(word)[:1]), Num: 100}
		a, err := x.Suggest(t.Context(), q)
		b, err2 := fresh.Suggest(t.Context(), q)
		if err != nil || err2 != nil || !cmp.Equal(a, b) {
			t.Errorf("Suggest(%q): %v %v (-fresh +changed)\n%s", q.Prefix, err, err2, cmp.Diff(b, a))
		}
	}
}

func TestSources(t *testing.T) {
	x := open(t, t.TempDir())
	docs, notes := document.Source{Label: "docs", Path: "/srv/docs"}, document.Source{Label: "notes",
		Path: "/srv/notes"}
	described := docs
	described.Description = "How the program is used"
	notes.Description = "Notes of the team"
	ruled := docs
	ruled.Rules = document.Rules{Include: []string{"*.md", "a,b/"}, Exclude: []string{"!x\"y"}, NoIgnore: true}
	if err := x.AddSource(t.Context(), ruled); err != nil {
		t.Fatalf("AddSource(%v) = %v", ruled, err)
	}
	if got, err := x.Sources(t.Context()); err != nil || !cmp.Equal(got, []document.Source{ruled}) {
		t.Errorf("Sources() = %v, %v", got, err)
	}
	if left, err := x.LeftOut(t.Context(), "docs"); err != nil || !cmp.Equal(left, index.LeftOut{}) {
		t.Errorf("LeftOut() = %v, %v, want nothing", left, err)
	}
	wantLeft := index.LeftOut{Counts: map[string]int{"hidden": 2},
		Paths: []index.LeftOutPath{{Path: ".a", Reason: "hidden"}, {Path: "b", Reason: "too slow", Message: "m"}}}
	for _, label := range []string{"docs", "unknown"} {
		if err := x.SetLeftOut(t.Context(), label, wantLeft); err != nil {
			t.Errorf("SetLeftOut(%s) = %v", label, err)
		}
	}
	if left, err := x.LeftOut(t.Context(), "docs"); err != nil || !cmp.Equal(left, wantLeft) {
		t.Errorf("LeftOut() = %v, %v, want %v", left, err, wantLeft)
	}
	// an empty description keeps the earlier one; empty rules replace
	for _, s := range []document.Source{notes, docs, described, docs} {
		if err := x.AddSource(t.Context(), s); err != nil {
			t.Fatalf("AddSource(%v) = %v", s, err)
		}
	}
	for _, s := range []document.Source{{Label: "docs", Path: "/elsewhere"}, {Label: "more", Path: "/srv/docs"}} {
		if err := x.AddSource(t.Context(), s); !errors.Is(err, errkind.Conflict) {
			t.Errorf("AddSource(%v) = %v, want an error of kind Conflict", s, err)
		}
	}
	var many []document.Document
	for i := range 130 {
		many = append(many, doc("docs", fmt.Sprint(i), "T", "one\n\ntwo\n\nthree"))
	}
	put(t, x, many...)
	put(t, x, doc("orphan", "o", "T", "one"), doc("notes", "n", "T", "one"))
	if got, err := x.Sources(t.Context()); err != nil || !cmp.Equal(got, []document.Source{described, notes}) {
		t.Errorf("Sources() = %v, %v", got, err)
	}
	labels, err := x.Labels(t.Context())
	if want := []search.Label{{Name: "docs", Value: "docs"}, {Name: "notes", Value: "notes"},
		{Name: "orphan", Value: "orphan"}}; err != nil || !cmp.Equal(labels, want) {
		t.Errorf("Labels() = %v, %v, want %v", labels, err, want)
	}
	for _, label := range []string{"docs", "orphan"} {
		if err := x.RemoveSource(t.Context(), label); err != nil {
			t.Errorf("RemoveSource(%s) = %v", label, err)
		}
		if err := x.RemoveSource(t.Context(), label); !errors.Is(err, errkind.NotFound) {
			t.Errorf("RemoveSource(%s) again = %v, want an error of kind NotFound", label, err)
		}
	}
	if got := find(t, x, search.Query{Text: query.MustParse("one")}); !cmp.Equal(got, []string{"n"}) {
		t.Errorf("after the removal, Search(one) = %v, want n", got)
	}
}

// TestUsersDocuments checks that what users wrote under the label of a source
// stays when the source is removed.
func TestUsersDocuments(t *testing.T) {
	x := open(t, t.TempDir())
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: "/srv/docs"}); err != nil {
		t.Fatalf("AddSource() = %v", err)
	}
	note := doc("docs", ".notes/1", "Note", "one note")
	note.FromSource = false
	file := doc("docs", "a.txt", "File", "one file")
	put(t, x, note, file)
	stamps, err := x.Stamps(t.Context(), "docs")
	if err != nil || len(stamps) != 1 || stamps["a.txt"] != file.Stamp {
		t.Errorf("Stamps() = %v, %v, want that of the file alone", stamps, err)
	}
	for _, test := range []struct {
		id   string
		want error
	}{{file.ID, errkind.Conflict}, {note.ID, nil}} {
		for _, label := range []string{"more", "docs"} {
			err := x.Apply(t.Context(), []document.Change{{Tag: &document.Tagging{ID: test.id, Label: label,
				Add: []string{"red"}}}})
			if want := map[bool]error{true: test.want}[label == "more"]; !errors.Is(err, want) {
				t.Errorf("giving %s the label %s = %v, want %v", test.id, label, err, want)
			}
		}
	}
	if err := x.RemoveSource(t.Context(), "docs"); err != nil {
		t.Errorf("RemoveSource() = %v", err)
	}
	if got := find(t, x, search.Query{Text: query.MustParse("one")}); !cmp.Equal(got, []string{".notes/1"}) {
		t.Errorf("after the source was removed Search(one) = %v, want the note", got)
	}
	if labels, err := x.Labels(t.Context()); err != nil || !cmp.Equal(labels,
		[]search.Label{{Name: "docs", Value: "docs"}}) {
		t.Errorf("Labels() = %v, %v, want docs", labels, err)
	}
	if err := x.RemoveSource(t.Context(), "docs"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("RemoveSource() again = %v, want an error of kind NotFound", err)
	}
}
