package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/vector"
	"github.com/knowhow-mcp/knowhow/internal/vector/faiss"

	"github.com/google/go-cmp/cmp"
)

// A fakeModel is an embedder for which words with the same meaning are the same.
// Models with different seeds make different vectors.
type fakeModel struct {
	id      string
	seed    string
	dim     int
	err     error
	foreign string // texts with it are foreign
	calls   [][]string
	called  func() // at each call, if not nil
}

// meanings are pairs of words with the same meaning.
var meanings = strings.NewReplacer("holiday", "leave", "vacation", "leave", "plane", "flight", "aeroplane", "flight",
	"secret", "password")

func (m *fakeModel) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	m.calls = append(m.calls, texts)
	if m.called != nil {
		m.called()
	}
	if m.err != nil {
		return nil, m.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, m.dim)
		for t := range analysis.Tokens(meanings.Replace(strings.ToLower(text)), analysis.English) {
			if len(analysis.Significant([]string{t.Surface, "zzz"}, nil)) == 1 {
				continue
			}
			h := fnv.New64a()
			h.Write([]byte(m.seed + t.Text))
			x := h.Sum64()
			for i := range v {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				v[i] += float32(int64(x)) / math.MaxInt64
			}
		}
		embed.Normalize(v)
		out = append(out, v)
	}
	return out, nil
}

func (m *fakeModel) ID() string     { return m.id }
func (m *fakeModel) Dimension() int { return m.dim }
func (m *fakeModel) MaxTokens() int { return 256 }
func (m *fakeModel) Foreign(text string) bool {
	return m.foreign != "" && strings.Contains(text, m.foreign)
}

// withModels returns a Registry with embedders after one scan.
func withModels(t testing.TB, dir string, models ...*fakeModel) *Registry {
	t.Helper()
	r, err := New(Options{Dir: dir, Embedders: func(string) (list []embed.Embedder) {
		for _, m := range models {
			list = append(list, m)
		}
		return list
	}})
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	return r
}

// leaveSample is a dataset whose vectors a model made.
func leaveSample(t testing.TB, id string, m *fakeModel) *sample {
	s := newSample(id)
	texts := []string{"Employees have thirty days of leave each year.", "Book a flight early, and trains late.",
		"A password is kept in a vault of steel."}
	var err error
	if s.vectors, err = m.Embed(t.Context(), texts, embed.Document); err != nil {
		t.Fatal(err)
	}
	var docs []map[string]any
	for i, text := range texts {
		docs = append(docs, map[string]any{"id": string(rune('a' + i)), "content": text})
	}
	s.metadata = map[string]any{"model": m.id, "documents": docs}
	m.calls = nil
	return s
}

// model returns what Check says about the model of a dataset.
func model(t testing.TB, r *Registry, id string) Finding {
	t.Helper()
	checks, err := r.Check(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	rules := checks[0].Rules
	return rules[len(rules)-1]
}

// A query finds what is close in meaning, and scores state that they are fused.
func TestSearchByMeaning(t *testing.T) {
	root := t.TempDir()
	m := &fakeModel{id: "org/fake@1", dim: 32}
	leaveSample(t, "one", m).write(t, root, "one")
	r := withModels(t, root, m)
	if f := model(t, r, "one"); f.Status != Passed || !strings.Contains(f.Message, "org/fake made the vectors") {
		t.Errorf("model: %+v", f)
	}
	for _, tt := range []struct {
		query string
		kind  ScoreKind
		first string
	}{
		{"vacation", ByCosine, "a"},            // no word
		{"vacation for employees", Fused, "a"}, // a word and a meaning
		{"leave", Fused, "a"},
	} {
		res, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: tt.query})
		if err != nil || res.Kind != tt.kind || len(res.Hits) != 3 || len(res.Notes) > 0 {
			t.Errorf("%s: %+v, %v", tt.query, res, err)
			continue
		}
		if res.Hits[0].ID != tt.first {
			t.Errorf("%s: %s is first, want %s", tt.query, res.Hits[0].ID, tt.first)
		}
		for _, h := range res.Hits {
			if h.Score < 0 || h.Score > 1 {
				t.Errorf("%s: score %v", tt.query, h.Score)
			}
		}
	}
	if n := len(slices.DeleteFunc(m.calls, func(c []string) bool { return len(c) == 1 })); n != 1 {
		t.Errorf("the model was probed %d times", n)
	}
}

