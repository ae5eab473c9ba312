package index_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A topics is an embedder that knows what some words mean: each group of words
// is one direction. Other words are directions of their own, of less length.
type topics struct {
	id    string
	wide  bool // vectors have more values
	fail  atomic.Bool
	texts atomic.Int64 // that were embedded
}

// meanings are the groups of words with one meaning.
var meanings = [][]string{
	{"car", "automobile", "vehicle", "motorcar"},
	{"doctor", "physician", "surgeon"},
	{"boat", "ship", "vessel"},
}

func (e *topics) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	if e.fail.Load() {
		return nil, fmt.Errorf("the model is away: %w", errkind.Unavailable)
	}
	e.texts.Add(int64(len(texts)))
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
			v[len(meanings)+int(h.Sum32())%(len(v)-len(meanings))] += 0.5
		}
		if !embed.Normalize(v) {
			v[len(v)-1] = 1
		}
		if e.wide {
			v = append(v, 0)
		}
		out[i] = v
	}
	return out, ctx.Err()
}

func (e *topics) ID() string               { return e.id }
func (e *topics) Dimension() int           { return 64 }
func (e *topics) MaxTokens() int           { return 0 }
func (e *topics) Foreign(text string) bool { return strings.ContainsAny(text, "検索語") }

// openWith opens an index with an embedder until the test ends.
func openWith(t testing.TB, dir string, e embed.Embedder) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: e})
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return x
}

// embedAll computes all vectors that are missing, and returns how many.
func embedAll(t testing.TB, x *index.Index, e embed.Embedder, labels ...string) (total int) {
	t.Helper()
	for {
		n, err := x.EmbedNext(t.Context(), e, labels, 3)
		if err != nil {
			t.Fatalf("EmbedNext() = %v", err)
		}
		if n == 0 {
			return total
		}
		total += n
	}
}

// garage is a few documents about cars and others.
func garage() []document.Document {
	return []document.Document{
		doc("a", "garage.md", "Garage",
			"The automobile stands in the garage overnight.\n\nKeys hang beside the entrance."),
		doc("a", "clinic.md", "Clinic", "A physician sees patients each morning."),
		doc("a", "harbour.md", "Harbour", "Every vessel leaves at noon.\n\nThe harbour master repairs broken lamps."),
		doc("a", "tools.md", "Tools", "Someone who repairs broken things needs tools."),
	}
}

const carQuestion = "somebody repairs broken car engines quickly"

func TestMeaning(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	q := search.Query{Text: query.MustParse(carQuestion), Labels: []string{"a"}}
	words := find(t, x, q)
	if slices.Contains(words, "garage.md") {
		t.Fatalf("Search(%q) without vectors = %v", q.Text, words)
	}
	if n := embedAll(t, x, e); n != 6 {
		t.Errorf("EmbedNext stored %d vectors, want 6", n)
	}
	p := page(t, x, q)
	if p.Hits[0].Filename != "garage.md" || p.Total != len(words)+1 || p.AllWords != 0 || len(p.Hits) != p.Total {
		t.Errorf("Search(%q) = %v of %d (all words: %d), want garage.md first and %d", q.Text, names(p), p.Total,
			p.AllWords, len(words)+1)
	}
	for i, h := range p.Hits {
		if h.Score <= 0 || i > 0 && h.Score > p.Hits[i-1].Score {
			t.Errorf("hit %d has the score %g after %g", i, h.Score, p.Hits[max(i-1, 0)].Score)
		}
	}
	q.Passages = 2000
	if ps := page(t, x, q).Hits[0].Passages; len(ps) == 0 || !strings.Contains(ps[0].Text, "automobile") {
		t.Errorf("the first hit has the passages %v, want the automobile first", ps)
	}
	q.Passages = 0
	for page := range p.Total { // pages are parts of one order
		q.Start, q.Num = page, 1
		one, err := x.Search(t.Context(), q)
		if err != nil || len(one.Hits) != 1 || one.Hits[0].ID != p.Hits[page].ID || one.Total != p.Total {
			t.Errorf("hit %d alone = %v, %v, want %s", page, names(one), err, p.Hits[page].Filename)
		}
	}
	if _, again := embedAll(t, x, e), e.texts.Load(); again == 0 {
		t.Error("nothing was embedded")
	}
}

func names(p *search.Page) []string {
	var names []string
	for _, h := range p.Hits {
		names = append(names, h.Filename)
	}
	return names
}

