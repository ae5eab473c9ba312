package retrieval

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// words returns a document that is ranked by words.
func words(number int64, score float64, change ...func(*Document)) Document {
	d := Document{Number: number, Score: score, NearChunk: -1}
	for _, f := range change {
		f(&d)
	}
	return d
}

// other returns a document that is not ranked.
func other(number int64) Document { return Document{Number: number, Chunk: -1, NearChunk: -1} }

func complete(d *Document) { d.Complete = true }
func titled(d *Document)   { d.Titled = true }
func named(d *Document)    { d.Named = true }
func same(d *Document)     { d.Same = true }

// text gives a document a text that others may have.
func text(t string) func(*Document) { return func(d *Document) { d.Text = t } }

// near gives a document a cosine.
func near(cosine float64) func(*Document) {
	return func(d *Document) { d.Cosine, d.NearChunk = cosine, 3 }
}

func TestRank(t *testing.T) {
	some := &Plan{Some: true, Words: []Word{{Text: "a"}}, Titles: [][]string{{"a"}}}
	for _, tt := range []struct {
		name      string
		plan      *Plan
		documents []Document
		complete  int
		want      []int64
	}{
		{"nothing", some, nil, 0, []int64{}},
		{"order of the store", some, []Document{words(4, 5), words(2, 5), words(3, 1), other(1), other(9)}, 0,
			[]int64{4, 2, 3, 1, 9}},
		{"all words", some, []Document{words(1, 5), words(2, 4.5, complete)}, 1, []int64{2, 1}},
		{"all words, of which all are needed", &Plan{}, []Document{words(1, 5), words(2, 4.5, complete)}, 1,
			[]int64{1, 2}},
		{"all words are not enough", some, []Document{words(1, 5), words(2, 4, complete)}, 1, []int64{1, 2}},
		{"language", &Plan{Language: "de"}, []Document{words(1, 5), words(2, 4.5, same)}, 0, []int64{2, 1}},
		{"no language", &Plan{}, []Document{words(1, 5), words(2, 4.5, same)}, 0, []int64{1, 2}},
		{"name", some, []Document{words(1, 5), words(2, 4.5, named)}, 0, []int64{2, 1}},
		{"a name is not enough", some, []Document{words(1, 5), words(2, 4, named)}, 0, []int64{1, 2}},
		{"title", some, []Document{words(1, 5), words(2, 1, titled), words(3, 2, titled)}, 0, []int64{3, 2, 1}},
		{"title of one document", some, []Document{words(2, 1, titled)}, 0, []int64{2}},
		{"titles do not count", &Plan{}, []Document{words(1, 5), words(2, 1, titled)}, 0, []int64{1, 2}},
		{"title without a word", some, []Document{words(1, 5), {Number: 2, Chunk: -1, NearChunk: -1, Titled: true}}, 0,
			[]int64{1, 2}},
		{"duplicates", some, []Document{words(1, 5, text("x")), words(2, 4, text("x")), words(3, 3, text("y")),
			other(4), other(5)}, 0, []int64{1, 3, 4, 5}},
		{"meaning", some, []Document{words(1, 5, near(.1)), words(2, 4, near(.9)), words(3, 3, near(.2))}, 0,
			[]int64{2, 1, 3}},
		{"near without a word", some, []Document{words(1, 5, near(.1)), words(2, 4, near(.2)),
			{Number: 7, Chunk: -1, NearChunk: 0, Cosine: .9}, other(3)}, 0,
			[]int64{7, 1, 2, 3}},
		{"without vectors, by words", some, []Document{words(1, 5), words(2, 4, near(.9))}, 0, []int64{1, 2}},
		{"the only document with all words", some, []Document{words(1, 5, complete, near(.1)), words(2, 4, near(.9))},
			1, []int64{1, 2}},
		{"one of several with all words", some, []Document{words(1, 5, complete, near(.1)),
			words(2, 4.8, complete, near(.9))}, 2, []int64{2, 1}},
	} {
		got := []int64{}
		list := rank(tt.plan, &Candidates{Documents: tt.documents, Complete: tt.complete})
		for i, d := range list {
			got = append(got, d.Number)
			if i > 0 && d.Score > list[i-1].Score {
				t.Errorf("%s: the score rises from %v to %v", tt.name, list[i-1].Score, d.Score)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestRankDepth checks that the bonuses count for the best documents only, and that
// the documents themselves are not changed.
func TestRankDepth(t *testing.T) {
	c := &Candidates{}
	for i := range 60 {
		c.Documents = append(c.Documents, words(int64(i), 100-float64(i)/1000,
			func(d *Document) { d.Complete = i >= 40 }))
	}
	list := rank(&Plan{Some: true}, c)
	if list[0].Number != 40 || list[9].Number != 49 || list[10].Number != 0 || list[59].Number != 59 {
		t.Errorf("order %d, %d, %d, ..., %d, want 40, 49, 0, ..., 59", list[0].Number, list[9].Number, list[10].Number,
			list[59].Number)
	}
	if c.Documents[40].Score != 100-40.0/1000 {
		t.Errorf("the score of a candidate became %v", c.Documents[40].Score)
	}
}

func TestPassageChunks(t *testing.T) {
	page := []Document{{Number: 10}, {Number: 20}, {Number: 30}}
	type chosen struct {
		Number, Document int
	}
	for _, tt := range []struct {
		name   string
		chunks []Chunk
		want   []chosen
	}{
		{"none", nil, []chosen{{-1, 0}, {-2, 1}, {-3, 2}}},
		{"words", []Chunk{{Document: 20, Score: 3}, {Document: 20, Number: 4, Score: 2}, {Document: 10, Score: 1}},
			[]chosen{{0, 1}, {1, 1}, {2, 0}, {-3, 2}}},
		{"meaning", []Chunk{{Document: 10, Score: 3, Cosine: .1, HasCosine: true},
			{Document: 20, Score: 2, Cosine: .2, HasCosine: true}, {Document: 30, Cosine: .9, HasCosine: true}},
			[]chosen{{2, 2}, {0, 0}, {1, 1}}},
		{"meaning outweighs words", []Chunk{{Document: 10, Score: 3, Cosine: .1, HasCosine: true},
			{Document: 20, Score: 2.9, Cosine: .9, HasCosine: true},
			{Document: 30, Score: 1, Cosine: .1, HasCosine: true}}, []chosen{{1, 1}, {0, 0}, {2, 2}}},
	} {
		var got []chosen
		for _, c := range passageChunks(page, tt.chunks, 0) {
			got = append(got, chosen{c.Number, c.Document})
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestRankChunks(t *testing.T) {
	some := &Plan{Some: true}
	for _, tt := range []struct {
		name string
		c    Candidates
		n    int
		want []Chunk
	}{
		{"scores in 0..1", Candidates{Chunks: []Chunk{{Document: 1, Score: 10}}}, 3, []Chunk{{Document: 1, Score: .5}}},
		{"all words", Candidates{Chunks: []Chunk{{Document: 1, Score: 10}, {Document: 2, Score: 9, Complete: true}}}, 1,
			[]Chunk{{Document: 2, Score: 10.8 / 20.8, Complete: true}}},
		{"documents without a chunk", Candidates{Chunks: []Chunk{{Document: 1, Score: 10}},
			Documents: []Document{other(5), other(1)}}, 3,
			[]Chunk{{Document: 1, Score: .5}, {Document: 5}}},
		{"far in meaning", Candidates{Chunks: []Chunk{{Document: 1, Score: 10, Cosine: .1, HasCosine: true},
			{Document: 2, Cosine: .2, HasCosine: true}}}, 3,
			[]Chunk{{Document: 1, Score: 1, Cosine: .1, HasCosine: true}}},
	} {
		got := rankChunks(some, &tt.c, tt.n)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestSpread checks that a document has at most three chunks before those of
// others, and that documents without a good chunk follow.
func TestSpread(t *testing.T) {
	best := []Chunk{{Document: 1, Score: 9}, {Document: 1, Score: 8}, {Document: 1, Score: 7}, {Document: 1, Score: 6},
		{Document: 2, Score: 5}}
	others := []Chunk{{Document: 1}, {Document: 3}}
	for n, want := range map[int][]int{0: {}, 2: {1, 1}, 4: {1, 1, 1, 2}, 5: {1, 1, 1, 2, 3}, 9: {1, 1, 1, 1, 2, 3}} {
		got := []int{}
		for _, c := range spread(best, others, n) {
			got = append(got, int(c.Document))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d chunks (-want +got)\n%s", n, diff)
		}
	}
}

// TestNameKey checks what names of files say about their contents.
func TestNameKey(t *testing.T) {
	for name, want := range map[string]string{
		"curl.1": "curl", "git-commit.1.gz": "git commit", "mod_rewrite.html.en": "mod rewrite",
		"sysctl.d.5": "sysctl d", "Budget 2024.xlsx": "budget", "Übersicht.md": "übersicht", "日本語.txt": "日本語",
		"notes": "notes", ".profile": "profile", "index.html": "", "README.md": "", "a-b-c.txt": "", "1.txt": "", "": "",
	} {
		if got := NameKey(name); got != want {
			t.Errorf("NameKey(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestNames checks which names a question can mean.
func TestNames(t *testing.T) {
	p := newPlan(query.MustParse("how does Git bisect find sysctl.d"), []analysis.Language{analysis.English}, false)
	for _, name := range []string{"git.1", "git-bisect.html", "bisect_git.md", "sysctl.d.5"} {
		if !slices.Contains(p.Names, NameKey(name)) {
			t.Errorf("the names %q do not have that of %s", p.Names, name)
		}
	}
	for _, name := range []string{"how.md", "git-git.md", "gitk.1"} {
		if slices.Contains(p.Names, NameKey(name)) {
			t.Errorf("the names %q have that of %s", p.Names, name)
		}
	}
}

// The order of the first documents does not depend on how many candidates there are.
// Those that are near and not among the first by words have no chunk by words unless
// there are more candidates.
func TestFuseDepth(t *testing.T) {
	for _, words := range []int{40, 90, 100, 150} {
		var all, first []Document
		for i := range words {
			d := Document{Number: int64(i), Score: float64(1000 - i), NearChunk: -1}
			if i%3 == 0 {
				d.NearChunk, d.Cosine = 0, float64(i*7%100)/100
			}
			all = append(all, d)
			switch {
			case i < Fused:
				first = append(first, d)
			case d.NearChunk >= 0:
				d.Score, d.Chunk = 0, -1
				first = append(first, d)
			}
		}
		for i := range NearDocs {
			d := Document{Number: int64(1000 + i), Chunk: -1, Cosine: 0.9 - float64(i)/100}
			all, first = append(all, d), append(first, d)
		}
		p := &Plan{Some: true}
		want := rank(p, &Candidates{Total: len(all), Documents: first})
		got := rank(p, &Candidates{Total: len(all), Documents: all})
		if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
			t.Errorf("%d documents by words: with all candidates (-first ones +all):\n%s", words, diff)
		}
	}
}

// A document that is near is found, however many documents have words of the question.
func TestNearAmongManyWords(t *testing.T) {
	c := &Candidates{Full: 10}
	for i := range Fused {
		c.Documents = append(c.Documents, words(int64(i), 4-float64(i)/100, near(.1)))
	}
	c.Documents = append(c.Documents, Document{Number: 1000, Chunk: -1, NearChunk: 2, Cosine: .9},
		words(1001, .5, near(.8)))
	var got []int64
	for _, d := range rank(&Plan{Some: true}, c)[:3] {
		got = append(got, d.Number)
	}
	if diff := cmp.Diff([]int64{1000, 1001, 0}, got); diff != "" {
		t.Errorf("first documents (-want +got)\n%s", diff)
	}
}
