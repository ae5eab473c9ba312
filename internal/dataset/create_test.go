package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/google/go-cmp/cmp"
)

// sources writes some files and returns their folder.
func sources(t testing.TB) string {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "guide.md"),
		"---\ntitle: The guide\n---\n\n# Install\n\nRun the installer.\r\nThen restart.\n\n## Linux\n\n"+
			strings.Repeat("Packages exist for every distribution. ", 40)+"\n")
	put(t, filepath.Join(dir, "deep", "notes.txt"), "First note about unicorns.\n")
	put(t, filepath.Join(dir, "page.html"), "<title>Page</title><p>A page about leave.")
	put(t, filepath.Join(dir, "image.bin"), "\x00\x01\x02")
	put(t, filepath.Join(dir, ".hidden.md"), "hidden")
	return dir
}

func TestCreate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "datasets")
	dir := sources(t)
	var steps []Progress
	o := CreateOptions{Dir: root, ID: "guide", Sources: []string{dir},
		Report: func(p Progress) { steps = append(steps, p) },
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	c, err := Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Files != 3 || c.Chunks < 4 || c.Vectors != 0 || c.Replaced || c.Folder != filepath.Join(root, "guide") ||
		len(c.LeftOut) == 0 {
		t.Errorf("created %+v", c)
	}
	if len(steps) == 0 {
		t.Error("no progress was reported")
	}
	var m map[string]any
	data, err := os.ReadFile(filepath.Join(c.Folder, "metadata.json"))
	if err != nil || json.Unmarshal(data, &m) != nil {
		t.Fatalf("metadata: %v", err)
	}
	if m["datasetId"] != "guide" || m["model"] != "none" || m["createdAt"] != "2026-01-02T03:04:05.000Z" ||
		m["stats"].(map[string]any)["totalFiles"] != 3.0 {
		t.Errorf("metadata: %.300s", data)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n")
	r := open(t, root)
	for _, d := range r.snapshot()[0].set.docs {
		if len(d.Content) > chunkMax || d.Content == "" || d.Chunk < 1 || d.Chunk > d.ChunkTotal {
			t.Errorf("document %+v", d)
		}
		if d.Path != "guide.md" {
			continue
		}
		got := strings.Join(lines[d.StartLine-1:d.EndLine], "\n")
		for line := range strings.SplitSeq(d.Content, "\n") { // the title stands behind its key
			if !strings.Contains(got, line) {
				t.Errorf("lines %d to %d are %q, and do not have %q", d.StartLine, d.EndLine, got, line)
			}
		}
		if d.Chunk == 1 && !strings.HasPrefix(d.Content, "The guide\n") || (d.Chunk > 1) != (d.StartLine > 1) {
			t.Errorf("chunk %d on line %d begins with %.20q", d.Chunk, d.StartLine, d.Content)
		}
	}
	if got := find(t, r, "unicorns", "guide"); len(got) != 1 {
		t.Errorf("found %v", got)
	}
	if i := list(t, r)["guide"]; i.Description != "Dataset created from "+filepath.Base(dir) || i.DefaultTopK != 5 {
		t.Errorf("got %+v", i)
	}

	// It exists now.
	if _, err := Create(t.Context(), o); !errors.Is(err, errkind.Conflict) {
		t.Errorf("creating it again: %v", err)
	}
	put(t, filepath.Join(c.Folder, "README.md"), "mine")
	put(t, filepath.Join(dir, "new.txt"), "A new text about dragons.")
	o.Replace = true
	if c, err = Create(t.Context(), o); err != nil || !c.Replaced || !cmp.Equal(c.Kept, []string{"README.md"}) {
		t.Fatalf("replacing it: %+v, %v", c, err)
	}
	scan(t, r)
	if got := find(t, r, "dragons", "guide"); len(got) != 1 {
		t.Errorf("found %v", got)
	}
	onlyFolders(t, root, "guide")
	if data, err := os.ReadFile(filepath.Join(c.Folder, "README.md")); string(data) != "mine" {
		t.Errorf("the user's file: %q, %v", data, err)
	}
}

// onlyFolders checks the names in a folder.
func onlyFolders(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", dir, diff)
	}
}

