package indexing

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/index"
	"knowhow/internal/terminal"
)

// A slowModel is an embedder that takes a second for a call, and fails if it is
// told so.
type slowModel struct {
	mu    sync.Mutex
	err   error
	texts int
}

func (m *slowModel) Embed(ctx context.Context, texts []string, kind embed.Kind) ([][]float32, error) {
	m.mu.Lock()
	err := m.err
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Second):
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

func (m *slowModel) ID() string     { return "slow" }
func (m *slowModel) Dimension() int { return 2 }
func (m *slowModel) MaxTokens() int { return 0 }

func (m *slowModel) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *slowModel) embedded() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts
}

// startEmbedding runs Embed until the returned function is called.
func startEmbedding(t *testing.T, x *index.Index, m *slowModel) (out *lockedBuffer, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	out = &lockedBuffer{}
	lines := terminal.NewLines(out, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Embed(ctx, EmbedOptions{Index: x, Embedder: m, Lines: lines, Log: slog.New(terminal.NewHandler(lines, slog.LevelWarn)),
			Labels: func(context.Context) ([]string, error) { return []string{"a"}, nil }})
	}()
	return out, func() { cancel(); <-done }
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
	synctest.Test(t, func(t *testing.T) {
		x, y := openIndex(t, dir), openIndex(t, dir)
		defer x.Close()
		defer y.Close()
		putChunks(t, x, "a", "one", 100)
		putChunks(t, x, "b", "other", 5) // which the processes do not serve
		first, second := &slowModel{}, &slowModel{}
		_, stopFirst := startEmbedding(t, x, first)
		synctest.Wait()
		out, stopSecond := startEmbedding(t, y, second)
		time.Sleep(3 * time.Second) // in the third batch, which is lost
		if n := second.embedded(); n != 0 || first.embedded() == 0 {
			t.Errorf("the second process computed %d vectors while the first one, with %d, had the lease", n, first.embedded())
		}
		stopFirst()
		time.Sleep(time.Minute)
		stopSecond()
		if n := first.embedded() + second.embedded(); n != 100 {
			t.Errorf("the processes computed %d and %d vectors, want 100", first.embedded(), second.embedded())
		}
		if done, total, err := x.Embedded(t.Context(), first, []string{"a"}); done != 100 || total != 100 || err != nil {
			t.Errorf("Embedded() = %d of %d, %v, want 100 of 100", done, total, err)
		}
		if !strings.Contains(out.String(), "can be found by meaning") {
			t.Errorf("output %q, want a line at the end", out.String())
		}
	})
}

// TestEmbedAgain checks that a failure is reported once and tried again, and that
// vectors follow changes, but not while documents are being indexed.
func TestEmbedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x := openIndex(t, dir)
		defer x.Close()
		putChunks(t, x, "a", "one", 3)
		m := &slowModel{err: errors.New("the model is away")}
		out, stop := startEmbedding(t, x, m)
		defer stop()
		time.Sleep(10 * time.Second)
		if n := strings.Count(out.String(), "the model is away"); n != 1 {
			t.Errorf("%d reports in %q, want 1", n, out.String())
		}
		m.fail(nil)
		time.Sleep(10 * time.Second)
		if n := m.embedded(); n != 3 {
			t.Errorf("%d vectors, want 3", n)
		}
		if err := x.SetProgress(t.Context(), index.Progress{Label: "a", Done: 1, Total: 2}); err != nil {
			t.Fatal(err)
		}
		putChunks(t, x, "a", "two", 2)
		time.Sleep(10 * time.Second)
		if n := m.embedded(); n != 3 {
			t.Errorf("%d vectors while documents are being indexed, want 3", n)
		}
		time.Sleep(20 * time.Second) // the progress expires
		if n := m.embedded(); n != 5 {
			t.Errorf("%d vectors after a change, want 5", n)
		}
	})
}