// A short query, too, finds what is close in meaning and has none of its words,
// if two of its words count.
func TestMeaningOfShortQueries(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	embedAll(t, x, e)
	for q, want := range map[string]bool{"the car overnight": true, "fix my car": true, "where is the car": false,
		"car overnight": false} {
		if got := find(t, x, search.Query{Text: query.MustParse(q), Labels: []string{"a"}}); slices.Contains(got,
			"garage.md") != want {
			t.Errorf("Search(%q) = %v, has garage.md: want %v", q, got, want)
		}
	}
}

// TestMeaningOff checks queries that must find what they find by words only.
func TestMeaningOff(t *testing.T) {
	e := &topics{id: "topics"}
	written := cmpopts.IgnoreFields(search.Hit{}, "Created")
	x, plain := openWith(t, t.TempDir(), e), open(t, t.TempDir())
	docs := append(garage(), doc("a", "ja.md", "Ja", "検索 car 語"))
	put(t, x, docs...)
	put(t, plain, docs...)
	embedAll(t, x, e)
	queries := []search.Query{
		{Text: query.MustParse("car")}, {Text: query.MustParse("repairs broken")},
		{Text: query.MustParse(`"repairs broken" car`)}, {Text: query.MustParse("title:car OR repairs OR broken")},
		{Text: query.MustParse("repairs AND broken AND car")}, {Text: query.MustParse("repair* broken car someone")},
		{Text: query.MustParse(carQuestion), Sort: []search.SortKey{{Field: "filename"}}},
		{Text: query.MustParse("検索 語 検索語 語検索")}, {Text: query.MustParse("")},
		{Text: query.MustParse("xyzzy plugh qwfp frobnicate blorb")},
	}
	for _, q := range queries {
		q.Num = 20
		got, err := x.Search(t.Context(), q)
		want, werr := plain.Search(t.Context(), q)
		if err != nil || werr != nil {
			t.Fatal(err, werr)
		}
		if diff := cmp.Diff(want, got, written); diff != "" {
			t.Errorf("Search(%+v) with vectors (-without +with)\n%s", q, diff)
		}
	}
	e.fail.Store(true)
	q := search.Query{Text: query.MustParse(carQuestion + " today"), Num: 20}
	got, err := x.Search(t.Context(), q)
	want, _ := plain.Search(t.Context(), q)
	if diff := cmp.Diff(want, got, written); err != nil || diff != "" {
		t.Errorf("Search() with a model that fails: %v (-want +got)\n%s", err, diff)
	}
}

// A slow is an embedder that needs time for each call.
type slow struct {
	*topics
	time time.Duration
}

func (e slow) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(e.time):
		return e.topics.Embed(ctx, texts, kind)
	}
}

// A query of which no document has all words waits longer for its vector.
func TestSlowVector(t *testing.T) {
	e := &topics{id: "topics"}
	dir := t.TempDir()
	x := openWith(t, dir, e)
	put(t, x, garage()...)
	embedAll(t, x, e)
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: slow{e, 300 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		for text, want := range map[string]bool{"my motorcar wants fuel": true, carQuestion: true,
			"who repairs broken things": false} {
			q := search.Query{Text: query.MustParse(text), Labels: []string{"a"}, Num: 20}
			p, err := x.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(names(p), "garage.md"); got != want {
				t.Errorf("Search(%q) = %v, has garage.md: want %v", text, names(p), want)
			}
		}
	})
}

// TestOnlyDocumentFirst checks that the only document with all words stays first.
func TestOnlyDocumentFirst(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, append(garage(),
		doc("a", "far.md", "Far", "Nobody in the zeppelin had any car, and quartz lamps were rare."))...)
	embedAll(t, x, e)
	if got := find(t, x, search.Query{Text: query.MustParse("car zeppelin quartz")}); got[0] != "far.md" {
		t.Errorf("Search() = %v, want far.md first", got)
	}
}

// Documents with quoted words of a question are preferred to those that are closer in
// meaning.
func TestQuotedBesideMeaning(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, append(garage(), doc("a", "together.md", "Notes", "The broken car of the harbour is somewhere."),
		doc("a", "apart.md", "Car repairs", "A car, another car and a vehicle: the automobile is broken, says the harbour."))...)
	embedAll(t, x, e)
	for text, want := range map[string]string{`where is the "broken car" of the harbour`: "together.md",
		"where is the broken car of the harbour": "apart.md"} {
		q, err := query.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := find(t, x, search.Query{Text: q}); got[0] != want {
			t.Errorf("Search(%q) = %q, want %s first", text, got, want)
		}
	}
}

