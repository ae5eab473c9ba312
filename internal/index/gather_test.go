package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestGather stores the same documents with words that were gathered before the
// transaction and in it. The segments must be the same, and the words of every
// label must have been used.
func TestGather(t *testing.T) {
	put := func(label, path, text string) document.Change {
		return document.Change{Put: &document.Document{ID: label + "/" + path, Label: label, Path: path,
			Title: "About " + path, Filename: path, Text: text,
			Chunks: []document.Chunk{{Length: len(text)}}}}
	}
	first := []document.Change{put("a", "3", "three"), put("a", "1", "one"), put("b", "1", "one of another label")}
	tests := []struct {
		name    string
		changes []document.Change
		unused  int // labels whose words are gathered again
	}{
		{"new", []document.Change{put("a", "5", "five"), put("a", "4", "four")}, 0},
		{"one", []document.Change{put("a", "4", "four")}, 0},
		{"new and changed", []document.Change{put("a", "4", "four"), put("a", "1", "once"), put("b", "2", "two"),
			put("a", "3", "thrice")}, 0},
		{"without chunks", []document.Change{{Put: &document.Document{ID: "x", Label: "a", Path: "x",
			Title: "Title"}}}, 0},
		{"title that is not UTF-8", []document.Change{{Put: &document.Document{ID: "x", Label: "a", Path: "x",
			Title: "Ti\xfftle"}}}, 0},
		{"removed", []document.Change{{Delete: &document.Ref{Label: "a", Path: "3"}}, put("a", "3", "three again")}, 0},
		{"twice", []document.Change{put("a", "4", "four"), put("a", "4", "fourth"), put("b", "2", "two")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			var bodies [2]string
			for i := range bodies {
				var log lockedBuffer
				x, err := Open(ctx, Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log,
					&slog.HandlerOptions{Level: slog.LevelDebug}))})
				if err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				if err := x.Apply(ctx, first); err != nil {
					t.Fatal(err)
				}
				var words segments.Words
				if i == 1 {
					if words, err = x.gather(ctx, tt.changes); err != nil {
						t.Fatal(err)
					}
				}
				if err := x.change(ctx, "testing", words, func(w *writer) error {
					return w.apply(ctx, tt.changes)
				}); err != nil {
					t.Fatal(err)
				}
				if unused := strings.Count(log.String(), "words that were gathered are not"); unused != tt.unused*i {
					t.Errorf("%d labels were gathered again, want %d", unused, tt.unused*i)
				}
				rows, err := raw(t, x).QueryContext(ctx,
					`SELECT label, body FROM segments JOIN segment_bodies USING(id) ORDER BY id`)
				if err != nil {
					t.Fatal(err)
				}
				for rows.Next() {
					var label string
					var body []byte
					if err := rows.Scan(&label, &body); err != nil {
						t.Fatal(err)
					}
					bodies[i] += fmt.Sprintf("%s %x\n", label, body)
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
			}
			if bodies[0] != bodies[1] || strings.Count(bodies[0], "\n") < 2 {
				t.Errorf("segments:\n%swith gathered words:\n%s", bodies[0], bodies[1])
			}
		})
	}
}

// TestPrepare prepares changes before others are applied. They change what is
// there when they are applied.
func TestPrepare(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	prepare := func(changes ...document.Change) func() {
		t.Helper()
		apply, err := x.Prepare(t.Context(), changes)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if err := apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(path, text string) document.Change {
		return document.Change{Put: &document.Document{ID: path, Label: "a", Path: path, Title: path, Text: text}}
	}
	first := prepare(put("1", "walrus"), put("2", "walrus"))
	second := prepare(put("3", "clam"), put("1", "clam"), put("2", "walrus and clam"))
	first()
	second()
	for word, want := range map[string]int{"walrus": 1, "clam": 3} {
		page, err := x.Search(t.Context(), search.Query{Text: query.MustParse(word), Num: 10})
		if err != nil || page.Total != want {
			t.Errorf("%s is in %d documents, %v; want %d", word, page.Total, err, want)
		}
	}
	if _, err := x.Prepare(t.Context(), []document.Change{{}}); !errors.Is(err, errkind.Invalid) {
		t.Errorf("Prepare() of an empty change = %v", err)
	}
}

// TestGatherInParts stores documents whose words take too much memory, so that
// parts of them are stored in files first. The segments must be the same, and no
// other file may be left.
func TestGatherInParts(t *testing.T) {
	text := strings.Repeat("many words of a text ", 400)
	var chunks []document.Chunk
	for off := 0; off < len(text); off += 420 {
		chunks = append(chunks, document.Chunk{Offset: off, Length: 420, Heading: "Heading"})
	}
	put := func(label, path string) document.Change {
		return document.Change{Put: &document.Document{ID: label + "/" + path, Label: label, Path: path,
			Title: "About " + path, Filename: path,
			Text: text, Chunks: chunks}}
	}
	first := []document.Change{put("a", "1"), put("a", "2")}
	second := []document.Change{put("a", "3"), put("a", "1"), put("b", "1"),
		{Delete: &document.Ref{Label: "a", Path: "2"}}}
	var bodies [2]string
	for i, limit := range []int{0, 1} {
		dir := t.TempDir()
		x, err := open(t.Context(), Options{Dir: dir}, setup{schema: schema,
			segments: segments.Options{BuildLimit: limit}})
		if err != nil {
			t.Fatal(err)
		}
		defer closeIt(t, x)
		apply(t, x, first...)
		apply(t, x, second...)
		for _, r := range storedSegments(t, x) {
			if limit == 1 && r.file == "" {
				t.Errorf("segment %d is not in a file", r.id)
			}
			bodies[i] += fmt.Sprintf("%s %d %x\n", r.label, r.docs-r.removed, r.body)
		}
		if n := total(t, x, "many"); n != 3 {
			t.Errorf("with a limit of %d bytes, %d documents are found, want 3", limit, n)
		}
		// A change that fails leaves no file.
		conflict := put("c", "1")
		conflict.Put.ID = "b/1"
		if err := x.Apply(t.Context(), []document.Change{put("c", "0"), conflict}); !errors.Is(err, errkind.Conflict) {
			t.Errorf("Apply() = %v, want a conflict", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.Apply(canceled, []document.Change{put("c", "1")}); !errors.Is(err, context.Canceled) {
			t.Errorf("Apply() = %v", err)
		}
		if limit == 1 {
			entries, err := os.ReadDir(filepath.Join(dir, segments.Dir))
			if err != nil || len(entries) != 3 {
				t.Errorf("files of segments: %v, %v; want those of two segments and of one that was replaced",
					entries, err)
			}
		}
	}
	if bodies[0] != bodies[1] || strings.Count(bodies[0], "\n") != 2 {
		t.Error("the segments differ from those that were built in memory")
	}
}
