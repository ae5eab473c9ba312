package vectors

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

const dim = 8

// A model has an ID only.
type model struct{ embed.Embedder }

func (model) ID() string { return "model" }

// A kit is a store beside the stored vectors, which tests change.
type kit struct {
	t *testing.T
	*Store
	stored map[int64][]float32 // by chunk
	r      *rand.Rand
}

func open(t *testing.T) *kit {
	log := slog.New(slog.DiscardHandler)
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(t.TempDir(), "test.db"), Log: log,
		Schema: database.Schema{
			Application: 1, First: 1, Create: `CREATE TABLE kv(key TEXT PRIMARY KEY, value TEXT NOT NULL); CREATE TABLE chunks(id INTEGER PRIMARY KEY);` + Tables +
				`INSERT INTO models(id, name) VALUES(1, 'model ` + version + `');`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &kit{t, New(Options{DB: db, Embedder: model{}, Log: log}), map[int64][]float32{},
		rand.New(rand.NewPCG(1, 2))}
}

// put stores documents, each with new vectors of some chunks.
func (k *kit) put(chunks int, docs ...int64) {
	k.t.Helper()
	k.remove(docs...)
	k.write(func(tx *sql.Tx) error {
		for _, doc := range docs {
			for n := range chunks {
				v := make([]float32, dim)
				for i := range v {
					v[i] = float32(k.r.NormFloat64())
				}
				row, blob := database.PartRow(doc, n), encode(v)
				if _, err := tx.Exec(`INSERT INTO chunks(id) VALUES(?)`, row); err != nil {
					return err
				}
				if _, err := tx.Exec(`INSERT INTO vectors(chunk, model, label, vector) VALUES(?, 1, 'a', ?)`, row,
					blob); err != nil {
					return err
				}
				k.stored[row] = decode(nil, blob)
			}
		}
		return nil
	})
}

func (k *kit) remove(docs ...int64) {
	k.t.Helper()
	k.write(func(tx *sql.Tx) error {
		for _, doc := range docs {
			for n := range int64(100) {
				delete(k.stored, database.PartRow(doc, 0)+n)
			}
			if _, err := tx.Exec(`DELETE FROM chunks WHERE id BETWEEN ? AND ?`, database.PartRow(doc, 0),
				database.PartRow(doc+1, 0)-1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *kit) write(f func(tx *sql.Tx) error) {
	k.t.Helper()
	if err := k.o.DB.Write(k.t.Context(), "testing", f); err != nil {
		k.t.Fatal(err)
	}
}

// cosine returns the cosine of two vectors.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// check compares the nearest chunks with those of a comparison with all vectors.
func (k *kit) check(when string) {
	k.t.Helper()
	var wanted []int64
	query := make([]float32, dim)
	for i := range query {
		query[i] = float32(k.r.NormFloat64())
	}
	scores := map[int64]float64{}
	for row, v := range k.stored {
		wanted = append(wanted, row)
		scores[row] = cosine(query, v)
	}
	slices.SortFunc(wanted, func(a, b int64) int { return cmp.Compare(scores[b], scores[a]) })
	wanted = wanted[:min(10, len(wanted))]
	err := k.o.DB.Read(k.t.Context(), "searching", func(tx *sql.Tx) error {
		v, err := k.View(k.t.Context(), tx, []string{"a", "none"})
		if err != nil {
			return err
		}
		// Of more, because a search ends when it has met vectors that are gone a few times.
		hits, err := v.Nearest(k.t.Context(), query, 60, nil)
		if err != nil {
			return err
		}
		hits = hits[:min(10, len(hits))]
		var got []int64
		docs := map[int64]bool{}
		for _, h := range hits {
			got = append(got, database.PartRow(h.Document, h.Chunk))
			docs[h.Document] = true
		}
		if !slices.Equal(got, wanted) {
			k.t.Errorf("%s: the nearest chunks are %v, want %v", when, got, wanted)
		}
		// Each document of the result alone.
		for doc := range docs {
			hits, err := v.Scores(k.t.Context(), query, []int64{doc}, func(hits []Hit) []Hit { return hits })
			if err != nil {
				return err
			}
			n := 0
			for row := range k.stored {
				if row>>database.PartBits == doc {
					n++
				}
			}
			if len(hits) != n {
				k.t.Errorf("%s: %d chunks of document %d have a score, want %d", when, len(hits), doc, n)
			}
			for _, h := range hits {
				if want := scores[database.PartRow(doc, h.Chunk)]; math.Abs(h.Score-want) > 0.02 {
					k.t.Errorf("%s: chunk %d of document %d has the score %.4f, want %.4f", when, h.Chunk, doc,
						h.Score, want)
				}
			}
		}
		if v.Has(dim) == (len(k.stored) == 0) || v.Has(dim+1) {
			k.t.Errorf("%s: wrong dimension", when)
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// load loads in the background what a search has left.
func (k *kit) load() (loaded bool) {
	k.t.Helper()
	select {
	case <-k.loadSoon:
		if err := k.loadAll(k.t.Context()); err != nil {
			k.t.Fatal(err)
		}
		return true
	default:
		return false
	}
}

// TestBlockAndTail changes vectors and searches them in between.
func TestBlockAndTail(t *testing.T) {
	k := open(t)
	k.check("empty")
	many := make([]int64, 1700)
	for i := range many {
		many[i] = int64(i + 1)
	}
	k.put(3, many...)
	err := k.o.DB.Read(t.Context(), "searching", func(tx *sql.Tx) error {
		_, err := k.View(t.Context(), tx, []string{"a"})
		return err
	})
	if err != nil || !k.load() {
		t.Fatalf("a search has loaded all of %d vectors, %v", len(k.stored), err)
	}
	if s := k.set("a"); s.block.len() != len(k.stored) || len(s.tail.chunks) != 0 {
		t.Errorf("the block has %d and the tail %d of %d vectors", s.block.len(), len(s.tail.chunks), len(k.stored))
	}
	k.check("after loading")
	for n := range 10 {
		var some []int64
		for range 100 {
			if doc := many[k.r.IntN(len(many))]; !slices.Contains(some, doc) {
				some = append(some, doc)
			}
		}
		k.put(1+n%3, some...)
		k.check("after storing")
		k.remove(some[:10]...)
		k.check("after removing")
	}
	if k.load() {
		t.Error("a short tail is loaded anew")
	}
	k.put(2, many...)
	k.check("after storing all")
	k.put(2, many...)
	k.check("after storing all again")
	if !k.load() {
		t.Error("a long tail is not loaded anew")
	}
	k.check("at the end")
	if s := k.set("a"); len(s.stale) != 0 || s.block.len() != len(k.stored) {
		t.Errorf("%d documents are stale, and the block has %d of %d vectors", len(s.stale), s.block.len(),
			len(k.stored))
	}
}

// TestRun checks that Run loads what a search has left, and ends with its context.
func TestRun(t *testing.T) {
	k := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	k.loadSoon <- struct{}{}
	cancel()
	<-done
}

// TestEncode checks the stored form of vectors.
func TestEncode(t *testing.T) {
	v := []float32{0.5, -1, 0.25, 0}
	got := decode(nil, encode(v))
	for i := range v {
		if math.Abs(float64(got[i]-v[i])) > 0.005 {
			t.Errorf("decode(encode(%v)) = %v", v, got)
		}
	}
	for _, v := range [][]float32{nil, {0, 0}, {float32(math.NaN())}, {float32(math.Inf(1))}} {
		if got := decode(nil, encode(v)); len(got) != 0 {
			t.Errorf("decode(encode(%v)) = %v, want none", v, got)
		}
	}
}