// Scores are 1/(1+d) of an index with the metric L2, and otherwise the cosine.
func TestScores(t *testing.T) {
	x := &faiss.Index{Header: faiss.Header{Dim: 2, Count: 2}, Vectors: []float32{3, 4, 1, 0}, Stored: 2}
	for _, tt := range []struct {
		kind   ScoreKind
		query  []float32
		raw    bool
		doc    int
		cosine float64
		want   float64
	}{
		{ByL2, []float32{1, 0}, false, 0, 1, 1},
		{ByL2, []float32{1, 0}, false, 0, 0.5, 0.5},
		{ByL2, []float32{1, 0}, false, 0, 0, 1.0 / 3},
		{ByL2, []float32{1, 0}, false, 0, -1, 0.2},
		{ByL2, []float32{3, 0}, true, 0, 0.6, 1.0 / 17},
		{ByL2, []float32{3, 0}, true, 1, 1, 0.2},
		{ByCosine, []float32{1, 0}, true, 0, 1.0000001, 1},
		{ByCosine, []float32{1, 0}, true, 0, 0.5, 0.5},
		{ByCosine, []float32{1, 0}, true, 0, -0.1, 0},
	} {
		v := &vectors{kind: tt.kind, stored: x}
		var err error
		if v.index, err = vector.NewFunc(2, v.at, 2, vector.Cosine); err != nil {
			t.Fatal(err)
		}
		score, err := v.scorer(tt.query, tt.raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := score(tt.doc, tt.cosine); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v: score %v", tt, got)
		}
	}
}

// A fixedModel gives vectors of FAISS's fixtures to their texts.
type fixedModel struct {
	vectors map[string][]float32
	unit    bool
}

// documents returns documents with vectors. Their paths are the numbers of these.
func (m *fixedModel) documents(vectors [][]float32) (docs []map[string]any) {
	for i, v := range vectors {
		text := fmt.Sprintf("document%d of those that FAISS has", i)
		m.vectors[text] = v
		docs = append(docs, map[string]any{"content": text, "path": strconv.Itoa(i)})
	}
	return docs
}

func (m *fixedModel) EmbedRaw(_ context.Context, texts []string, _ embed.Kind) (out [][]float32, err error) {
	for _, text := range texts {
		v := slices.Clone(m.vectors[text])
		if m.unit {
			embed.Normalize(v)
		}
		out = append(out, v)
	}
	return out, nil
}

func (m *fixedModel) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	out, err := m.EmbedRaw(ctx, texts, kind)
	for _, v := range out {
		embed.Normalize(v)
	}
	return out, err
}

func (m *fixedModel) ID() string     { return "fixed" }
func (m *fixedModel) Dimension() int { return 16 }
func (m *fixedModel) MaxTokens() int { return 0 }

// Vectors that an index moves to their mean are recognized by those with lengths.
func TestProbeWithLengths(t *testing.T) {
	m := &fixedModel{vectors: map[string][]float32{}}
	root := t.TempDir()
	s := newSample("one")
	s.metadata = m.documents(floats(t, "vectors_raw.f32"))
	s.write(t, root, "one")
	index, err := os.ReadFile(filepath.Join(fixtures, "pretransform_pca8_flat_l2_IxPT.index"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "one", "index", "docs.index"), string(index))
	r, err := New(Options{Dir: root, Embedders: func(string) []embed.Embedder { return []embed.Embedder{m} }})
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if f := model(t, r, "one"); f.Status != Passed || !strings.Contains(f.Message, "fixed made the vectors (") {
		t.Errorf("model: %+v", f)
	}
}

