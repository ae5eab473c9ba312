package indexing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// A stepModel is an embedder whose calls wait for a step, and return err if it is not nil.
type stepModel struct {
	step chan struct{} // closed: no waiting

	mu    sync.Mutex
	err   error
	texts int
}

func newStepModel(waiting bool) *stepModel {
	m := &stepModel{step: make(chan struct{})}
	if !waiting {
		close(m.step)
	}
	return m
}

func (m *stepModel) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	m.mu.Lock()
	err := m.err
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-m.step:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.mu.Lock()
	m.texts += len(texts)
	m.mu.Unlock()
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

func (m *stepModel) ID() string     { return "step" }
func (m *stepModel) Dimension() int { return 2 }
func (m *stepModel) MaxTokens() int { return 0 }

func (m *stepModel) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *stepModel) embedded() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts
}

// An embedder is a running Embed.
type embedder struct {
	out   *lockedBuffer
	looks atomic.Int64 // how often Embed looked for chunks without vectors
	stop  func()
}

// startEmbedding runs Embed until stop is called.
func startEmbedding(t *testing.T, x *index.Index, m *stepModel) *embedder {
	return startEmbeddingOn(t, x, m, 0)
}

// startEmbeddingOn is startEmbedding for a terminal of some columns, if these are not 0.
func startEmbeddingOn(t *testing.T, x *index.Index, m *stepModel, columns int) *embedder {
	ctx, cancel := context.WithCancel(t.Context())
	e := &embedder{out: &lockedBuffer{}}
	lines := terminal.NewLines(e.out, func() int { return columns })
	done := make(chan struct{})
	go func() {
		defer close(done)
		Embed(ctx, EmbedOptions{Index: x, Embedder: m, Lines: lines,
			Log:      slog.New(terminal.NewHandler(lines, slog.LevelWarn)),
			Labels:   func(context.Context) ([]string, error) { e.looks.Add(1); return []string{"a"}, nil },
			interval: time.Millisecond, quiet: 1})
	}()
	e.stop = func() { cancel(); <-done }
	return e
}

// look waits until Embed has looked for chunks without vectors n more times.
func (e *embedder) look(t *testing.T, n int64) {
	for until := e.looks.Load() + n; e.looks.Load() < until && t.Context().Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}

// await waits until a condition is true, at most as long as tests may run.
func await(t *testing.T, condition func() bool) {
	for !condition() && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// putChunks stores a document with n chunks.
func putChunks(t *testing.T, x *index.Index, label, path string, n int) {
	t.Helper()
	d := document.Document{ID: label + path, Label: label, Path: path, Title: path, Text: strings.Repeat("x ", n)}
	for i := range n {
		d.Chunks = append(d.Chunks, document.Chunk{Offset: 2 * i, Length: 2})
	}
	if err := x.Apply(t.Context(), []document.Change{{Put: &d}}); err != nil {
		t.Fatal(err)
	}
}

// TestEmbed has two processes compute vectors. One of them works at a time, and
// the other one takes over when it ends, and continues where it stopped.
func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	x, y := openIndex(t, dir), openIndex(t, dir)
	defer x.Close()
	defer y.Close()
	for i := range 100 {
		putChunks(t, x, "a", fmt.Sprint(i), 1)
	}
	putChunks(t, x, "b", "other", 5) // which the processes do not serve
	first, second := newStepModel(true), newStepModel(false)
	one := startEmbedding(t, x, first)
	first.step <- struct{}{}
	first.step <- struct{}{} // the first batch is stored
	two := startEmbedding(t, y, second)
	two.look(t, 5)
	if n := second.embedded(); n != 0 {
		t.Errorf("the second process computed %d vectors while the first one had the lease", n)
	}
	one.stop() // in the third batch, which is lost
	stored := first.embedded()
	if done, _, err := x.Embedded(t.Context(), first, []string{"a"}); err != nil || done > stored || done < embedBatch {
		t.Errorf("%d vectors after %d were computed, %v", done, stored, err)
	}
	await(t, func() bool {
		done, _, err := x.Embedded(t.Context(), first, []string{"a"})
		return err != nil || done == 100
	})
	two.look(t, 2)
	two.stop()
	if n := first.embedded() + second.embedded(); n < 100 || n > 100+embedBatch {
		t.Errorf("the processes computed %d and %d vectors, want 100 and at most one batch again", first.embedded(),
			second.embedded())
	}
	if done, total, err := x.Embedded(t.Context(), first, []string{"a"}); done != 100 || total != 100 || err != nil {
		t.Errorf("Embedded() = %d of %d, %v, want 100 of 100", done, total, err)
	}
	if out := two.out.String(); !strings.Contains(out, "searching by meaning: ready (") {
		t.Errorf("output %q, want a line at the end", out)
	}
}

// TestEmbedEstimate checks that the time left is shown and stored while vectors are
// computed.
func TestEmbedEstimate(t *testing.T) {
	for columns, want := range map[int]string{
		0:   "searching by meaning: 16 of 100 passages are ready (16 %), about 52 s left; searching by words is ready\n",
		100: "\rsearching by meaning: 16 of 100 passages, 2/s, 52 s left [",
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			x := openIndex(t, dir)
			defer x.Close()
			for i := range 20 {
				putChunks(t, x, "a", fmt.Sprint(i), 5)
			}
			m := newStepModel(true)
			e := startEmbeddingOn(t, x, m, columns)
			for range 2 {
				time.Sleep(10 * time.Second)
				m.step <- struct{}{}
			}
			time.Sleep(time.Second) // the second batch is stored
			if out := e.out.String(); !strings.HasPrefix(out, want) {
				t.Errorf("output %q, want %q", out, want)
			}
			if s, err := x.Stats(t.Context()); err != nil || s.VectorTime < 30*time.Second || s.VectorTime > 2*time.Minute {
				t.Errorf("Stats() = %+v, %v, want the time left", s, err)
			}
			e.stop()
			if s, err := x.Stats(t.Context()); err != nil || s.VectorTime != 0 {
				t.Errorf("Stats() = %+v, %v after the end, want no time left", s, err)
			}
			if out := e.out.String(); columns > 0 && !strings.HasSuffix(out, "\r") {
				t.Errorf("output %q, want no bar at the end", out)
			}
		})
	}
}

// TestEmbedAgain checks that a failure is reported once and tried again, and that
// vectors follow changes, but not while documents are being indexed.
func TestEmbedAgain(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	putChunks(t, x, "a", "one", 3)
	m := newStepModel(false)
	m.fail(errors.New("the model is away"))
	e := startEmbedding(t, x, m)
	defer e.stop()
	e.look(t, 5)
	if n := strings.Count(e.out.String(), "the model is away"); n != 1 {
		t.Errorf("%d reports in %q, want 1", n, e.out.String())
	}
	m.fail(nil)
	await(t, func() bool { return m.embedded() == 3 })
	if err := x.SetProgress(t.Context(), index.Progress{Label: "a", Done: 1, Total: 2}); err != nil {
		t.Fatal(err)
	}
	e.look(t, 2) // a look that began before has ended
	putChunks(t, x, "a", "two", 2)
	e.look(t, 5)
	if n := m.embedded(); n != 3 {
		t.Errorf("%d vectors while documents are being indexed, want 3", n)
	}
	if err := x.SetProgress(t.Context(), index.Progress{Label: "a", Done: 2, Total: 2}); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return m.embedded() == 5 })
}