// A document that is close in meaning is found although many others have words of the
// question, and it precedes those that have few of them.
func TestMeaningAmongManyWords(t *testing.T) {
	e := &topics{id: "test"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, garage()...)
	for i := range 150 {
		word := []string{"quiet", "afternoon", "stay"}[i%3]
		put(t, x, doc("a", fmt.Sprintf("%d.md", i), "Diary", fmt.Sprintf("%s number %d", word, i)))
	}
	embedAll(t, x, e)
	q := search.Query{Text: query.MustParse("where does a vehicle stay for a quiet afternoon"), Num: 3}
	if got := names(page(t, x, q)); got[0] != "garage.md" {
		t.Errorf("Search() = %q, want garage.md first", got)
	}
}

// TestMeaningFollowsDocuments checks that vectors of documents that are replaced,
// removed or moved to another label have no effect, even if the process that
// searches has them in memory.
func TestMeaningFollowsDocuments(t *testing.T) {
	e, dir := &topics{id: "topics"}, t.TempDir()
	x := openWith(t, dir, e)
	other := openWith(t, dir, &topics{id: "topics"})
	note := doc("a", "garage.md", "Garage", "The automobile stands in the garage overnight.")
	note.FromSource = false
	put(t, x, note, doc("b", "secret.md", "Secret", "The vehicle is a secret."),
		doc("a", "tools.md", "Tools", "Someone who repairs broken things needs tools."))
	embedAll(t, x, e)
	want := func(when string, labels []string, names ...string) {
		t.Helper()
		for _, x := range []*index.Index{x, other} {
			got := find(t, x, search.Query{Text: query.MustParse(carQuestion), Labels: labels})
			slices.Sort(got)
			if diff := cmp.Diff(names, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: Search() in %v (-want +got)\n%s", when, labels, diff)
			}
		}
	}
	want("at first", []string{"a"}, "garage.md", "tools.md")
	want("at first", []string{"b"}, "secret.md")
	want("at first", nil, "garage.md", "secret.md", "tools.md")
	want("at first", []string{"c"})

	id := note.ID
	if err := x.Apply(t.Context(), []document.Change{{Tag: &document.Tagging{ID: id, Label: "b",
		Add: []string{"red"}}}}); err != nil {
		t.Fatal(err)
	}
	want("moved", []string{"a"}, "tools.md")
	want("moved", []string{"b"}, "garage.md", "secret.md")
	if got := find(t, other, search.Query{Text: query.MustParse(carQuestion),
		Tags: []string{"red"}}); !slices.Equal(got, []string{"garage.md"}) {
		t.Errorf("Search() with a tag = %v", got)
	}
	if got := find(t, other, search.Query{Text: query.MustParse(carQuestion), Langs: []string{"de"}}); len(got) > 0 {
		t.Errorf("Search() in another language = %v", got)
	}

	changed := doc("b", "secret.md", "Secret", "The pudding is a secret.")
	put(t, x, changed)
	want("replaced", []string{"b"}, "garage.md")
	embedAll(t, x, e)
	want("replaced and embedded", []string{"b"}, "garage.md")
	put(t, x, doc("b", "secret.md", "Secret", "The motorcar is a secret."))
	embedAll(t, x, e)
	want("replaced again", []string{"b"}, "garage.md", "secret.md")
	if err := x.Apply(t.Context(), []document.Change{{Delete: &document.Ref{Label: "b",
		Path: "garage.md"}}}); err != nil {
		t.Fatal(err)
	}
	want("removed", []string{"b"}, "secret.md")
}

// A document for whose text the model has no vector is stored again like any other, for
// example because its file was touched.
func TestNoVectorIsKept(t *testing.T) {
	x, e := open(t, t.TempDir()), &topics{}
	d := doc("a", "a.md", "A", "検索語")
	put(t, x, d)
	for range 2 {
		if n, err := x.EmbedNext(t.Context(), e, nil, 10); err != nil {
			t.Fatalf("EmbedNext() = %d, %v", n, err)
		}
		d.Modified = d.Modified.Add(time.Hour)
		put(t, x, d)
	}
	if n, err := x.EmbedNext(t.Context(), e, nil, 10); n != 0 || err != nil {
		t.Errorf("EmbedNext() = %d, %v, want nothing left to compute", n, err)
	}
}

