package dataset

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRules breaks every rule of the data model, one at a time.
func TestRules(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name  string
		alter func(s *sample) // before the dataset is written
		after func(t *testing.T, dir string)
		state State
		want  string // in the failure; for a ready dataset in a warning
	}{
		{name: "valid", state: Ready},
		{name: "id missing", alter: without("id"), state: Invalid, want: "id: it is missing"},
		{name: "id with capitals", alter: with("id", "Docs"), state: Invalid, want: `id: got "Docs"`},
		{name: "id with underscore", alter: with("id", "a_b"), state: Invalid, want: `id: got "a_b"`},
		{name: "id empty", alter: with("id", ""), state: Invalid, want: `id: got ""`},
		{name: "id with line end", alter: with("id", "docs\n"), state: Invalid, want: `id: got "docs"`},
		{name: "id of 65 characters", alter: with("id", long(65)), state: Invalid, want: "1 to 64 characters"},
		{name: "id of 64 characters", alter: with("id", long(64)), state: Ready},
		{name: "id a number", alter: with("id", 7), state: Invalid, want: "id: got 7, want a string"},
		{name: "name missing", alter: without("name"), state: Invalid, want: "name: it is missing"},
		{name: "name in capitals", alter: func(s *sample) {
			delete(s.manifest, "name")
			s.manifest["NAME"] = "x"
		}, state: Invalid, want: "name: it is missing"},
		{name: "name blank", alter: with("name", " \t\u3000"), state: Invalid, want: "name: it is empty or blank"},
		{name: "name invisible", alter: with("name", "\u200b"), state: Invalid, want: "name: it is empty or blank"},
		{name: "name of 129 characters", alter: with("name", strings.Repeat("語", 129)), state: Invalid,
			want: "name: it has 129 characters"},
		{name: "name of 128 characters", alter: with("name", strings.Repeat("語", 128)), state: Ready},
		{name: "description missing", alter: without("description"), state: Invalid,
			want: "description: it is missing"},
		{name: "description blank", alter: with("description", " "), state: Invalid,
			want: "description: it is empty or blank"},
		{name: "description of 513 characters", alter: with("description", long(513)), state: Invalid,
			want: "at most 512"},
		{name: "index missing", alter: without("index"), state: Invalid, want: "index: it is missing"},
		{name: "index null", alter: with("index", nil), state: Invalid, want: "index: got null, want a string"},
		{name: "index blank", alter: with("index", " "), state: Invalid, want: "index: it is empty or blank"},
		{name: "metadata missing", alter: without("metadata"), state: Invalid, want: "metadata: it is missing"},
		{name: "metadata blank", alter: with("metadata", " "), state: Invalid, want: "metadata: it is empty or blank"},
		{name: "defaultTopK 0", alter: with("defaultTopK", 0), state: Invalid,
			want: "defaultTopK: got 0, want an integer from 1 to 100"},
		{name: "defaultTopK 101", alter: with("defaultTopK", 101), state: Invalid, want: "defaultTopK: got 101"},
		{name: "defaultTopK a fraction", alter: with("defaultTopK", 1.5), state: Invalid, want: "defaultTopK: got 1.5"},
		{name: "defaultTopK a string", alter: with("defaultTopK", "5"), state: Invalid, want: `defaultTopK: got "5"`},
		{name: "defaultTopK null", alter: with("defaultTopK", nil), state: Invalid, want: "defaultTopK: got null"},
		{name: "defaultTopK 100", alter: with("defaultTopK", 100), state: Ready},
		{name: "unknown members", alter: with("version", 2), state: Ready},
		{name: "manifest too large", alter: with("extra", long(10<<10)), state: Invalid,
			want: "manifest: it has 10240 bytes or more"},
		{name: "manifest not JSON", after: file("manifest.json", "{\n  \"id\": x}"), state: Invalid,
			want: "manifest: it is not valid JSON at line 2, column 9"},
		{name: "manifest with text behind it", after: file("manifest.json", "{} {}"), state: Invalid,
			want: "manifest: it is not valid JSON at line 1"},
		{name: "manifest a list", after: file("manifest.json", "[]"), state: Invalid,
			want: "manifest: it is a JSON array"},
		{name: "manifest null", after: file("manifest.json", "null"), state: Invalid, want: "manifest: it is null"},
		{name: "manifest empty", after: file("manifest.json", ""), state: Invalid,
			want: "manifest: it is not valid JSON"},
		{name: "manifest with byte order mark", after: file("manifest.json", "\ufeff{}"), state: Invalid,
			want: "manifest: it begins with a byte order mark"},
		{name: "manifest a folder", after: func(t *testing.T, dir string) {
			replaceByFolder(t, filepath.Join(dir, "manifest.json"))
		}, state: Invalid, want: "manifest: it is not a regular file"},
		{name: "index not there", alter: with("index", "nowhere"), state: Error,
			want: `index file: there is no "nowhere"`},
		{name: "index folder empty", after: remove("index/docs.index"), state: Error,
			want: "index file: the folder has no *.index"},
		{name: "index a file", alter: with("index", "index/docs.index"), state: Ready},
		{name: "index *.faiss", after: func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "index/docs.index"),
				filepath.Join(dir, "index/index.faiss")); err != nil {
				t.Fatal(err)
			}
		}, state: Ready},
		{name: "two indexes", after: func(t *testing.T, dir string) {
			writeIndex(t, filepath.Join(dir, "index/other.index"), [][]float32{{1}})
		}, state: Ready, want: `index file: the folder has 2 index files, "docs.index" is used`},
		{name: "index empty", after: file("index/docs.index", ""), state: Error, want: "index file: "},
		{name: "index junk", after: file("index/docs.index", strings.Repeat("junk", 100)), state: Error,
			want: "index file: "},
		{name: "index truncated", after: func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "index/docs.index"), 60); err != nil {
				t.Fatal(err)
			}
		}, state: Error, want: "index file: "},
		{name: "metadata not there", alter: with("metadata", "no.json"), state: Error,
			want: `metadata file: there is no "no.json"`},
		{name: "metadata a folder", alter: with("metadata", "index"), state: Error,
			want: "metadata file: it is not a regular file"},
		{name: "metadata not JSON", after: file("metadata.json", "[{]"), state: Error,
			want: "metadata file: it is not valid JSON near byte"},
		{name: "metadata truncated", after: file("metadata.json", `[{"id":"a"},{"id"`), state: Error,
			want: "metadata file: it ends in the middle"},
		{name: "metadata empty", after: file("metadata.json", ""), state: Error,
			want: "metadata file: it ends in the middle, after 0 bytes"},
		{name: "metadata without documents", after: file("metadata.json", "{}"), state: Error,
			want: `metadata file: it has no member "documents"`},
		{name: "metadata a string", after: file("metadata.json", `"x"`), state: Error,
			want: "metadata file: it is neither"},
		{name: "documents not a list", after: file("metadata.json", `{"documents":{}}`), state: Error,
			want: `metadata file: the member "documents" is not a list`},
		{name: "document not an object", after: file("metadata.json", `[{"id":"a"},"b"]`), state: Error,
			want: "metadata file: document 2 is not an object"},
		{name: "metadata with text behind it", after: file("metadata.json", `[] []`), state: Error,
			want: "metadata file: there is text behind the JSON value"},
		{name: "metadata a pickle", after: file("metadata.json", "\x80\x04\x95"), state: Error,
			want: "metadata file: it is a Python pickle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			s := newSample("sample")
			if tt.alter != nil {
				tt.alter(s)
			}
			s.write(t, root, "folder")
			if tt.after != nil {
				tt.after(t, filepath.Join(root, "folder"))
			}
			newSample("other").write(t, root, "other")
			r := open(t, root)
			infos, err := r.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(infos) != 2 {
				t.Fatalf("there are %d datasets, want 2", len(infos))
			}
			var got Info
			for _, i := range infos {
				if filepath.Base(filepath.Dir(i.ManifestPath)) == "folder" {
					got = i
				} else if i.State != Ready {
					t.Errorf("the other dataset is %s: %s", i.State, i.Failure())
				}
			}
			if got.State != tt.state {
				t.Errorf("state = %s (%v), want %s", got.State, got.Problems, tt.state)
			}
			text := got.Failure()
			if tt.state == Ready {
				for _, p := range got.Problems {
					text += p.String() + "\n"
				}
			} else if got.FailedAt.IsZero() {
				t.Error("FailedAt is zero")
			}
			if !strings.Contains(text, tt.want) || tt.want == "" && tt.state != Ready {
				t.Errorf("problem = %q, want %q", text, tt.want)
			}
			checks, err := r.Check(t.Context(), "")
			if err != nil || len(checks) != 2 {
				t.Fatalf("Check = %v, %v", checks, err)
			}
			for _, c := range checks {
				if bad := filepath.Base(c.Folder) == "folder" && tt.state != Ready; c.Failed() != bad {
					t.Errorf("Check of %s: Failed = %v, want %v", c.ID, c.Failed(), bad)
				}
			}
		})
	}
}