// Scores and order of an index with the metric L2 are those of FAISS if the model gives
// vectors the same lengths, or else those of vectors of length 1.
func TestDistancesOfFAISS(t *testing.T) {
	stored, queries := floats(t, "vectors_raw.f32"), floats(t, "queries_raw.f32")
	index, err := os.ReadFile(filepath.Join(fixtures, "flat_l2_IxF2.index"))
	if err != nil {
		t.Fatal(err)
	}
	m := &fixedModel{vectors: map[string][]float32{}}
	root := t.TempDir()
	s := newSample("one")
	s.metadata = m.documents(stored)
	s.write(t, root, "one")
	put(t, filepath.Join(root, "one", "index", "docs.index"), string(index))
	for _, m.unit = range []bool{false, true} {
		r, err := New(Options{Dir: root, Embedders: func(string) []embed.Embedder { return []embed.Embedder{m} }})
		if err != nil {
			t.Fatal(err)
		}
		scan(t, r)
		for i, q := range queries {
			text := fmt.Sprintf("query%d", i)
			m.vectors[text] = q
			res, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: text, TopK: 5})
			if err != nil || res.Kind != ByL2 || len(res.Hits) != 5 {
				t.Fatalf("%s: %+v, %v", text, res, err)
			}
			var want []string
			distances := map[string]float64{}
			for k, v := range stored {
				path, v, q := strconv.Itoa(k), slices.Clone(v), slices.Clone(q)
				if m.unit {
					embed.Normalize(v)
					embed.Normalize(q)
				}
				for c := range v {
					distances[path] += float64(v[c]-q[c]) * float64(v[c]-q[c])
				}
				want = append(want, path)
			}
			slices.SortFunc(want, func(a, b string) int {
				if distances[a] < distances[b] {
					return -1
				}
				return 1
			})
			for k, h := range res.Hits {
				if score := 1 / (1 + distances[want[k]]); h.Path != want[k] || math.Abs(h.Score-score) > 1e-6 {
					t.Errorf("%s, hit %d: %s with %v, want %s with %v", text, k, h.Path, h.Score, want[k], score)
				}
			}
		}
	}
}

// floats reads vectors of 16 dimensions from a fixture.
func floats(t testing.TB, name string) (vectors [][]float32) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	for v := range slices.Chunk(values, 16) {
		vectors = append(vectors, v)
	}
	return vectors
}

// A model that did not make the vectors is named and not used.
func TestWrongModel(t *testing.T) {
	root := t.TempDir()
	m := &fakeModel{id: "org/fake@1", dim: 32}
	leaveSample(t, "one", m).write(t, root, "one")
	wrong, other := &fakeModel{id: "org/fake@2", seed: "x", dim: 32}, &fakeModel{id: "short", dim: 8}
	for _, tt := range []struct {
		name   string
		models []*fakeModel
		want   string
	}{
		{"wrong", []*fakeModel{wrong, other},
			`the metadata names "org/fake@1", but org/fake did not make the vectors (cosine `},
		{"other dimension", []*fakeModel{other}, "with vectors of 32 dimensions, and no such model is available"},
		{"none", nil, "no such model is available"},
		{"unreachable", []*fakeModel{{id: "org/fake", dim: 32,
			err: fmt.Errorf("connection refused: %w", errkind.Unavailable)}},
			"the model could not be used: org/fake: connection refused"},
	} {
		r := withModels(t, root, tt.models...)
		f := model(t, r, "one")
		if f.Status != Warning || !strings.Contains(f.Message, tt.want) ||
			!strings.Contains(f.Message, "searched by words only") {
			t.Errorf("%s: %+v", tt.name, f)
		}
		res, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: "leave"})
		if err != nil || res.Kind != ByWords || len(res.Hits) != 1 || !cmp.Equal(res.Notes, []string{f.Message}) {
			t.Errorf("%s: %+v, %v", tt.name, res, err)
		}
		if got := list(t, r)["one"]; got.State != Ready || len(got.Problems) != 1 {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	// The right one is found behind a wrong one.
	if f := model(t, withModels(t, root, wrong, m), "one"); f.Status != Passed {
		t.Errorf("with both: %+v", f)
	}
}