// TestManyVectors replaces documents many times, so that vectors are merged and
// loaded again.
func TestManyVectors(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	for round := range 3 {
		var docs []document.Document
		for i := range 60 {
			var text strings.Builder
			for n := range 50 {
				fmt.Fprintf(&text, "Line %d of %d in round %d.\n\n", n, i, round)
			}
			if i == 7*round {
				text.WriteString("The automobile is here.")
			}
			docs = append(docs, doc("a", fmt.Sprintf("%02d.md", i), "", text.String()))
		}
		put(t, x, docs...)
		for {
			n, err := x.EmbedNext(t.Context(), e, nil, 500)
			if err != nil {
				t.Fatal(err)
			}
			if got := find(t, x,
				search.Query{Text: query.MustParse("somebody fixes a motorcar somewhere fast")}); n == 0 {
				if want := []string{fmt.Sprintf("%02d.md", 7*round)}; !slices.Equal(got, want) {
					t.Errorf("round %d: Search() = %v, want %v", round, got, want)
				}
				break
			}
		}
		done, total, err := x.Embedded(t.Context(), e, []string{"a"})
		if err != nil || done != total || total != 60*50+1 {
			t.Errorf("Embedded() = %d of %d, %v, want all of 3001", done, total, err)
		}
	}
}

// TestFirstVectors checks that each document gets the vector of its first chunk
// before the others.
func TestFirstVectors(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	long := strings.Repeat("Nothing of interest stands in this line.\n\n", 50)
	put(t, x, doc("a", "long.md", "", long), doc("a", "short.md", "", "The automobile is here.\n\n"+long))
	if n, err := x.EmbedNext(t.Context(), e, nil, 2); n != 2 || err != nil {
		t.Fatalf("EmbedNext() = %d, %v", n, err)
	}
	if done, total, err := x.Embedding(t.Context(), nil); done != 0 || total != 0 || err != nil {
		t.Errorf("Embedding() = %d of %d, %v without an estimate, want 0 of 0", done, total, err)
	}
	if err := x.SetVectorTime(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if done, total, err := x.Embedding(t.Context(), []string{"a"}); done != 2 || total <= 2 || err != nil {
		t.Errorf("Embedding() = %d of %d, %v, want 2 of more", done, total, err)
	}
	if got := find(t, x, search.Query{Text: query.MustParse("somebody fixes a motorcar somewhere fast")}); !slices.Equal(got, []string{"short.md"}) {
		t.Errorf("Search() after two vectors = %v, want short.md", got)
	}
	total := 2 + embedAll(t, x, e)
	if done, all, err := x.Embedded(t.Context(), e, nil); err != nil || done != total || all != total {
		t.Errorf("Embedded() = %d of %d, %v, want all of %d", done, all, err, total)
	}
}

// A listener is an embedder that records the documents it gets. If it is away, it
// embeds queries only.
type listener struct {
	*topics
	away bool
	docs []string
}

func (e *listener) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	if kind == embed.Document {
		if e.away {
			return nil, fmt.Errorf("the model is away: %w", errkind.Unavailable)
		}
		e.docs = append(e.docs, texts...)
	}
	return e.topics.Embed(ctx, texts, kind)
}

// TestOrderOfVectors checks in which order the chunks of documents get vectors.
func TestOrderOfVectors(t *testing.T) {
	for _, test := range []struct {
		chunks []int // of each document
		want   string
	}{
		{nil, ""},
		{[]int{1}, "0.0"},
		{[]int{6}, "0.0 0.1 0.2 0.3 0.4 0.5"},
		{[]int{2, 5, 1, 2}, "0.0 1.0 2.0 3.0 0.1 1.1 1.2 1.3 3.1 1.4"},
		{[]int{17, 18}, "0.0 1.0 0.1 0.2 0.3 1.1 1.2 1.3 0.4 0.5 0.6 0.7 0.8 0.9 0.10 0.11 0.12 0.13 0.14 0.15 " +
			"1.4 1.5 1.6 1.7 1.8 1.9 1.10 1.11 1.12 1.13 1.14 1.15 0.16 1.16 1.17"},
	} {
		e := &listener{topics: &topics{id: "topics"}}
		x := openWith(t, t.TempDir(), e)
		var docs []document.Document
		for i, chunks := range test.chunks {
			var text strings.Builder
			for n := range chunks {
				fmt.Fprintf(&text, "%d.%d\n\n", i, n)
			}
			docs = append(docs, doc("a", fmt.Sprint(i), "", text.String()))
		}
		put(t, x, docs...)
		embedAll(t, x, e)
		if got := strings.Join(strings.Fields(strings.Join(e.docs, " ")), " "); got != test.want {
			t.Errorf("documents of %v chunks get vectors in the order\n%s, want\n%s", test.chunks, got, test.want)
		}
	}
}

