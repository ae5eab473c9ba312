package retrieval

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A fakeStore records what is asked of it. Its documents have no texts.
type fakeStore struct {
	gather   func(r Request, p Plan) *Candidates
	similar  map[string][]string
	requests []Request
	plans    []Plan
	read     []int64
}

func (s *fakeStore) Gather(_ context.Context, r *Request) (*Candidates, error) {
	var p Plan
	if r.Plan != nil {
		p = *r.Plan
	}
	s.requests, s.plans = append(s.requests, *r), append(s.plans, p)
	return s.gather(*r, p), nil
}

func (s *fakeStore) Similar(_ context.Context, words []string) ([][]string, error) {
	out := make([][]string, len(words))
	for i, w := range words {
		out[i] = s.similar[w]
	}
	return out, nil
}

func (s *fakeStore) Read(_ context.Context, _ *Request, page []Document) (Contents, error) {
	var c noContents
	for _, d := range page {
		s.read = append(s.read, d.Number)
		c.hits = append(c.hits, search.Hit{ID: "x"})
	}
	return c, nil
}

func (s *fakeStore) ReadChunks(_ context.Context, _ *Request, chunks []Chunk) ([]search.ChunkHit, error) {
	hits := make([]search.ChunkHit, len(chunks))
	for i, c := range chunks {
		hits[i] = search.ChunkHit{Chunk: c.Number, Score: c.Score}
		s.read = append(s.read, c.Document)
	}
	return hits, nil
}

// noContents are documents without texts.
type noContents struct {
	passage.Source
	hits []search.Hit
}

func (c noContents) Hits() []search.Hit                        { return c.hits }
func (c noContents) Chunks(context.Context) ([]Chunk, error)   { return nil, nil }
func (c noContents) Conditions() (a, b, d []passage.Condition) { return nil, nil, nil }
func (c noContents) Beginnings(_ context.Context, places []int) ([]string, error) {
	return make([]string, len(places)), nil
}