// The vectors of MCPower's sample are random numbers: the probe does not trust
// them, whatever the model.
func TestProbeOfTheSample(t *testing.T) {
	r := withModels(t, "testdata", &fakeModel{id: DefaultModel, dim: 384})
	if f := model(t, r, "sample-docs"); f.Status != Warning ||
		!strings.Contains(f.Message, "look like random numbers") {
		t.Errorf("model: %+v", f)
	}
	res, err := r.Search(t.Context(), Query{Datasets: []string{"sample-docs"}, Text: "troubleshooting"})
	if err != nil || res.Kind != ByWords || res.Hits[0].ID != "doc-5" || len(res.Notes) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// An embedder that fails is asked again later, and meanwhile words are searched.
func TestEmbedderRecovers(t *testing.T) {
	root := t.TempDir()
	m := &fakeModel{id: "org/fake@1", dim: 32}
	leaveSample(t, "one", m).write(t, root, "one")
	synctest.Test(t, func(t *testing.T) {
		r := withModels(t, root, m)
		m.err = errors.New("down")
		kind := func() ScoreKind {
			res, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: "leave"})
			if err != nil {
				t.Fatal(err)
			}
			return res.Kind
		}
		if got := kind(); got != ByWords {
			t.Errorf("while it is down: %s", got)
		}
		m.err = nil
		if got := kind(); got != ByWords || len(m.calls) != 1 {
			t.Errorf("at once: %s, %d calls", got, len(m.calls))
		}
		time.Sleep(retryProbe)
		if got := kind(); got != Fused {
			t.Errorf("later: %s", got)
		}
		m.err = errors.New("down again")
		if got := kind(); got != ByWords {
			t.Errorf("down again: %s", got)
		}
		m.err = nil
		if got := kind(); got != Fused {
			t.Errorf("up again: %s", got)
		}
	})
}

// A model is not used for a query in a language that it does not know.
func TestForeignQuery(t *testing.T) {
	root := t.TempDir()
	m := &fakeModel{id: "org/fake@1", dim: 32, foreign: "休暇"}
	leaveSample(t, "one", m).write(t, root, "one")
	res, err := withModels(t, root, m).Search(t.Context(), Query{Datasets: []string{"one"}, Text: "休暇 leave"})
	if err != nil || res.Kind != ByWords || len(res.Hits) != 1 || len(res.Notes) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Datasets with vectors of one model, of another and without are searched as one.
func TestSeveralModels(t *testing.T) {
	root := t.TempDir()
	m, n := &fakeModel{id: "org/fake@1", dim: 32}, &fakeModel{id: "other", seed: "y", dim: 16}
	leaveSample(t, "one", m).write(t, root, "one")
	leaveSample(t, "two", n).write(t, root, "two")
	plain := leaveSample(t, "three", m)
	plain.vectors = nil
	plain.write(t, root, "three")
	res, err := withModels(t, root, m, n).Search(t.Context(),
		Query{Datasets: []string{"one", "two", "three"}, Text: "leave of employees", TopK: 3})
	if err != nil || res.Kind != Fused {
		t.Fatalf("got %+v, %v", res, err)
	}
	got := map[string]bool{}
	for _, h := range res.Hits {
		got[h.Dataset+h.ID] = true
	}
	if diff := cmp.Diff(map[string]bool{"onea": true, "twoa": true, "threea": true}, got); diff != "" {
		t.Errorf("the first three (-want +got):\n%s", diff)
	}
}

// Vectors that do not match the documents are reported, and the others are used.
func TestRowsAndDocuments(t *testing.T) {
	m := &fakeModel{id: "org/fake@1", dim: 32}
	for _, tt := range []struct {
		name  string
		alter func(s *sample)
		want  string // problem
		hits  int
	}{
		{"match", func(*sample) {}, "", 3},
		{"a vector too few", func(s *sample) { s.vectors = s.vectors[:2] }, "rows: 1 of 3 documents without vector", 2},
		{"a vector too many", func(s *sample) { s.vectors = append(s.vectors, s.vectors[0]) },
			"rows: 1 of 4 vectors belong to no document, and 0 documents without vector", 3},
		{"not a number", func(s *sample) { s.vectors[2][3] = float32(math.NaN()) },
			"vectors: 1 vector with values that are not numbers", 2},
		{"longer", func(s *sample) {
			for _, v := range s.vectors {
				for i := range v {
					v[i] *= 7
				}
			}
		}, "", 3},
		{"other dimensions in the metadata", func(s *sample) {
			s.metadata.(map[string]any)["stats"] = map[string]any{"embeddingDimensions": 384}
		}, "vectors: the metadata says that they have 384 dimensions, they have 32", 3},
		{"random", func(s *sample) {
			for i, v := range s.vectors {
				for k := range v {
					v[k] = float32(1 + (i*k)%7)
				}
			}
		}, "vectors: they look like random numbers", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			s := leaveSample(t, "one", m)
			tt.alter(s)
			s.write(t, root, "one")
			r := withModels(t, root, m)
			got := list(t, r)["one"]
			text := ""
			for _, p := range got.Problems {
				text += p.String() + "\n"
			}
			if got.State != Ready || !strings.Contains(text, tt.want) || tt.want == "" && text != "" {
				t.Errorf("%s: %s, want %q", got.State, text, tt.want)
			}
			res, err := r.Search(t.Context(), Query{Datasets: []string{"one"}, Text: "vacation"})
			if err != nil || len(res.Hits) != tt.hits {
				t.Errorf("%d hits, want %d: %+v, %v", len(res.Hits), tt.hits, res, err)
			}
		})
	}
}