// TestComputedVectors checks that a search computes the vectors that its best documents
// lack, and that they are kept.
func TestComputedVectors(t *testing.T) {
	dir := t.TempDir()
	e := &listener{topics: &topics{id: "topics"}}
	open := func(computeTime time.Duration) *index.Index {
		x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: e, ComputeTime: computeTime})
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		return x
	}
	search := func(x *index.Index, when string, want ...string) {
		t.Helper()
		got := find(t, x, search.Query{Text: query.MustParse(carQuestion)})
		if !slices.Equal(got, want) {
			t.Errorf("%s: Search() = %v, want %v", when, got, want)
		}
	}
	computed := func(x *index.Index, when string, want int) {
		t.Helper()
		if got, _, err := x.Embedded(t.Context(), e, nil); got != want || err != nil {
			t.Errorf("%s: Embedded() = %d, %v, want %d", when, got, err, want)
		}
		if err := x.Close(); err != nil {
			t.Errorf("%s: Close() = %v", when, err)
		}
	}
	x := open(0)
	put(t, x, doc("a", "words.md", "", "Somebody repairs broken engines quickly."),
		doc("a", "near.md", "", "Nothing else.\n\nSomebody repairs the automobile."), doc("a", "other.md", "", "Clouds."))
	search(x, "without time", "words.md", "near.md")
	computed(x, "without time", 0)
	e.away = true
	x = open(time.Minute)
	search(x, "without a model", "words.md", "near.md")
	computed(x, "without a model", 0)
	e.away = false
	x = open(time.Minute)
	search(x, "with time", "near.md", "words.md")
	if err := x.Close(); err != nil { // the vectors are stored at the latest then
		t.Errorf("Close() = %v", err)
	}
	x = open(time.Minute)
	search(x, "with vectors", "near.md", "words.md")
	computed(x, "with vectors", 2)
	want := []string{"Somebody repairs broken engines quickly.", "Somebody repairs the automobile."}
	if diff := cmp.Diff(want, e.docs); diff != "" {
		t.Errorf("embedded documents (-want +got):\n%s", diff)
	}
}

// TestResumedVectors checks that vectors outlive a process, and those of another
// model are not used.
func TestResumedVectors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	e := &topics{id: "topics"}
	x := openWith(t, dir, e)
	put(t, x, garage()...)
	if n, err := x.EmbedNext(t.Context(), e, nil, 4); n != 4 || err != nil {
		t.Fatalf("EmbedNext() = %d, %v", n, err)
	}
	next := &topics{id: "topics"}
	y := openWith(t, dir, next)
	if n := embedAll(t, y, next); n != 2 || next.texts.Load() != 2 {
		t.Errorf("another process stored %d vectors of %d texts, want 2", n, next.texts.Load())
	}
	put(t, x, garage()...) // the same texts
	if n := embedAll(t, x, e); n != 0 {
		t.Errorf("EmbedNext() after the same documents were stored again stored %d vectors", n)
	}
	if n := embedAll(t, x, e, "b"); n != 0 {
		t.Errorf("EmbedNext() of another label stored %d vectors", n)
	}
	changed := openWith(t, dir, &topics{id: "topics", wide: true})
	if got := find(t, changed, search.Query{Text: query.MustParse(carQuestion)}); slices.Contains(got, "garage.md") {
		t.Errorf("Search() with a model that has changed under its name = %v", got)
	}
	third := &topics{id: "another model"}
	z := openWith(t, dir, third)
	q := search.Query{Text: query.MustParse(carQuestion)}
	if got := find(t, z, q); slices.Contains(got, "garage.md") {
		t.Errorf("Search() with another model = %v", got)
	}
	if n := embedAll(t, z, third); n != 6 {
		t.Errorf("another model stored %d vectors, want 6", n)
	}
	for _, x := range []*index.Index{x, y, z} {
		if got := find(t, x, q); got[0] != "garage.md" {
			t.Errorf("Search() = %v, want garage.md first", got)
		}
	}
}
