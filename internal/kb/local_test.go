package kb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
)

// open opens the base in a data folder and works on its jobs.
func open(t testing.TB, dir string, sources ...string) (*kb.Local, *index.Index) {
	t.Helper()
	return openWith(t, dir, nil, sources...)
}

// openWith is open for a base with an embedder. It does not compute vectors.
func openWith(t testing.TB, dir string, e embed.Embedder, sources ...string) (*kb.Local, *index.Index) {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: e, EmbedTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir, Sources: sources, MaxUpload: kbtest.MaxUpload, Version: "test"})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, x
}

func TestLocal(t *testing.T) {
	kbtest.Run(t, func(t *testing.T) kb.Base {
		b, _ := open(t, t.TempDir())
		return b
	})
}

func TestLocalMeaning(t *testing.T) {
	kbtest.RunMeaning(t, func(t *testing.T, e embed.Embedder) kb.Base {
		b, x := openWith(t, t.TempDir(), e)
		embedding(t, x, b, e)
		return b
	})
}

// embedding computes vectors in the background until the test ends.
func embedding(t *testing.T, x *index.Index, b *kb.Local, e embed.Embedder) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			labels, err := b.Labels(ctx)
			if err == nil {
				_, err = x.EmbedNext(ctx, e, labels, 10)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
}

// TestVectorOnly checks the error of a base without a model.
func TestVectorOnly(t *testing.T) {
	b, _ := open(t, t.TempDir())
	_, err := b.Search(t.Context(), kb.SearchQuery{Query: "car", VectorOnly: true, Top: 1})
	if want := "vector_only: without a model, nothing can be found by meaning"; !errors.Is(err, errkind.Unsupported) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("Search() = %v, want Unsupported with %q", err, want)
	}
}

// alike is an embedder for which all texts mean the same.
type alike struct{}

func (alike) Embed(ctx context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, ctx.Err()
}

func (alike) ID() string          { return "alike" }
func (alike) Dimension() int      { return 2 }
func (alike) MaxTokens() int      { return 0 }
func (alike) Foreign(string) bool { return false }

// TestSourcesMeaning checks that searches by meaning find a note in the collection
// of a source that is not served, and not the files of the source.
func TestSourcesMeaning(t *testing.T) {
	b, x := openWith(t, t.TempDir(), alike{})
	if err := x.AddSource(t.Context(), document.Source{Label: "private", Path: "/private"}); err != nil {
		t.Fatal(err)
	}
	err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "file", Label: "private", Path: "a.md",
		FromSource: true, Type: "markdown",
		Title: "Salaries", Text: "Secret salaries", Chunks: []document.Chunk{{Length: 15}}}}})
	if err != nil {
		t.Fatal(err)
	}
	note := kbtest.Note(t, b, "Cars and boats.", "collection:private")
	for n := 1; n > 0; {
		if n, err = x.EmbedNext(t.Context(), alike{}, nil, 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []kb.SearchQuery{
		{Query: "anything", VectorOnly: true}, {Query: "how do I steer the big vessel"}, {Query: "anything",
			VectorOnly: true, Tags: []string{"collection:private"}},
	} {
		r := kbtest.Find(t, b, q)
		if r.Total != 1 || len(r.Results) != 1 || r.Results[0].DocumentID != note.ID {
			t.Errorf("Search(%+v) = %+v, want the note alone", q, r)
		}
	}
}

// The text of a file in a folder is changed there.
func TestUpdateFileOfFolder(t *testing.T) {
	b, x := open(t, t.TempDir(), "docs")
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: "/docs"}); err != nil {
		t.Fatal(err)
	}
	err := x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "file", Label: "docs", Path: "b/a.md",
		FromSource: true, Type: "markdown", Title: "A", Text: "A text", Chunks: []document.Chunk{{Length: 6}}}}})
	if err != nil {
		t.Fatal(err)
	}
	text := "x"
	_, err = b.UpdateNote(t.Context(), 1, kb.NoteChange{Text: &text})
	const want = `document 1 is a file of the folder "docs": change the file b/a.md there`
	if !errors.Is(err, errkind.Conflict) || errkind.Message(err) != want {
		t.Errorf("UpdateNote() = %v, want %s", err, want)
	}
}

func TestLocalRights(t *testing.T) {
	kbtest.RunRights(t, func(t *testing.T) kb.Base {
		b, _ := open(t, t.TempDir())
		return b
	}, true)
}
