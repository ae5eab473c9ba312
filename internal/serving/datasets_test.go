package serving_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/serving"
	"github.com/knowhow-mcp/knowhow/internal/users"

	"github.com/google/go-cmp/cmp"
)

// TestConsoleDatasets checks what the status says about the datasets of a source: what is
// loaded, with clean texts, what is not loaded yet, and what cannot be searched.
func TestConsoleDatasets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note := filepath.Join(t.TempDir(), "note.md")
	if err := os.WriteFile(note, []byte("# Pumps\n\nA valve.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Create(t.Context(), dataset.CreateOptions{Dir: dir, ID: "pumps",
		Name: "Pumps\u202e and\x1b[31m valves", Description: "All about pumps", Sources: []string{note},
		Embedder: letters{}, Model: "letters"}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "pumps", "manifest.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	more := `{"license":"CC-BY-4.0\u0007` + strings.Repeat("x", 1000) + `","version":2.1,`
	text = []byte(strings.Replace(string(text), "{", more, 1))
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bad"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad", "manifest.json"), []byte(`{"id":"zz-bad"`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := dataset.New(dataset.Options{Dir: dir, Written: true})
	if err != nil {
		t.Fatal(err)
	}
	service := datasetsearch.New(r, "sets", nil)
	t.Cleanup(service.Close)
	accessFile := filepath.Join(t.TempDir(), "access.json")
	if err := access.Edit(t.Context(), accessFile, func(c *access.Content) error {
		for name, label := range map[string]string{"ann": "docs", "bob": "sets"} {
			sum := sha256.Sum256([]byte(name))
			c.Users = append(c.Users, access.User{Name: name, SHA256: hex.EncodeToString(sum[:]), Read: []string{label}})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s := serving.New(serving.Options{Users: users.Options{File: access.Open(accessFile, nil)},
		Folder: folder(t, false, false, false), Version: "devel", Log: slog.New(slog.DiscardHandler),
		Sources: []document.Source{{Label: "docs", Path: "/srv/docs"}, {Label: "sets", Path: "datasets:" + dir}},
		Asked:   map[string]search.Service{"sets": service}})
	handler := httpguard.New(httpguard.Options{Routes: s.Routes(), Authenticate: s.Users().Authenticate})
	get := func(user string) *httptest.ResponseRecorder {
		q, w := httptest.NewRequest("GET", host+"/console/status", nil), httptest.NewRecorder()
		q.Header.Set("Authorization", "Bearer "+user)
		handler.ServeHTTP(w, q)
		return w
	}
	datasets := func() []console.Dataset {
		t.Helper()
		w := get("bob")
		var status struct {
			Sources []struct {
				Label    string
				Datasets []console.Dataset
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		for _, src := range status.Sources {
			if src.Label == "sets" {
				return src.Datasets
			}
		}
		t.Fatal("the source is missing")
		return nil
	}
	if got := datasets(); got != nil { // at once: nobody waits for the datasets to be loaded
		t.Errorf("before the first scan there are %v", got)
	}
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := datasets()
	if len(got) != 2 {
		t.Fatalf("datasets = %+v", got)
	}
	if got[1].Bytes == 0 || !strings.HasPrefix(got[1].License, "CC-BY-4.0") || len(got[1].License) > 110 {
		t.Errorf("got %d bytes, license %q", got[1].Bytes, got[1].License)
	}
	if !strings.Contains(got[0].Failure, "not valid JSON") {
		t.Errorf("failure = %q", got[0].Failure)
	}
	if w := get("ann"); w.Code != 200 || strings.Contains(w.Body.String(), "pumps") {
		t.Errorf("ann, who may not read the datasets, sees %d %s", w.Code, w.Body)
	}
	got[1].Bytes, got[1].License, got[0].Failure, got[0].Bytes = 0, "", "", 0
	want := []console.Dataset{{ID: "bad", State: "error"}, {ID: "pumps", Name: "Pumps and[31m valves",
		Description: "All about pumps", Version: "2.1", State: "ready", Documents: 1, Vectors: 1, Dimensions: 27,
		Index: "flat", Metric: "inner product", Model: "letters"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("datasets (-want +got)\n%s", diff)
	}
}