// A Create that fails changes nothing.
func TestCreateFails(t *testing.T) {
	empty, dir := t.TempDir(), sources(t)
	for _, tt := range []struct {
		name  string
		alter func(o *CreateOptions)
		kind  error
	}{
		{"no id", func(o *CreateOptions) { o.ID = "" }, errkind.Invalid},
		{"bad id", func(o *CreateOptions) { o.ID = "../x" }, errkind.Invalid},
		{"long name", func(o *CreateOptions) { o.Name = strings.Repeat("x", 129) }, errkind.Invalid},
		{"long description", func(o *CreateOptions) { o.Description = strings.Repeat("x", 513) }, errkind.Invalid},
		{"top k", func(o *CreateOptions) { o.DefaultTopK = 101 }, errkind.Invalid},
		{"no source", func(o *CreateOptions) { o.Sources = nil }, errkind.Invalid},
		{"missing source", func(o *CreateOptions) { o.Sources = []string{filepath.Join(dir, "missing")} },
			errkind.NotFound},
		{"no text", func(o *CreateOptions) { o.Sources = []string{empty} }, errkind.NotFound},
		{"another thing in its place", func(o *CreateOptions) { o.ID = "file" }, errkind.Conflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			newSample("old").write(t, root, "old")
			put(t, filepath.Join(root, "file"), "")
			before := tree(t, root)
			o := CreateOptions{Dir: root, ID: "old", Sources: []string{dir}, Replace: true}
			tt.alter(&o)
			if _, err := Create(t.Context(), o); !errors.Is(err, tt.kind) {
				t.Errorf("Create = %v, want %v", err, tt.kind)
			}
			if diff := cmp.Diff(before, tree(t, root)); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		root := t.TempDir()
		newSample("old").write(t, root, "old")
		before := tree(t, root)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Create(ctx, CreateOptions{Dir: root, ID: "old", Sources: []string{dir},
			Replace: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("Create = %v", err)
		}
		if diff := cmp.Diff(before, tree(t, root)); diff != "" {
			t.Errorf("files (-before +after):\n%s", diff)
		}
	})
}

// tree returns the files below a folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range remaining(dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	return files
}

// Several sources keep apart files with the same path, and the datasets
// themselves are not read.
func TestCreateFromSeveralSources(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "a", "docs", "x.txt"), "one")
	put(t, filepath.Join(top, "b", "docs", "x.txt"), "two")
	put(t, filepath.Join(top, "single.txt"), "three")
	root := filepath.Join(top, "b", "docs", "datasets")
	newSample("old").write(t, root, "old")
	c, err := Create(t.Context(), CreateOptions{Dir: root, ID: "all",
		Sources: []string{filepath.Join(top, "a", "docs"), filepath.Join(top, "b", "docs"),
			filepath.Join(top, "single.txt")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := open(t, root).Documents(t.Context(), "all", func(d Document) error {
		got = append(got, d.ID+" "+d.Path+" "+d.Content)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"all-1 docs-2/x.txt two", "all-2 docs/x.txt one", "all-3 single.txt three"},
		got); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", c, diff)
	}
}

func TestDelete(t *testing.T) {
	root, away := t.TempDir(), t.TempDir()
	newSample("one").write(t, root, "folder")
	newSample("two").write(t, root, "two")
	put(t, filepath.Join(root, "two", "mine.txt"), "")
	three := newSample("three")
	three.manifest["metadata"] = filepath.Join(away, "metadata.json")
	three.write(t, root, "three")
	writeJSON(t, filepath.Join(away, "metadata.json"), three.metadata)
	put(t, filepath.Join(root, "broken", "manifest.json"), "{")
	for _, tt := range []struct {
		id   string
		kept []string
	}{{"one", nil}, {"two", []string{filepath.Join(root, "two", "mine.txt")}},
		{"three", []string{filepath.Join(root, "three", "metadata.json")}}, {"broken", nil}} {
		kept, err := Delete(root, tt.id)
		if err != nil || !cmp.Equal(kept, tt.kept) {
			t.Errorf("Delete(%s) = %v, %v, want %v", tt.id, kept, err, tt.kept)
		}
	}
	onlyFolders(t, root, "three", "two")
	onlyFolders(t, away, "metadata.json")
	for _, id := range []string{"one", "..", "two"} {
		if _, err := Delete(root, id); !errors.Is(err, errkind.NotFound) {
			t.Errorf("Delete(%q) = %v", id, err)
		}
	}
}

// Of two folders with one id, the dataset that is searched is deleted, and then
// the other one.
func TestDeleteServed(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a", "manifest.json"), `{"id": "one", "name": "unfinished"}`)
	newSample("one").write(t, root, "b")
	for _, left := range [][]string{{"a"}, nil} {
		if _, err := Delete(root, "one"); err != nil {
			t.Fatal(err)
		}
		onlyFolders(t, root, left...)
	}
}

// An exported dataset is a dataset where it is unpacked, wherever its files were.
func TestExport(t *testing.T) {
	root, away := t.TempDir(), t.TempDir()
	s := newSample("one")
	s.manifest["metadata"], s.manifest["index"] = filepath.Join(away, "one", "metadata.json"),
		filepath.Join(away, "one", "index", "docs.index")
	s.write(t, away, "one")
	writeJSON(t, filepath.Join(root, "x", "manifest.json"), s.manifest)
	var out bytes.Buffer
	if err := open(t, root).Export(t.Context(), "one", &out); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	unpacked := t.TempDir()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(unpacked, f.Name), string(data))
	}
	if got := list(t, open(t, unpacked))["one"]; got.State != Ready || got.Vectors != 3 {
		t.Errorf("unpacked: %+v", got)
	}
	if err := open(t, root).Export(t.Context(), "two", io.Discard); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Export of an unknown dataset: %v", err)
	}
}