// Ids of an index are those of the documents, if all documents have one of them, or
// else the numbers of the documents.
func TestIDsOfIndex(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []int64
		docs []string
		want []int32 // number of the document of each row
	}{
		{"ids", []int64{500, 503, 506}, []string{"500", "503", "506"}, []int32{0, 1, 2}},
		{"from 1", []int64{1, 2, 3}, []string{"1", "2", "3"}, []int32{0, 1, 2}},
		{"another order", []int64{-7, 9, 0}, []string{"0", "-7", "9"}, []int32{1, 2, 0}},
		{"more vectors", []int64{4, 5, 6, 5}, []string{"5", "6"}, []int32{-1, 0, 1, -1}},
		{"a document without vector", []int64{0, 1}, []string{"1", "2", "3"}, []int32{0, 1}},
		{"positions", []int64{2, 0, 1}, []string{"a", "1", "2"}, []int32{2, 0, 1}},
		{"the same id twice", []int64{1, 0}, []string{"1", "1"}, []int32{1, 0}},
		{"no ids", []int64{500, 1}, []string{"", ""}, []int32{-1, 1}},
	} {
		docs := make([]Document, len(tt.docs))
		for i, id := range tt.docs {
			docs[i].ID = id
		}
		v := &vectors{count: len(docs)}
		v.assign(tt.ids, docs, len(tt.ids), &findings{})
		if diff := cmp.Diff(tt.want, v.docs); diff != "" {
			t.Errorf("%s: documents (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Created datasets have vectors that the same model verifies.
func TestCreateWithVectors(t *testing.T) {
	root, dir := t.TempDir(), sources(t)
	m := &fakeModel{id: "org/fake@1", dim: 32}
	c, err := Create(t.Context(), CreateOptions{Dir: root, ID: "guide", Sources: []string{dir}, Embedder: m,
		Model: "org/fake"})
	if err != nil || c.Vectors != c.Chunks {
		t.Fatalf("Create = %+v, %v", c, err)
	}
	r := withModels(t, root, m)
	if f := model(t, r, "guide"); f.Status != Passed {
		t.Errorf("model: %+v", f)
	}
	if got := list(t, r)["guide"]; got.Vectors != c.Chunks || got.Model != "org/fake" || len(got.Problems) > 0 {
		t.Errorf("got %+v", got)
	}
	res, err := r.Search(t.Context(), Query{Datasets: []string{"guide"}, Text: "holiday"})
	if err != nil || res.Hits[0].Path != "page.html" {
		t.Errorf("got %+v, %v", res, err)
	}

	// A model that fails leaves the old dataset whole.
	before := tree(t, root)
	for name, bad := range map[string]*fakeModel{"failing": {dim: 32, err: errkind.Unavailable},
		"without dimensions": {dim: 0}} {
		if _, err := Create(t.Context(), CreateOptions{Dir: root, ID: "guide", Sources: []string{dir}, Embedder: bad,
			Model: "x", Replace: true}); !errors.Is(err, errkind.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// So does an interrupt while vectors are computed.
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := &fakeModel{dim: 32, called: cancel}
	if _, err := Create(ctx, CreateOptions{Dir: root, ID: "guide", Sources: []string{dir}, Embedder: interrupted,
		Model: "x", Replace: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if diff := cmp.Diff(before, tree(t, root)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	onlyFolders(t, root, "guide")
}