func with(name string, value any) func(*sample) {
	return func(s *sample) { s.manifest[name] = value }
}

func without(name string) func(*sample) {
	return func(s *sample) { delete(s.manifest, name) }
}

func file(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { put(t, filepath.Join(dir, name), text) }
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func replaceByFolder(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

// A manifest has less than 10 KB, exactly.
func TestManifestSize(t *testing.T) {
	root := t.TempDir()
	s := newSample("sample")
	s.write(t, root, "a")
	name := filepath.Join(root, "a", "manifest.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{10239, 10240} {
		put(t, name, string(data)+strings.Repeat(" ", size-len(data)))
		want := Ready
		if size == 10240 {
			want = Invalid
		}
		if got := list(t, open(t, root)); len(got) != 1 || got["sample"].State != want && got["a"].State != want {
			t.Errorf("with %d bytes: %v, want %s", size, got, want)
		}
	}
}

// Paths are resolved against the folder of the manifest, the working directory
// and the parent of the datasets, in this order.
func TestPathsOfManifest(t *testing.T) {
	top := t.TempDir()
	root, elsewhere := filepath.Join(top, "datasets"), t.TempDir()
	t.Chdir(elsewhere)
	s := newSample("sample")
	for _, tt := range []struct {
		name, index, metadata, at string
	}{
		{"below the manifest", "index", "metadata.json", ""},
		{"beside the datasets", "./datasets/a/index/docs.index", "./datasets/a/metadata.json", ""},
		{"up and down", "../a/index", "../a/metadata.json", ""},
		{"in the working directory", "w/index", "w/metadata.json", filepath.Join(elsewhere, "w")},
		{"absolute", filepath.Join(top, "x", "index"), filepath.Join(top, "x", "metadata.json"),
			filepath.Join(top, "x")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.manifest["index"], s.manifest["metadata"] = tt.index, tt.metadata
			s.write(t, root, "a")
			if tt.at != "" {
				if err := os.RemoveAll(tt.at); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(tt.at, 0o755); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"index", "metadata.json"} {
					if err := os.Rename(filepath.Join(root, "a", name), filepath.Join(tt.at, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := list(t, open(t, root))["sample"]; got.State != Ready {
				t.Errorf("state = %s: %s", got.State, got.Failure())
			}
		})
	}
	t.Run("the folder of the manifest first", func(t *testing.T) {
		root := filepath.Join(t.TempDir(), "datasets")
		s := newSample("sample")
		s.write(t, root, "a")
		writeJSON(t, "metadata.json", []any{})
		if got := list(t, open(t, root))["sample"]; got.Documents != 3 {
			t.Errorf("%d documents, want the 3 beside the manifest", got.Documents)
		}
	})
}

// TestDuplicateIDs: the first in folder order is used.
func TestDuplicateIDs(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"b", "a", "c"} {
		s := newSample("same")
		s.manifest["name"] = "from " + folder
		s.write(t, root, folder)
	}
	r := open(t, root)
	infos, err := r.List(t.Context())
	if err != nil || len(infos) != 3 {
		t.Fatalf("List = %v, %v", infos, err)
	}
	for i, want := range []State{Ready, Invalid, Invalid} {
		if infos[i].ID != "same" || infos[i].State != want {
			t.Errorf("dataset %d is %s: %s", i, infos[i].State, infos[i].Failure())
		}
	}
	if infos[0].Name != "from a" || !strings.Contains(infos[1].Failure(),
		`unique id: the dataset in folder "a" has the same id`) {
		t.Errorf("used %q, failure %q", infos[0].Name, infos[1].Failure())
	}
	// When the first is gone, the second takes its place.
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r); got["same"].State == Ready && got["same"].Name != "from b" {
		t.Errorf("got %+v", got)
	}
	if _, err := r.Search(t.Context(), Query{Datasets: []string{"same"}, Text: "leave"}); err != nil {
		t.Error(err)
	}
}

// TestFolders: what is a dataset and what is not.
func TestFolders(t *testing.T) {
	root := t.TempDir()
	newSample("one").write(t, root, "one")
	newSample("hidden").write(t, root, ".hidden")
	newSample("deep").write(t, root, "some/deep")
	newSample("target").write(t, t.TempDir(), "x")
	put(t, filepath.Join(root, "manifest.json"), "{}")
	put(t, filepath.Join(root, "file"), "")
	put(t, filepath.Join(root, "notes", "read.me"), "")
	away := t.TempDir()
	newSample("linked").write(t, away, "linked")
	if err := os.Symlink(filepath.Join(away, "linked"), filepath.Join(root, "linked")); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	r, err := New(Options{Dir: root, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	scan(t, r)
	if got := list(t, r); len(got) != 2 || got["one"].State != Ready || got["deep"].State != Ready {
		t.Errorf("got %v, want one and deep", got)
	}
	if n := strings.Count(log.String(), "a link to a dataset is not followed"); n != 1 {
		t.Errorf("the link was reported %d times:\n%s", n, log.String())
	}
	if got := list(t, open(t, filepath.Join(root, "missing"))); len(got) != 0 {
		t.Errorf("a missing folder has %v", got)
	}
	if r, err := New(Options{Dir: filepath.Join(root, "file")}); err != nil {
		t.Fatal(err)
	} else if err := r.Scan(t.Context()); err == nil {
		t.Error("a file in place of the folder is accepted")
	}
}

// Datasets are found at any depth, appear and vanish there, and the first one in
// the order of folders has an id that several have.
func TestNested(t *testing.T) {
	root := t.TempDir()
	newSample("deep").write(t, root, "a/b/c/d/e/deep")
	newSample("inner").write(t, root, "a/b/inner")
	newSample("same").write(t, root, "a/z/same")
	newSample("same").write(t, root, "b/same")
	newSample("hidden").write(t, root, "a/.cache/hidden")
	r := open(t, root)
	infos, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range infos {
		rel, _ := filepath.Rel(root, i.ManifestPath)
		got = append(got, fmt.Sprintf("%s %s %s", i.ID, i.State, filepath.ToSlash(rel)))
	}
	want := []string{"deep ready a/b/c/d/e/deep/manifest.json", "inner ready a/b/inner/manifest.json",
		"same ready a/z/same/manifest.json", "same invalid b/same/manifest.json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("datasets (-want +got):\n%s", diff)
	}
	newSample("late").write(t, root, "a/b/c/late")
	if err := os.RemoveAll(filepath.Join(root, "a", "z")); err != nil {
		t.Fatal(err)
	}
	scan(t, r)
	if got := list(t, r); got["late"].State != Ready || got["same"].State != Ready || len(got) != 4 {
		t.Errorf("after the change: %v", got)
	}
	if kept, err := Delete(root, "deep"); err != nil || len(kept) > 0 {
		t.Errorf("Delete: %v, %v", kept, err)
	}
	scan(t, r)
	if got := list(t, r); len(got) != 3 {
		t.Errorf("after Delete: %v", got)
	}
}

// The number of folders is bounded, and what is left out is reported.
func TestManyFolders(t *testing.T) {
	root := t.TempDir()
	deep := root + strings.Repeat("/d", maxNesting+2)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxFolders {
		if err := os.Mkdir(filepath.Join(root, fmt.Sprintf("e%05d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, err := findFolders(root)
	if err != nil || len(found.skipped) != 2 {
		t.Fatalf("skipped %v, error %v; want the depth and the number of folders", found.skipped, err)
	}
}

// Files of a dataset that are links are refused.
func TestLinks(t *testing.T) {
	away := t.TempDir()
	newSample("away").write(t, away, "away")
	for name, rule := range map[string]string{"manifest.json": ruleManifest, "metadata.json": ruleMetadata,
		"index": ruleIndexFile, "index/docs.index": ruleIndexFile} {
		root := t.TempDir()
		newSample("one").write(t, root, "one")
		link := filepath.Join(root, "one", name)
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(away, "away", name), link); err != nil {
			t.Skip(err)
		}
		if got := list(t, open(t, root))["one"]; got.State == Ready ||
			!strings.Contains(got.Failure(), rule+": it is a link") {
			t.Errorf("%s: %s, %s", name, got.State, got.Failure())
		}
	}
}

// The sample of MCPower is served as it is.
func TestSampleOfMCPower(t *testing.T) {
	got := list(t, open(t, "testdata"))["sample-docs"]
	if got.State != Ready || got.Vectors != 5 || got.Documents != 5 || got.DefaultTopK != 5 ||
		got.Name != "Sample Knowledge Base" {
		t.Errorf("got %+v", got)
	}
}