// options returns options with an embedder that takes some time.
func options(takes time.Duration) Options {
	return Options{Languages: []analysis.Language{analysis.English}, Wait: 50 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
		Vector: func(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			select {
			case <-time.After(takes):
				return []float32{1}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
}

// always returns a gather function with one result.
func always(c Candidates) func(Request, Plan) *Candidates {
	return func(Request, Plan) *Candidates { return &c }
}

func TestSearchOnce(t *testing.T) {
	found := Candidates{Total: 3, Complete: 1, Documents: []Document{words(1, 5), words(2, 4), other(3)}}
	for _, tt := range []struct {
		name   string
		q      search.Query
		depth  int
		some   bool
		vector bool
		read   []int64
	}{
		{"one word", search.Query{Text: query.MustParse("red"), Num: 8}, 8, false, false, []int64{1, 2, 3}},
		{"two words", search.Query{Text: query.MustParse("red boat"), Num: 8}, 50, false, false, []int64{1, 2, 3}},
		{"three words", search.Query{Text: query.MustParse("red boat lake"), Num: 8}, 100, true, true,
			[]int64{1, 2, 3}},
		{"a later page", search.Query{Text: query.MustParse("red boat lake"), Start: 190, Num: 8}, 198, true, true,
			nil},
		{"the second hit", search.Query{Text: query.MustParse("red boat lake"), Start: 1, Num: 1}, 100, true, true,
			[]int64{2}},
		{"an order", search.Query{Text: query.MustParse("red boat lake"), Num: 8,
			Sort: []search.SortKey{{Field: "filename"}}}, 8, true, false, []int64{1, 2, 3}},
		{"an expression", search.Query{Text: query.MustParse("red OR boat"), Num: 8}, 50, false, false,
			[]int64{1, 2, 3}},
		{"no hits", search.Query{Text: query.MustParse("red boat lake")}, 0, true, true, nil},
		{"everything", search.Query{Num: 2}, 50, false, false, []int64{1, 2}},
	} {
		s := &fakeStore{gather: always(found)}
		p, err := Search(t.Context(), s, tt.q, options(0))
		if err != nil || p.Total != 3 || p.Staged != tt.some || len(p.Hits) != len(tt.read) || len(s.requests) != 1 {
			t.Errorf("%s: Search() = %+v, %v, after %d requests", tt.name, p, err, len(s.requests))
			continue
		}
		r := s.requests[0]
		if r.Depth != tt.depth || s.plans[0].Some != tt.some || (r.Vector != nil) != tt.vector ||
			!slices.Equal(s.read, tt.read) {
			t.Errorf("%s: depth %d, some %v, vector %v, read %v, want %d, %v, %v, %v", tt.name, r.Depth,
				s.plans[0].Some, r.Vector, s.read,
				tt.depth, tt.some, tt.vector, tt.read)
		}
	}
}

// TestSearchAgain checks when and with what a search gathers again.
func TestSearchAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		similar := map[string][]string{"baot": {"boat", "coat"}, "lkae": {"lake"}}
		for _, tt := range []struct {
			name    string
			text    string
			takes   time.Duration // to compute the vector
			first   Candidates
			again   bool
			extra   []query.Node
			pieces  int
			vector  bool // in the last request
			similar []string
		}{
			{"all words are known", "red boat lake", 0, Candidates{Total: 1, Complete: 1}, false, nil, 0, true, nil},
			{"the vector is late", "red boat lake", 200 * time.Millisecond, Candidates{Total: 1, Complete: 1}, false,
				nil, 0, false, nil},
			{"late, and nothing has all words", "red boat lake", 200 * time.Millisecond, Candidates{Total: 1}, true,
				nil, 0, true, nil},
			{"too late", "red boat lake", 2 * time.Second, Candidates{}, false, nil, 0, false, nil},
			{"a misspelled word", "red baot lake", 0, Candidates{Total: 1, Missing: []string{"baot"}}, true,
				[]query.Node{query.Term{Text: "boat"}}, 0, true,
				[]string{"boat", "coat"}},
			{"an unknown word", "red zzzzz lake", 0, Candidates{Total: 1, Missing: []string{"zzzzz"}}, false, nil, 0,
				true, nil},
			{"two misspelled words", "baot lkae", 0, Candidates{Missing: []string{"baot", "lkae"}}, false, nil, 0,
				false, []string{"boat", "coat", "lake"}},
			{"pieces", "red boat 東京都庁", 0, Candidates{Total: 1, Missing: []string{"東京都庁"}}, true, nil, 3, true, nil},
		} {
			second := Candidates{Total: 7, Complete: 7}
			s := &fakeStore{similar: similar}
			s.gather = func(Request, Plan) *Candidates {
				if len(s.requests) > 1 {
					return &second
				}
				return &tt.first
			}
			p, err := Search(t.Context(), s, search.Query{Text: query.MustParse(tt.text), Num: 5}, options(tt.takes))
			if err != nil {
				t.Fatal(err)
			}
			n, total := 1, tt.first.Total
			if tt.again {
				n, total = 2, 7
			}
			last := s.plans[len(s.plans)-1]
			if len(s.requests) != n || p.Total != total || (s.requests[n-1].Vector != nil) != tt.vector ||
				len(last.Pieces) != tt.pieces {
				t.Errorf("%s: %d requests, total %d, vector %v, pieces %v", tt.name, len(s.requests), p.Total,
					s.requests[len(s.requests)-1].Vector, last.Pieces)
			}
			if diff := cmp.Diff(tt.similar, p.DidYouMean); diff != "" {
				t.Errorf("%s: DidYouMean (-want +got)\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.extra, last.Extra); diff != "" {
				t.Errorf("%s: Extra (-want +got)\n%s", tt.name, diff)
			}
		}
	})
}

func TestPlan(t *testing.T) {
	languages := []analysis.Language{analysis.English}
	for _, tt := range []struct {
		text  string
		words []string
		some  bool
		extra int
		signs []string
	}{
		{"red", []string{"red"}, false, 0, nil},
		{"red red", []string{"red", "red"}, false, 0, nil},
		{"red boat red", []string{"red", "boat"}, true, 0, nil},
		{"how do I paint the boat", []string{"paint", "boat"}, true, 0, nil},
		{"海外出張の日当", []string{"海外出張", "日当"}, true, 1, nil},
		{"C++ manual for beginners", []string{"C", "manual", "beginners"}, true, 0, []string{"c++"}},
		{"*", nil, false, 0, nil},
		{"red OR boat", nil, false, 0, nil},
	} {
		text, err := query.Read(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlan(text, languages, false)
		var words []string
		for _, w := range p.Words {
			words = append(words, w.Text)
		}
		if !slices.Equal(words, tt.words) || p.Some != tt.some || len(p.Extra) != tt.extra {
			t.Errorf("newPlan(%q) = %+v, want words %q, some %v and %d other conditions", tt.text, p, tt.words, tt.some,
				tt.extra)
		}
		if tt.signs != nil && len(p.Signs) != len(tt.signs) {
			t.Errorf("newPlan(%q) has signs %q, want %q", tt.text, p.Signs, tt.signs)
		}
	}
	if p := newPlan(query.MustParse("red boat red"), languages, false); p.Words[0].Weight != 2 {
		t.Errorf("a repeated word counts %v times, want 2", p.Words[0].Weight)
	}
}

// Words of literal parts count less beside other words, and their signs do not count.
func TestLiterals(t *testing.T) {
	for _, tt := range []struct {
		text   string
		weight float64 // of the word etc
		signs  int
	}{
		{"why is $PAINT of the boat in /etc/boats::red", 0.5, 1},
		{"why is the boat of etc in /etc/boats::red", 2, 0},
		{"boat in /etc/boats::red", 1, 1}, // nothing else to look for
	} {
		text, err := query.Read(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlan(text, []analysis.Language{analysis.English}, false)
		i := slices.IndexFunc(p.Words, func(w Word) bool { return w.Text == "etc" })
		if i < 0 || p.Words[i].Weight != tt.weight || len(p.Signs) != tt.signs {
			t.Errorf("newPlan(%q) has words %+v and signs %q, want etc with weight %v and %d signs", tt.text, p.Words, p.Signs,
				tt.weight, tt.signs)
		}
	}
}

func TestSearchChunks(t *testing.T) {
	chunks := Candidates{Total: 2, Chunks: []Chunk{{Document: 1, Score: 5}, {Document: 2, Score: 4}}}
	for _, tt := range []struct {
		name   string
		q      search.ChunkQuery
		gather func(Request, Plan) *Candidates
		near   []float64 // of the requests
		some   bool      // of the last one
		staged bool
	}{
		{"by words", search.ChunkQuery{Text: query.MustParse("red boat lake"), Ranking: search.ByWords, Top: 5},
			always(chunks), []float64{0}, true, true},
		{"by both", search.ChunkQuery{Text: query.MustParse("red boat lake"), Top: 5}, always(chunks), []float64{.25},
			true, true},
		{"two words are found", search.ChunkQuery{Text: query.MustParse("red boat"), Top: 5}, always(chunks),
			[]float64{0}, false, false},
		{"two words are not found", search.ChunkQuery{Text: query.MustParse("red boat"), Top: 5},
			func(r Request, p Plan) *Candidates {
				if p.Some {
					return &chunks
				}
				return &Candidates{}
			}, []float64{0, .4}, true, true},
		{"by meaning", search.ChunkQuery{Text: query.MustParse("red boat"), Ranking: search.ByMeaning, Top: 5},
			always(Candidates{Total: 2, Chunks: []Chunk{{Document: 1, Cosine: .5, HasCosine: true},
				{Document: 2, Cosine: -.4, HasCosine: true}}}), []float64{0}, false, false},
	} {
		s := &fakeStore{gather: tt.gather}
		p, err := SearchChunks(t.Context(), s, tt.q, options(0))
		if err != nil || p.Total != 2 || p.Staged != tt.staged || !slices.Equal(s.read, []int64{1, 2}) {
			t.Errorf("%s: SearchChunks() = %+v, %v, read %v", tt.name, p, err, s.read)
		}
		var near []float64
		for _, r := range s.requests {
			near = append(near, r.Near)
		}
		if !slices.Equal(near, tt.near) || s.plans[len(s.plans)-1].Some != tt.some {
			t.Errorf("%s: least cosines %v, last plan %+v, want %v, some %v", tt.name, near, s.plans[len(s.plans)-1],
				tt.near, tt.some)
		}
	}
	late := options(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := SearchChunks(ctx, &fakeStore{}, search.ChunkQuery{Text: query.MustParse("red"),
		Ranking: search.ByMeaning, Top: 5}, late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("SearchChunks() beyond the time of the caller = %v, want its error", err)
	}
}
